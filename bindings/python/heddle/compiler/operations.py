"""Operations that Python does in a recorded step, because code of an operand's class decides: what they are called, what
they do, and the node that stands for one in the syntax tree. bypython.py says which operations these are."""
from __future__ import annotations

import ast
import operator
from types import MethodDescriptorType
from typing import Any, Callable, Optional

from ..actions import Action, Options
from ..unsupported import Unsupported
from .builtin import FUNCTIONS

BINARY: dict[Any, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.LShift: "<<",
    ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
UNARY: dict[Any, str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "inv", ast.Not: "not"}
COMPARE: dict[Any, str] = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
                           ast.NotIn: "not in"}


def _text(value: Any, conversion: str, spec: str) -> str:
    shows: dict[str, Callable[[Any], Any]] = {"r": repr, "s": str, "a": ascii, "": lambda given: given}
    return format(shows[conversion](value), spec)


def _order(keys: list[Any], reverse: Any = False) -> list[int]:
    """The places of the keys in their order: what is sorted by them stays where it is."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


def _call(value: Any, name: str, *args: Any, **named: Any) -> Any:
    """``value.name(...)``. A method of a built-in class is called as CPython does it then, by its class: complaints name that."""
    found = getattr(type(value), name, None)
    if isinstance(found, MethodDescriptorType) and name not in getattr(value, "__dict__", ()):
        return found(value, *args, **named)
    return getattr(value, name)(*args, **named)


def _call_named(value: Any, name: str, names: str, *args: Any) -> Any:
    """The same where the last arguments are given by name. `names`: with a comma between two."""
    named = names.split(",")
    count = len(args) - len(named)
    return _call(value, name, *args[:count], **dict(zip(named, args[count:])))


def _index(value: Any) -> Any:
    """The number that a subscript takes an object for. A value without __index__ is returned unchanged; the engine raises
    CPython's TypeError."""
    return operator.index(value) if hasattr(type(value), "__index__") else value


def _elements(value: Any) -> Any:
    """The elements of an argument that a call iterates over: of x in ``f(*x)``, ``zip(x, y)`` and ``enumerate(x, 1)``. A value
    whose class has neither __iter__ nor __getitem__ is returned unchanged; the engine raises CPython's TypeError, which
    names the function."""
    found = any(name in base.__dict__ for base in type(value).__mro__ for name in ("__iter__", "__getitem__"))
    return [*value] if found else value


DOES: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "neg": operator.neg, "pos": operator.pos, "inv": operator.invert, "not": operator.not_, "==": operator.eq,
    "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b, "attribute": getattr, "text": _text, "order": _order, "item": operator.getitem, "attribute of the class": getattr,
    "unpack": lambda value: [*value], "elements": _elements, "backwards": lambda value: [*reversed(value)], "index": _index,
    "slice": lambda value, begin, end, step: value[begin:end:step],
    "method": _call, "method with names": _call_named, **{name: function for function, name in FUNCTIONS.items()}}
DOES.update({f"{sign}=": getattr(operator, f"i{DOES[sign].__name__.rstrip('_')}") for sign in BINARY.values()})
GIVES: dict[str, type] = {
    **{name: str for name in ("text", "str", "repr", "ascii", "format", "bin", "hex", "oct", "chr")}, "len": int, "ord": int,
    **{name: bool for name in ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "not", "bool", "any", "all", "isinstance", "callable")}}
"""Operations that give a text, a number or a truth, whatever their operands are."""
METHODS = ("method", "method with names")
OF_CLASS = "attribute of the class"
"""Of an exception: where the object has no such attribute."""
_CHANGES = (list, dict, set, bytearray)
_actions: dict[str, Action[..., Any]] = {}


class PythonOp(ast.expr):
    """An operation on values that Python does."""

    _fields = ("operands",)
    operands: list[ast.expr]
    operation: str
    type: Any
    owners: tuple[Any, ...] = ()
    """Of a method: the classes that have it in code of their own, and of which the first operand may be an object."""


class Keywords(ast.expr):
    """What a call of an action gives by name, where one of several parts is ``**``: displays of dicts, and what stands
    behind ``**``."""

    _fields = ("parts",)
    parts: list[ast.expr]
    shown: str
    """How CPython names the function when it complains."""


def method_operands(function: ast.Attribute, node: ast.Call) -> tuple[str, list[ast.expr]]:
    """The operation that calls a method, without * and **, and its operands."""
    operands = [function.value, ast.Constant(function.attr)]
    if not node.keywords:
        return "method", [*operands, *node.args]
    names = ast.Constant(",".join(str(keyword.arg) for keyword in node.keywords))
    return "method with names", [*operands, names, *node.args, *(keyword.value for keyword in node.keywords)]


def keywords_of(node: ast.Call, function: Any) -> Keywords:
    made = Keywords()
    made.parts, made.shown = [], f"{function.__module__}.{function.__qualname__}"
    names: list[ast.keyword] = []

    def close() -> None:
        if names:
            keys: list[Optional[ast.expr]] = [ast.copy_location(ast.Constant(k.arg), k.value) for k in names]
            made.parts.append(ast.copy_location(ast.Dict(keys, [k.value for k in names]), names[0].value))
            names.clear()
    for keyword in node.keywords:
        if keyword.arg is None:
            close()
            made.parts.append(keyword.value)
        else:
            names.append(keyword)
    close()
    return ast.copy_location(made, node)


def _is_record(made: Any) -> bool:
    return hasattr(made, "__dataclass_fields__") or hasattr(made, "__pydantic_fields_set__") or hasattr(made, "__fields_set__")


def _shares(made: Any) -> bool:
    """Whether what an operation gives holds objects that can change: they would be other ones than the workflow's."""
    inner = made.values() if isinstance(made, dict) else made if isinstance(made, (list, tuple, set, frozenset)) else ()
    return any(isinstance(part, _CHANGES) or _is_record(part) or _shares(part) for part in inner)


def action_for(operation: str) -> Action[..., Any]:
    """The action that does the operation."""
    known = _actions.get(operation)
    if known is None:
        does = DOES[operation]

        def run(operands: list[Any]) -> Any:
            made = does(*operands)
            if operation not in GIVES and (_is_record(made) or _shares(made) or operation == OF_CLASS and isinstance(made, _CHANGES)):
                raise Unsupported(f"{operation} gives objects that can change, and an annotation says that it does not")
            return made
        run.__name__ = run.__qualname__ = f"python {operation}"
        known = _actions[operation] = Action(run, f"heddle.python.{operation}", Options())
    return known


def all_actions() -> dict[str, Action[..., Any]]:
    """Of every operation. A program serves them whatever its workflows use: instances of earlier versions may need others."""
    return {action.name: action for action in map(action_for, DOES)}
