"""``async with``: asyncio.TaskGroup and asyncio.timeout, the two that a workflow has."""
from __future__ import annotations

import ast
import asyncio
from typing import TYPE_CHECKING, Any, Optional

from .graph import Form, Handler
from .names import bound_names
from .tree import walk

if TYPE_CHECKING:
    from .statements import Boundary, Statements

_LEAVING = (ast.Return, ast.Break, ast.Continue)


def compile_async_with(compiler: Statements, node: ast.AsyncWith) -> None:
    call = node.items[0].context_expr
    function = compiler.known_call(call) if isinstance(call, ast.Call) else None
    if len(node.items) != 1:
        compiler.source.refuse(node, "one `async with` of several", "Write one inside of the other: `async with asyncio.timeout(5):`, and "
                               "in its block `async with asyncio.TaskGroup() as group:`.")
    if function not in (asyncio.TaskGroup, asyncio.timeout):
        compiler.source.refuse(node, "`async with` in a workflow",
                               "There are asyncio.TaskGroup() and asyncio.timeout(seconds); use other resources in actions.")
    assert isinstance(call, ast.Call)
    if function is asyncio.timeout:
        _timeout(compiler, node, call)
    else:
        _group(compiler, node, call)


# ---- asyncio.timeout


def _timeout(compiler: Statements, node: ast.AsyncWith, call: ast.Call) -> None:
    if len(call.args) != 1 or call.keywords or node.items[0].optional_vars is not None:
        compiler.source.refuse(call, "asyncio.timeout takes the number of seconds, and is not named",
                               "Write `async with asyncio.timeout(5):`.")
    limit = compiler.expr(call.args[0])
    limit = limit if compiler.is_stable(limit, ()) else compiler.keep(limit, call)
    if limit is None:
        compiler.way(node.body, compiler.graph.label("timeout"), node)
        return
    compiler.graph.do(["expr", ["if", ["cmp", limit, "is", None], None, ["+", 0.0, limit]]], call)
    if not _one_call(compiler, node, limit):
        _limited_block(compiler, node, limit)


def _one_call(compiler: Statements, node: ast.AsyncWith, limit: Form) -> bool:
    """One statement that awaits one call: what asyncio.wait_for does, without a copy of the variables."""
    statement = node.body[0]
    value: Any = getattr(statement, "value", None)
    target = _single_target(statement)
    if len(node.body) != 1 or not isinstance(value, ast.Await) or not isinstance(value.value, ast.Call) or target is _NONE or \
            any(compiler.waits(part) for part in (*value.value.args, *(k.value for k in value.value.keywords))) or \
            isinstance(target, ast.expr) and compiler.waits(target):
        return False
    inner = compiler.prepare(value.value, True)
    into: Form = ["name", compiler.temp()]
    compiler.limited(node, inner, limit, into, False)
    if isinstance(statement, ast.Return):
        compiler.return_value(into, statement)
    elif isinstance(target, ast.expr):
        compiler.graph.do(["assign", into, compiler.target(target)], statement)
    return True


def _limited_block(compiler: Statements, node: ast.AsyncWith, limit: Form) -> None:
    """The block is a branch beside a sleep. A branch has its own variables: what the block has assigned is kept in a dict
    when it ends, in whichever way, and assigned behind it."""
    graph, label = compiler.graph, compiler.graph.label("timeout")
    for part in (inner for statement in node.body for inner in walk(statement)):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del):
            compiler.source.refuse(part, "a variable is deleted in the block of asyncio.timeout", "Set it to None, or delete it behind.")
    names = sorted(bound_names(node.body) & compiler.scope.locals)
    box = compiler.keep(["dict"], node)
    block: list[Boundary] = []

    def body(into: Optional[Form]) -> None:
        handler = Handler(None)
        graph.flush()
        graph.handler = handler
        block.append(compiler.bounded(node.body, label, node, box))
        graph.flush()
        graph.handler = None
        save_names(compiler, node, names, box)
        graph.do(["assign", None, into], node)
        over = graph.take()
        raised = compiler.branch_name()
        found = graph.handle(handler, node, f"{label}-failed", [{"as": raised}])
        graph.behind(found, "GUARD", 0)
        save_names(compiler, node, names, box)
        graph.add("RAISE", node, "raise", value=["name", raised])
        graph.take()
        graph.give(over)

    compiler.race(node, body, ["if", ["cmp", limit, "is", None], FOREVER, limit] if isinstance(limit, list) else limit,
                  lambda: restore_names(compiler, node, names, box), False)
    compiler.go_on(block[0], node)


