"""``task = asyncio.create_task(call)`` with a later ``await task`` in the same block.

In CPython a task begins when the function that has created it next waits. So there are two forms:

- the first thing that is awaited behind ``create_task`` is the task itself, or ``asyncio.gather`` of it: it is a call that
  is kept (coroutines.py), and begins there;
- other things are awaited before. These statements are a branch, and the task is a branch beside them, from the first
  statement that waits up to the one that awaits the task. What the task raises is kept for the ``await``.

Branches are nested. Tasks that would overlap otherwise are refused, and so is a way out between the two places: in CPython
the task would go on without anybody who waits for it.
"""
from __future__ import annotations

import ast
import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional, Union

from .graph import Form, Handler
from .groups import restore_names, save_names
from .names import bound_names
from .tree import walk

if TYPE_CHECKING:
    from .statements import Block, Boundary, Statements

CREATES: tuple[Any, ...] = (asyncio.create_task, asyncio.ensure_future)
_ADVICE = ("Await it in a later statement of the same block, several in statements of their own or by asyncio.gather; or create it in "
           "`async with asyncio.TaskGroup() as group:`.")


@dataclass
class Task:
    """A variable with a task, or with a list of them; statements are named by their numbers in the block."""

    name: str
    call: ast.Call
    is_list: bool
    created: int
    starts: int
    awaited: int
    rank: int
    """Tasks that begin at the same place begin in this order."""

    @property
    def is_beside(self) -> bool:
        """Whether other things are awaited while it runs."""
        return self.starts < self.awaited


def is_creation(compiler: Statements, node: Optional[ast.AST]) -> bool:
    return isinstance(node, ast.Call) and any(compiler.known_call(node) is known for known in CREATES)


def find_tasks(compiler: Statements, body: Block) -> list[Task]:
    """The tasks that statements of the block create."""
    found = [task for number in range(len(body)) if (task := _task(compiler, body, number)) is not None]
    for a in found:
        for b in found:
            if a.is_beside and b.is_beside and a.starts < b.starts <= a.awaited < b.awaited:
                compiler.source.refuse(b.call, f"the task {b.name} begins while {a.name} runs, and is awaited after it",
                                       f"Await {b.name} before {a.name}, or create both before the first `await`.")
    return found


def _task(compiler: Statements, body: Block, number: int) -> Optional[Task]:
    node = body[number]
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else \
        node.target if isinstance(node, ast.AnnAssign) else None
    value: Any = getattr(node, "value", None)
    call = value.elt if isinstance(value, ast.ListComp) else value
    if not isinstance(target, ast.Name) or not is_creation(compiler, call):
        return None
    _check_call(compiler, call)
    awaited = next((i for i in range(number + 1, len(body)) if _names(target.id, body[i])), None)
    first = first_evaluated(body[awaited]) if awaited is not None else None
    if awaited is None or not isinstance(first, ast.Await) or not _awaits(compiler, first, target.id):
        if awaited is not None:
            _check_use(compiler, body[awaited], target.id)
        at = call if awaited is None else next(n for n in walk(body[awaited]) if isinstance(n, ast.Name) and n.id == target.id)
        compiler.source.refuse(at, f"the task {target.id} is not awaited by the statement that uses it first", _ADVICE)
    starts = next(i for i in range(number + 1, awaited + 1) if _waits(body[i]))
    task = Task(target.id, call, isinstance(value, ast.ListComp), number, starts, awaited, len(compiler.task_calls) + 2)
    if task.is_beside and not isinstance(first.value, ast.Name):
        compiler.source.refuse(call, f"the tasks that asyncio.gather awaits begin earlier, where {ast.unparse(body[starts])[:40]} waits",
                               "Create them behind that statement, or give asyncio.gather all that is to run at once.")
    _check_uses(compiler, task)
    compiler.task_calls.add(call)
    return task


def _check_call(compiler: Statements, node: ast.Call) -> None:
    names = [k for k in node.keywords if k.arg == "name" and isinstance(k.value, ast.Constant)]
    if len(node.args) != 1 or len(names) != len(node.keywords) or not compiler.is_awaitable(node.args[0]):
        if node.args:
            compiler.check_defined(node.args[0])
        compiler.source.refuse(node, "create_task takes a call", "Write asyncio.create_task(charge(order)).")


def _check_uses(compiler: Statements, task: Task) -> None:
    for node in walk(compiler.definition):
        if not task.is_list and _is_method(node, task.name):
            _refuse_method(compiler, node)


