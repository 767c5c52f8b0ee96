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


def is_call(value: Form) -> Form:
    return ["call", "isinstance", [value, ["type", CLASS]]]


def not_awaitable(value: Form) -> Form:
    """The exception of ``await 3``."""
    name = ["fmt", ["attr", ["call", "type", [value]], "__name__"], None, None]
    return ["new", "TypeError", [["fstr", "object ", name, " can't be used in 'await' expression"]]]


def result(task: Form, held: str, not_done: str) -> Form:
    """``task.result()``: gives the task's result, or raises what the task has raised. `held`: the name of a free
    variable, in which the task is kept; `not_done`: the class of the exception that is raised before the task is
    done."""
    if isinstance(task, list) and task[0] == "name":
        once, again = task, task
    else:
        once, again = [":=", held, task], ["name", held]
    state = ["attr", again, "state"]
    raised = ["if", ["cmp", state, "==", "failed"], ["attr", again, "error"], ["new", not_done, ["Result is not set."]]]
    check = ["if", ["cmp", state, "==", "done"], None, ["call", "heddle.raise", [raised]]]
    return ["item", ["tuple", ["attr", once, "result"], check], 0]  # the result, unless `check` raises


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
        """The function that awaits any kind of call; it is given nothing else (is_call). If the call is done already, it
        returns its result; a call that was awaited before cannot be awaited again."""
        graph = Graph(source)
        graph.add("ENTRY", at, "entry")
        state = ["attr", CALL, "state"]
        tests = [["cmp", state, "==", "done"], ["cmp", state, "==", "failed"], ["cmp", state, "==", "used"],
                 *(["cmp", ["attr", CALL, "site"], "==", i] for i in range(len(self.writes)))]
        branch = graph.add("BRANCH", at, "which", when=tests)
        graph.behind(branch, "GUARD", 0)
        graph.add("RET", at, "done", value=["attr", CALL, "result"])
        graph.take()
        graph.behind(branch, "GUARD", 1)
        graph.add("RAISE", at, "failed", value=["attr", CALL, "error"])
        graph.take()
        self._raise(graph, branch, 2, at, "RuntimeError", "cannot reuse already awaited coroutine")
        for i, (node, write) in enumerate(self.writes):
            graph.behind(branch, "GUARD", 3 + i)
            graph.do(["assign", "used", state], node)
            if i in self.tasks:
                self._write_task(graph, node, write)
            else:
                write(graph, ["attr", CALL, "args"], ["name", "result"])
            graph.add("RET", node, "return", value=["name", "result"])
            graph.take()
        self._raise(graph, branch, 3 + len(self.writes), at, "SystemError", "a call of another version")
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
        found = graph.handle(handler, node, "raised", [{"classes": ["Exception", "CancelledError"], "as": "%raised"}])
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