FOREVER = 1e9
"""Seconds."""


def save_names(compiler: Statements, node: ast.AST, names: list[str], box: Form) -> None:
    """Variables that have a value go into the dict."""
    graph = compiler.graph
    for name in names:
        if not graph.is_reached:
            return
        handler = Handler(graph.handler)
        graph.flush()
        outer, graph.handler = graph.handler, handler
        graph.do(["assign", ["name", name], ["item", box, name]], node)
        graph.flush()
        graph.handler = outer
        over = graph.take()
        found = graph.handle(handler, node, "unbound", [{"classes": ["UnboundLocalError"], "as": compiler.branch_name()}])
        graph.behind(found, "GUARD", 0)
        graph.give(over)
        graph.one_end(node)


def restore_names(compiler: Statements, node: ast.AST, names: list[str], box: Form) -> None:
    graph = compiler.graph
    for name in names:
        over = compiler.skip(["cmp", name, "in", box], False, node)
        graph.do(["assign", ["item", box, name], ["name", name]], node)
        graph.give(over)


_NONE = object()


def _single_target(statement: ast.stmt) -> Any:
    """What the statement assigns to; None: nothing; _NONE: it is another kind of statement."""
    if isinstance(statement, (ast.Expr, ast.Return)):
        return None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0]
    return statement.target if isinstance(statement, ast.AnnAssign) and statement.value is not None else _NONE


# ---- asyncio.TaskGroup


def _group(compiler: Statements, node: ast.AsyncWith, call: ast.Call) -> None:
    """Tasks begin when the body is over, because nothing in it waits; a failure cancels the others."""
    name = node.items[0].optional_vars
    if call.args or call.keywords or not isinstance(name, ast.Name):
        compiler.source.refuse(node, "asyncio.TaskGroup() has a name and no arguments", "Write `async with asyncio.TaskGroup() as group:`.")
    _check_awaits(compiler, node)
    tasks = compiler.temp()
    graph = compiler.graph
    graph.do(["assign", ["list"], ["name", tasks]], node)
    groups, compiler.groups = compiler.groups, {**compiler.groups, name.id: tasks}
    block = _body(compiler, node, tasks)
    compiler.groups = groups
    head = graph.add("FAN_HEAD", node, "tasks", over=["name", tasks], into=["name", "%task"])
    graph.behind(head, "ELEM")
    outer, graph.handler = graph.handler, None
    compiler.await_value(node, ["name", "%task"], None)
    graph.flush()
    graph.handler = outer
    compiler.barrier(node, {"mode": "group"}, None, None)
    compiler.go_on(block, node)


def _check_awaits(compiler: Statements, node: ast.AsyncWith) -> None:
    """Tasks begin when the body is over. That is as in CPython if nothing waits once a task is there."""
    inner = {_group_name(compiler, part) for statement in node.body for part in walk(statement)} - {_group_name(compiler, node)}
    for statement in node.body:
        if not _creates(statement, inner):
            continue
        before = statement.iter if isinstance(statement, ast.For) and not _creates(statement.iter, inner) else None
        late = [part for other in node.body[node.body.index(statement):] for part in walk(other)]
        allowed = set(walk(before)) if before is not None else set()
        for part in late:
            if isinstance(part, ast.Await) and part not in allowed:
                compiler.source.refuse(part, "`await` behind create_task inside of a TaskGroup's block",
                                       "Await it before the first task is created, or behind the block; or make it a task, too.")
            if isinstance(part, ast.AsyncWith) and _group_name(compiler, part) is not None:
                compiler.source.refuse(part.items[0].context_expr, "a TaskGroup, which waits for its tasks, behind create_task inside of "
                                       "another one's block", "Write it before the first task of the outer group, or behind the outer "
                                       "block; or put it into a helper method, and make the call of that a task of the outer group.")
        return


