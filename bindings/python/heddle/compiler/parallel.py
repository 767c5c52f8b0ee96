"""Which loops of a `concurrent` workflow run their iterations at once.

Only a loop whose iterations cannot tell: its body is one action, whose arguments come from the element and from what the
loop does not change, and an append of the result to a list that was made empty just before. Everything else stays a
loop, with the reason.
"""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Union

from .builtin import CHANGING
from .names import target_names
from .tree import walk

if TYPE_CHECKING:
    from .statements import Statements


@dataclass
class Parallel:
    """A loop that runs at once: the awaited call of an iteration, and the list that gets the results."""

    call: ast.Await
    result: str


def parallel_loop(compiler: Statements, body: list[ast.stmt], number: int) -> Union[Parallel, str]:
    """The loop at this place of a block, or why it is not parallel."""
    node = body[number]
    assert isinstance(node, ast.For)
    steps = sum(isinstance(part, ast.Await) or isinstance(part, ast.Call) and compiler.is_step(part)
                for statement in node.body for part in walk(statement))
    if steps > 1:
        return f"its body has {steps} steps, and only a loop with one action is made parallel"
    if node.orelse:
        return "it has an else"
    found = _shape(node)
    if isinstance(found, str):
        return found
    call, result, bound = found
    targets = target_names(node.target)
    return (_not_plain(compiler, node, targets) or _not_pure(compiler, call, result)
            or _not_fresh(body, number, result, node) or _read_later(compiler, node, [*targets, *bound])
            or Parallel(call, result))


def _shape(node: ast.For) -> Union[tuple[ast.Await, str, list[str]], str]:
    """The awaited call, the list, and the name between them if there is one."""
    other = "its body is not one awaited call whose result is appended to a list"
    first, last = node.body[0], node.body[-1]
    appended = _append(last)
    if appended is None or len(node.body) > 2:
        return other
    result, value = appended
    if len(node.body) == 1:
        return (value, result, []) if isinstance(value, ast.Await) else other
    target = first.targets[0] if isinstance(first, ast.Assign) and len(first.targets) == 1 else \
        first.target if isinstance(first, ast.AnnAssign) else None
    if not isinstance(first, (ast.Assign, ast.AnnAssign)) or not isinstance(first.value, ast.Await) or \
            not isinstance(target, ast.Name) or not isinstance(value, ast.Name) or value.id != target.id:
        return other
    return first.value, result, [target.id]


def _append(node: ast.stmt) -> Optional[tuple[str, ast.expr]]:
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append" and \
            isinstance(call.func.value, ast.Name) and len(call.args) == 1 and not call.keywords and \
            not isinstance(call.args[0], ast.Starred):
        return call.func.value.id, call.args[0]
    return None


def _not_plain(compiler: Statements, node: ast.For, targets: list[str]) -> str:
    for part in walk(node.target):
        if isinstance(part, (ast.Attribute, ast.Subscript)):
            return "an iteration assigns something that outlives it"
    return "what it goes through waits" if compiler.waits(node.iter) else ""


def _not_pure(compiler: Statements, call: ast.Await, result: str) -> str:
    """Whether an iteration can see another through the arguments of its call."""
    if not isinstance(call.value, ast.Call) or not compiler.is_plain_action(call.value):
        return "what it awaits is not a call of an action"
    for part in walk(call.value):
        if isinstance(part, ast.NamedExpr):
            return f"an iteration assigns {part.target.id}"
        if isinstance(part, ast.Name) and part.id == result:
            return f"an iteration reads {result}, which the one before has changed"
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in CHANGING:
            return f"the arguments change an object with .{part.func.attr}()"
    return ""


def _not_fresh(body: list[ast.stmt], number: int, result: str, node: ast.For) -> str:
    """Nobody else may have the list: it is made empty in the same block, and not named between there and the loop."""
    if any(isinstance(part, ast.Name) and part.id == result for part in walk(node.iter)):
        return f"it goes through {result} itself"
    for statement in reversed(body[:number]):
        if not any(isinstance(part, ast.Name) and part.id == result for part in walk(statement)):
            continue
        value = getattr(statement, "value", None)
        targets = statement.targets if isinstance(statement, ast.Assign) else \
            [statement.target] if isinstance(statement, ast.AnnAssign) else []
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and isinstance(value, ast.List) and not value.elts:
            return ""
        break
    return f"{result} is not made empty just before the loop, so that something else may have it"


def _read_later(compiler: Statements, node: ast.For, names: list[str]) -> str:
    """Variables of an iteration end with it."""
    for name in names:
        inside = sum(isinstance(part, ast.Name) and part.id == name for part in walk(node))
        if sum(isinstance(part, ast.Name) and part.id == name for part in walk(compiler.definition)) > inside:
            return f"{name} is used outside of the loop"
    return ""
