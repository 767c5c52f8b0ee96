"""Inputs that come from outside as JSON: a command line, HTTP.

Where ``run`` says ``order: Order``, a dict is made an Order by a recorded step, as its constructor would be. Scalars are
never converted, and what has its type already is left alone."""
from __future__ import annotations

import ast
import typing
from typing import TYPE_CHECKING, Any, Optional

from .. import values
from ..actions import Action, Options
from .graph import Form

if TYPE_CHECKING:
    from .statements import Statements


def conform_inputs(compiler: Statements, workflow: str, function: Any, at: ast.AST) -> None:
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # an annotation may name what is only there for type checkers
        return
    for name in compiler.scope.params[1:]:
        test = _is_plain(["name", name], hints.get(name))
        if test is None:
            continue
        over = compiler.skip(test, False, at)
        action = _maker(workflow, name, hints[name])
        compiler.action_node(at, action, [["value", ["name", name]]], Options())(["name", name])
        compiler.graph.give(over)


def _is_plain(value: Form, hint: Any) -> Optional[Form]:
    """Whether the value is data that stands for what the annotation names; None: it names nothing that is made."""
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        made = values.is_model(hint) or values.is_dataclass(hint)
        return ["call", "isinstance", [value, ["type", "dict"]]] if made else None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, dict) and args:
        inner = _is_plain(["name", "%x"], args[-1])
        if inner is None:
            return None
        items: Form = value if origin is list else ["method", value, "values", []]
        kind = ["call", "isinstance", [value, ["type", origin.__name__]]]
        return ["and", kind, ["call", "any", [["gen", inner, ["for", ["name", "%x"], items]]]]]
    some = [arg for arg in args if arg is not type(None)]
    return _is_plain(value, some[0]) if len(some) == 1 and origin not in (list, dict, tuple, set) else None


def _maker(workflow: str, name: str, hint: Any) -> Action[..., Any]:
    def make(value: Any) -> Any:
        return values.conform(value, hint)
    make.__name__ = make.__qualname__ = f"input {name}"
    make.__annotations__ = {"return": hint}
    return Action(make, f"heddle.input.{workflow}.{name}", Options())