def _creates(node: ast.AST, inner: set[Optional[str]]) -> bool:
    """Whether it creates a task. Those of the `inner` groups do not count: they are over behind the block of their group."""
    return any(isinstance(part, ast.Attribute) and part.attr == "create_task" and not (
        isinstance(part.value, ast.Name) and part.value.id in inner) for part in walk(node))


def _group_name(compiler: Statements, node: ast.AST) -> Optional[str]:
    """The name of the group whose block it is; None: it is another statement."""
    if not isinstance(node, ast.AsyncWith):
        return None
    call, name = node.items[0].context_expr, node.items[0].optional_vars
    known = compiler.known_call(call) if isinstance(call, ast.Call) else None
    return name.id if known is asyncio.TaskGroup and isinstance(name, ast.Name) else None


def _body(compiler: Statements, node: ast.AsyncWith, tasks: str) -> Boundary:
    """What the body raises is an ExceptionGroup, as if a task had raised it, or a CancelledError as it is; no task begins,
    and those that were created are cancelled."""
    graph = compiler.graph
    leaves = any(isinstance(part, _LEAVING) for statement in node.body for part in walk(statement))
    box: Form = compiler.keep(["dict"], node) if leaves else None
    outer = graph.handler
    handler = Handler(outer)
    graph.flush()
    graph.handler = handler
    block = compiler.bounded(node.body, graph.label("group"), node, box)
    graph.flush()
    graph.handler = outer
    over = graph.take()
    raised = compiler.branch_name()
    found = graph.handle(handler, node, "group-failed", [{"classes": [name], "as": raised} for name in ("Exception", "CancelledError")])
    group = ["new", "ExceptionGroup", ["unhandled errors in a TaskGroup", ["list", ["name", raised]]]]
    for clause, value in enumerate((group, ["name", raised])):
        graph.behind(found, "GUARD", clause)
        _cancel(compiler, node, tasks)
        graph.add("RAISE", node, "raise", value=value)
        graph.take()
    graph.give(over)
    return block


def _cancel(compiler: Statements, node: ast.AsyncWith, tasks: str) -> None:
    """Tasks that have not begun raise CancelledError when they are awaited or asked for their result."""
    graph, task = compiler.graph, ["name", "%task"]
    head = graph.add("LOOP_HEAD", node, "cancel", over=["name", tasks], into=task, comment="")  # explain() leaves it out
    graph.behind(head, "CONTINUE")
    graph.do(["assign", ["new", "CancelledError", []], ["attr", task, "error"]], node)
    graph.do(["assign", "failed", ["attr", task, "state"]], node)
    graph.lead(head, "BACK", node)
    graph.behind(head, "BREAK")


def created_task(compiler: Statements, node: ast.Call) -> Optional[Form]:
    """``group.create_task(call)``: the task, which is in the group from now on; None: it is another call."""
    function = node.func
    if not (isinstance(function, ast.Attribute) and function.attr == "create_task" and isinstance(function.value, ast.Name)
            and function.value.id in compiler.groups):
        return None
    if len(node.args) != 1 or any(k.arg != "name" for k in node.keywords) or not isinstance(node.args[0], ast.Call):
        compiler.source.refuse(node, "create_task takes a call", "Write group.create_task(charge(order)).")
    made = compiler.call_value(node.args[0], is_task=True)
    held = compiler.branch_name()
    append = ["method", ["name", compiler.groups[function.value.id]], "append", [["name", held]]]
    return ["item", ["list", [":=", held, made], append], 0]


def is_result(node: ast.Call) -> bool:
    """``task.result()``."""
    return isinstance(node.func, ast.Attribute) and node.func.attr == "result" and not node.args and not node.keywords