def _is_method(node: ast.AST, name: str) -> bool:
    """Whether it is ``name.cancel`` or the like."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name and node.attr != "result"


def _refuse_method(compiler: Statements, node: ast.AST) -> NoReturn:
    compiler.source.refuse(node, f"{ast.unparse(node)} of a task", "A task is awaited; asyncio.wait_for and asyncio.timeout "
                           "cancel what takes too long.")


def _check_use(compiler: Statements, statement: ast.stmt, name: str) -> None:
    """The statement uses the task and does not await it: refuses what it does instead, where that is asyncio.wait or a method."""
    for node in walk(statement):
        if isinstance(node, ast.Call) and _names_it(node, name):
            compiler.refuse_known(node, compiler.known_call(node))
        if _is_method(node, name):
            _refuse_method(compiler, node)


def _names_it(call: ast.Call, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for arg in call.args for node in walk(arg))


def _names(name: str, statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in walk(statement))


def _waits(statement: ast.stmt) -> bool:
    return any(isinstance(node, (ast.Await, ast.AsyncWith)) for node in walk(statement))


def _awaits(compiler: Statements, node: ast.Await, name: str) -> bool:
    """``await task`` or ``await asyncio.gather(..., task, *tasks, ...)``."""
    parts = [node.value]
    if isinstance(node.value, ast.Call) and compiler.known_call(node.value) is asyncio.gather:
        parts = [arg.value if isinstance(arg, ast.Starred) else arg for arg in node.value.args]
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


# ---- What is evaluated first

_TRIVIAL = "trivial"
"""Constants and variables: it is all the same when they are evaluated."""
First = Union[ast.AST, str]


def first_evaluated(node: ast.stmt) -> Optional[ast.AST]:
    """The first expression of a statement that does something; None: none, or not on every way."""
    if isinstance(node, ast.Try):
        return first_evaluated(node.body[0])
    if isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Name):
        return None
    for field in ("value", "exc", "test", "iter", "subject"):
        value = getattr(node, field, None)
        if isinstance(value, ast.expr):
            found = _first(value)
            return found if isinstance(found, ast.AST) else None
    return None


def _first(node: ast.expr) -> First:
    if isinstance(node, (ast.Constant, ast.Name, ast.Lambda)):
        return _TRIVIAL
    if isinstance(node, ast.Await):
        inside = _inside(node.value)
        return inside if isinstance(inside, ast.Await) else node
    found = _first_of(_parts(node))
    return node if found is _TRIVIAL and not isinstance(node, (ast.Tuple, ast.List, ast.Starred)) else found


def _inside(node: ast.expr) -> First:
    """What is awaited before the awaited call itself: ``await charge(await task)``."""
    return _first_of(_parts(node)) if isinstance(node, ast.Call) else _TRIVIAL


def _first_of(nodes: list[ast.expr]) -> First:
    return next((found for found in map(_first, nodes) if found is not _TRIVIAL), _TRIVIAL)


def _parts(node: ast.expr) -> list[ast.expr]:
    """What is evaluated before the expression itself, on every way."""
    if isinstance(node, ast.Call):
        plain = all(isinstance(n, (ast.Name, ast.Attribute, ast.expr_context)) for n in walk(node.func))
        return [*([] if plain else [node.func]), *node.args, *(k.value for k in node.keywords)]
    if isinstance(node, ast.Dict):
        return [part for pair in zip(node.keys, node.values) for part in pair if part is not None]
    if isinstance(node, ast.BoolOp):
        return node.values[:1]
    if isinstance(node, ast.IfExp):
        return [node.test]
    if isinstance(node, ast.Compare):
        return [node.left, node.comparators[0]]
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return [node.generators[0].iter]
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def refuse_leaving(compiler: Statements, task: Task, wanted: str, at: ast.AST) -> None:
    compiler.source.refuse(at, f"`{wanted}` before the task {task.name} is awaited", f"Await {task.name} before.")


# ---- A task that has not begun


class Early(Handler):
    """Of statements that stand before the first that waits."""


def compile_before(compiler: Statements, tasks: list[Task], act: Callable[[], None]) -> None:
    """What stands between the creation of tasks and the first thing that waits. If it raises, the tasks begin nevertheless, and
    go on beside whatever handles the exception, as in CPython."""
    graph, node = compiler.graph, tasks[-1].call
    graph.flush()
    inside = graph.handler
    outer = inside.outer if isinstance(inside, Early) else inside  # the tasks of that one are among these
    graph.handler = handler = Early(outer)
    act()
    graph.flush()
    graph.handler = outer
    over = graph.take()
    raised = compiler.branch_name()
    found = graph.handle(handler, node, "task-early", [{"as": raised}])
    graph.behind(found, "GUARD", 0)
    head = graph.add("FAN_HEAD", node, graph.label("task"), here=1)
    graph.handler = None
    graph.behind(head, "ELEM", 0)
    graph.add("RAISE", node, "raise", value=["name", raised])
    ends = []
    for number, task in enumerate(tasks, 1):
        graph.take()
        graph.behind(head, "ELEM", number)
        graph.add("CALC", node, "after")  # what handles the exception goes on first
        _run(compiler, task)
        graph.one_end(node)
        ends += graph.take()
    graph.give(ends)
    graph.handler = outer
    compiler.barrier(node, {}, None, None)
    graph.add("RAISE", node, "raise", value=["name", raised])  # not reached, but a barrier must lead somewhere
    graph.take()
    graph.handler = inside
    graph.give(over)


# ---- A task beside statements


def compile_beside(compiler: Statements, task: Task, body: Block, number: int, tasks: list[Task]) -> None:
    """The statements up to the one that awaits the task, as a branch, and the task beside them."""
    graph, node = compiler.graph, task.call
    region = body[number:task.awaited]
    for part in (inner for statement in region for inner in walk(statement)):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del):
            compiler.source.refuse(part, f"a variable is deleted while the task {task.name} runs", "Set it to None, or delete it later.")
    names = sorted(bound_names(region) & compiler.scope.locals)
    box = compiler.keep(["dict"], node)
    graph.flush()
    outer, handler = graph.handler, Handler(graph.handler)
    graph.handler = handler
    label, kind = graph.label("task"), "ELEM"
    value: Form = ["name", compiler.scope.variable(task.name)]
    if task.is_list:
        head = graph.add("FAN_HEAD", node, label, here=task.rank, over=["list", None, ["*", value]], into=["name", "%task"])
        graph.handler = None
        graph.behind(head, "ELEM")
        head, kind = graph.add("BRANCH", node, "which", when=[["cmp", ["name", "%task"], "is", None]]), "GUARD"
        value = ["name", "%task"]
    else:
        head = graph.add("FAN_HEAD", node, label, here=task.rank)
    graph.handler = None
    graph.behind(head, kind, 0)
    _statements(compiler, task, body, number, tasks, names, box)
    graph.one_end(node)
    ends = graph.take()
    graph.behind(head, kind, 1)
    _run_one(compiler, task, value)
    graph.one_end(node)
    graph.give(ends)
    graph.handler = handler
    compiler.barrier(node, {}, None, None)
    graph.handler = outer
    _either_way(compiler, node, handler, "task-failed", lambda: restore_names(compiler, node, names, box))


def _either_way(compiler: Statements, node: ast.AST, handler: Handler, name: str, act: Callable[[], None]) -> None:
    """Does something behind what stands before, and also before an exception that ``handler`` catches goes on."""
    graph = compiler.graph
    act()
    over = graph.take()
    raised = compiler.branch_name()
    found = graph.handle(handler, node, name, [{"as": raised}])
    graph.behind(found, "GUARD", 0)
    act()
    graph.add("RAISE", node, "raise", value=["name", raised])
    graph.take()
    graph.give(over)


def _statements(compiler: Statements, task: Task, body: Block, number: int, tasks: list[Task], names: list[str], box: Form) -> None:
    """A branch has its own variables: what the statements assign goes into the dict when they end, in whichever way."""
    graph, node = compiler.graph, task.call
    handler = Handler(None)
    graph.handler = handler
    block = compiler.between(body, number, task.awaited, tasks, box)
    for wanted, at in block.wanted.items():
        refuse_leaving(compiler, task, wanted, at)
    graph.flush()
    graph.handler = None
    _either_way(compiler, node, handler, "task-left", lambda: save_names(compiler, node, names, box))


def _run(compiler: Statements, task: Task) -> None:
    """The branch of a task, or of a list of them."""
    graph, node = compiler.graph, task.call
    tasks: Form = ["name", compiler.scope.variable(task.name)]
    if task.is_list:
        head = graph.add("FAN_HEAD", node, "each", over=tasks, into=["name", "%task"])
        graph.behind(head, "ELEM")
        compiler.await_value(node, ["name", "%task"], None)
        compiler.barrier(node, {"mode": "settled"}, None, None)
        return
    _run_one(compiler, task, tasks)


def _run_one(compiler: Statements, task: Task, value: Form) -> None:
    """The task's own branch. An exception of the task is kept in the task: it is raised where the task is awaited."""
    graph, node = compiler.graph, task.call
    handler = Handler(None)
    graph.handler = handler
    compiler.await_value(node, value, None)
    graph.flush()
    graph.handler = None
    over = graph.take()
    found = graph.handle(handler, node, "task-raised", [{"classes": ["Exception", "CancelledError"], "as": compiler.branch_name()}])
    graph.behind(found, "GUARD", 0)
    graph.give(over)
