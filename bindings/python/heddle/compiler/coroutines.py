"""Calls that are awaited later: ``calls = [charge(o) for o in orders]; await asyncio.gather(*calls)``.

Such a call is a value, a record that says which call of the source it is and has its arguments. One function of the IR,
"await", takes any of them and does what it stands for; it is written when all calls are known.
"""
from __future__ import annotations

import ast
from typing import Any, Callable, Optional

from .graph import Form, Graph, Handler
from .refusal import Source
from .tree import walk

CLASS = "heddle:coroutine"
CALL: Form = ["name", "call"]
Write = Callable[[Graph, Form, Form], None]
"""Adds the node of a call to a graph: with the list of its arguments, into this target."""


def declare(classes: Any) -> None:
    classes.add(CLASS, fields=["site", "args", "state", "result", "error"], open=True, by_id=True, partial=True, own_operators=True, own_text=True)


def new(site: int, args: list[Form]) -> Form:
    """A call that has not been awaited."""
    return ["new", CLASS, [site, ["tuple", *args], "new", None, None]]


class Sites:
    """The calls of a workflow that are values."""

    def __init__(self) -> None:
        self.writes: list[tuple[ast.AST, Write]] = []
        self.tasks: set[int] = set()
        """Those that asyncio.create_task has made: they are awaited any number of times."""
        self.is_used = False

    def add(self, node: ast.AST, write: Write) -> int:
        self.writes.append((node, write))
        return len(self.writes) - 1

    def function(self, source: Source, at: ast.AST, has_self: bool) -> dict[str, Form]:
        """The function that awaits a call, whichever it is. What is done already has a result; what was awaited once
        cannot be awaited again."""
        graph = Graph(source)
        graph.add("ENTRY", at, "entry")
        kind = ["call", "isinstance", [CALL, ["type", CLASS]]]
        state = ["attr", CALL, "state"]
        tests = [["not", kind], ["cmp", state, "==", "done"], ["cmp", state, "==", "failed"], ["cmp", state, "==", "used"],
                 *(["cmp", ["attr", CALL, "site"], "==", i] for i in range(len(self.writes)))]
        branch = graph.add("BRANCH", at, "which", when=tests)
        self._raise(graph, branch, 0, at, "TypeError", ["fstr", "object ", ["fmt", ["attr", ["call", "type", [CALL]], "__name__"],
                                                        None, None], " can't be used in 'await' expression"])
        graph.behind(branch, "GUARD", 1)
        graph.add("RET", at, "done", value=["attr", CALL, "result"])
        graph.take()
        graph.behind(branch, "GUARD", 2)
        graph.add("RAISE", at, "failed", value=["attr", CALL, "error"])
        graph.take()
        self._raise(graph, branch, 3, at, "RuntimeError", "cannot reuse already awaited coroutine")
        for i, (node, write) in enumerate(self.writes):
            graph.behind(branch, "GUARD", 4 + i)
            graph.do(["assign", "used", state], node)
            if i in self.tasks:
                self._write_task(graph, node, write)
            else:
                write(graph, ["attr", CALL, "args"], ["name", "result"])
            graph.add("RET", node, "return", value=["name", "result"])
            graph.take()
        self._raise(graph, branch, 4 + len(self.writes), at, "SystemError", "a call of another version")
        return {"name": "await", "params": (["self"] if has_self else []) + ["call"], "nodes": graph.nodes, "edges": graph.edges}

    def _write_task(self, graph: Graph, node: ast.AST, write: Write) -> None:
        """What comes of a task stays in it."""
        handler = Handler(None)
        graph.flush()
        graph.handler = handler
        write(graph, ["attr", CALL, "args"], ["name", "result"])
        graph.flush()
        graph.handler = None
        graph.do(["assign", ["name", "result"], ["attr", CALL, "result"]], node)
        graph.do(["assign", "done", ["attr", CALL, "state"]], node)
        over = graph.take()
        found = graph.handle(handler, node, "raised", [{"classes": ["Exception"], "as": "%raised"}])
        graph.behind(found, "GUARD", 0)
        graph.do(["assign", ["name", "%raised"], ["attr", CALL, "error"]], node)
        graph.do(["assign", "failed", ["attr", CALL, "state"]], node)
        graph.add("RAISE", node, "raise", value=["name", "%raised"])
        graph.take()
        graph.give(over)

    def _raise(self, graph: Graph, branch: str, guard: int, at: ast.AST, cls: str, message: Form) -> None:
        graph.behind(branch, "GUARD", guard)
        graph.add("RAISE", at, "raise", value=["new", cls, [message]])
        graph.take()


def awaits_values(definition: ast.AST, gather: Callable[[ast.Call], bool]) -> bool:
    """Whether a function awaits something that is not a call: then calls may be values in it."""
    for node in walk(definition):
        if isinstance(node, ast.Await) and not isinstance(node.value, ast.Call):
            return True
        if isinstance(node, ast.Call) and gather(node) and any(_is_value(arg) for arg in node.args):
            return True
    return False


def _is_value(node: ast.expr) -> bool:
    if isinstance(node, ast.Starred):
        inner: Optional[ast.expr] = node.value
        return not (isinstance(inner, (ast.ListComp, ast.GeneratorExp)) and isinstance(inner.elt, ast.Call))
    return not isinstance(node, ast.Call)
