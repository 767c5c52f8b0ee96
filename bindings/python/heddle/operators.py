"""What a class's own code says of its objects: their text, their equality, their truth, their operators.

The engine knows what operators do with the objects of classes that leave this to Python (a dataclass, a plain enum, an
exception). It does not run code of a class. The flags that :func:`own` gives tell the engine where such code decides;
there it raises :class:`heddle.Unsupported` instead of an answer. docs/IR.md lists the flags."""
from __future__ import annotations

import sys
import weakref
from types import FunctionType, MemberDescriptorType
from typing import Any

_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor", "matmul")
OPERATORS = (
    *(f"__{before}{name}__" for name in _ARITHMETIC for before in ("", "r", "i")),
    *(f"__{name}__" for name in (
        "lt", "le", "gt", "ge", "ne", "iter", "next", "contains", "getitem", "setitem", "delitem", "reversed", "len",
        "bool", "call", "index", "int", "float", "complex", "round", "trunc", "floor", "ceil", "neg", "pos", "invert", "abs",
        "bytes", "length_hint", "fspath")))
_TEXT = ("__str__", "__repr__", "__format__")
Flags = dict[str, bool]


def _found(cls: type, name: str) -> Any:
    """Where Python finds a method of the class's objects; None: nowhere."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def _home(cls: type, name: str) -> type:
    return next(base for base in cls.__mro__ if name in base.__dict__)


def _is(cls: type, name: str, *of: type) -> bool:
    """Whether the method is that of one of these classes, or of object; or there is none."""
    found = _found(cls, name)
    return found is None or any(found is _found(base, name) for base in (*of, object))


def _differs(cls: type, names: tuple[str, ...], *of: type) -> bool:
    return any(not _is(cls, name, *of) for name in names)


def is_python(cls: type, name: str) -> bool:
    """Whether a Python function stands where a built-in class has a slot."""
    found = _found(cls, name)
    return isinstance(getattr(found, "__func__", found), FunctionType)


_hiding: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def hides_fields(cls: Any) -> bool:
    """Whether code of the class says what its objects' fields are: a __getattribute__, or a descriptor in the place of a field."""
    known = _hiding.get(cls)
    if known is None:
        fields = [name for name, field in getattr(cls, "__dataclass_fields__", {}).items() if field._field_type.name == "_FIELD"]
        placed = [type(found) for found in (_found(cls, name) for name in fields)]
        known = _hiding[cls] = is_python(cls, "__getattribute__") or any(
            hasattr(kind, "__set__") and kind is not MemberDescriptorType for kind in placed)
    return known


# ---- Named tuples


def _is_generated_tuple(function: Any) -> bool:
    return isinstance(function, FunctionType) and function.__module__ == "collections"


def is_plain_tuple(cls: type) -> bool:
    """Whether a named tuple does what tuples do. Others are records: the engine must not take them apart."""
    return not any(not _is(cls, name, tuple) and not _is_generated_tuple(_found(cls, name))
                   for name in (*OPERATORS, *_TEXT, "__eq__", "__hash__", "__getattribute__"))


# ---- Records


def _is_generated(function: Any) -> bool:
    """Written by @dataclass."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return isinstance(function, FunctionType) and function.__code__.co_qualname.startswith("__create_fn__.<locals>.")


def _generated_here(cls: type, name: str) -> bool:
    """Whether @dataclass has written the method for these very fields."""
    fields = getattr(_home(cls, name), "__dataclass_fields__", None)
    return _is_generated(_found(cls, name)) and fields is not None and \
        list(fields) == list(getattr(cls, "__dataclass_fields__"))


def sets_by_code(cls: type) -> bool:
    """Whether code of the program says what it means to assign an attribute, as a constructor does, too."""
    return any(is_python(cls, name) and not _is_generated(_found(cls, name)) for name in ("__setattr__", "__delattr__"))


def only_orders(cls: type) -> bool:
    """Whether all operators of the class are those that @dataclass(order=True) writes: as keys its objects are what they are
    without these."""
    found = [name for name in OPERATORS if not _is(cls, name)]
    frozen = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
    return frozen and all(_generated_here(cls, name) for name in found) and \
        not any(own(cls, "record").get(flag) for flag in ("own_equal", "own_truth"))


def _dataclass(cls: Any) -> Flags:
    fields = getattr(cls, "__dataclass_fields__").values()
    frozen = bool(getattr(cls, "__dataclass_params__").frozen)
    shows = _generated_here(cls, "__repr__") and all(field.repr for field in fields)
    by_id = _is(cls, "__eq__")
    compares = by_id or _generated_here(cls, "__eq__") and all(field.compare for field in fields)
    own_hash = is_python(cls, "__hash__") and not _generated_here(cls, "__hash__")
    return {"own_text": not shows or _differs(cls, ("__str__", "__format__")), "by_id": by_id,
            "own_equal": not compares or own_hash or frozen and cls.__hash__ is None,
            "own_operators": not frozen and cls.__hash__ is not None and not by_id, "own_set": sets_by_code(cls)}


def _record(cls: Any) -> Flags:
    if hasattr(cls, "__dataclass_fields__"):
        return _dataclass(cls)
    if issubclass(cls, tuple):
        return {"own_text": True, "own_equal": True, "own_set": True, "own_operators": True}
    config = getattr(cls, "model_config", None) or getattr(cls, "__config__", None)
    checks = config.get("validate_assignment") if isinstance(config, dict) else getattr(config, "validate_assignment", False)
    base = next((b for b in cls.__mro__ if b.__module__.partition(".")[0] == "pydantic"), object)
    return {"own_text": True, "own_equal": True, "own_set": bool(checks) or is_frozen_model(cls) or not _is(cls, "__setattr__", base)}


def is_frozen_model(cls: Any) -> bool:
    """pydantic's own code says then what assigning a field raises."""
    config = getattr(cls, "model_config", None) or getattr(cls, "__config__", None)
    if isinstance(config, dict):
        return bool(config.get("frozen"))
    return bool(getattr(config, "frozen", False)) or not getattr(config, "allow_mutation", True)


# ---- Enums


def _is_its_value(cls: Any, kind: type) -> bool:
    """Whether a member is in every operator what its value is."""
    if kind not in (int, str, float) or _differs(cls, (*OPERATORS, "__eq__", "__hash__"), kind):
        return False
    raw: Any = {int: int.__int__, str: str.__str__, float: float.__float__}[kind]
    return all(type(member.value) is kind and raw(member) == member.value for member in cls.__members__.values())


def _enum(cls: Any) -> Flags:
    enum: Any = sys.modules["enum"].Enum
    kind: type = getattr(cls, "_member_type_", object)
    bare = kind is not object and _is_its_value(cls, kind)
    other = not bare and (kind is not object or not _is(cls, "__eq__", enum) or not _is(cls, "__hash__", enum))
    shows = all(_found(cls, name) is enum.__dict__[name] for name in ("__str__", "__format__"))
    text = bare and all(_found(cls, name) in (_found(kind, name), kind.__repr__) for name in ("__str__", "__format__"))
    return {"bare": bare, "own_operators": kind is not object, "own_equal": other, "own_truth": kind is not object and not bare,
            "bare_text": text, "own_text": _found(cls, "__repr__") is not enum.__dict__["__repr__"] or not (shows or text),
            "partial": True}


# ---- Exceptions


_PLAIN_TEXT = (BaseException, KeyError, OSError, UnicodeEncodeError, UnicodeDecodeError, BaseExceptionGroup)


def _exception(cls: type) -> Flags:
    return {"own_text": _differs(cls, ("__str__", "__repr__", "__format__"), *_PLAIN_TEXT),
            "own_equal": _differs(cls, ("__eq__", "__hash__"), BaseException), "own_set": sets_by_code(cls)}


# ---- All


_known: weakref.WeakKeyDictionary[type, Flags] = weakref.WeakKeyDictionary()


def own(cls: type, kind: str) -> Flags:
    """The flags of a class of this kind ("record", "exception", "enum", "tuple") that are true."""
    known = _known.get(cls)
    if known is None:
        flags: Flags = {} if kind == "tuple" else {"record": _record, "exception": _exception, "enum": _enum}[kind](cls)
        if kind == "record" or kind == "exception" or kind == "enum" and not flags["bare"]:
            enum = sys.modules.get("enum")
            of: tuple[Any, ...] = (enum.Enum,) if kind == "enum" and enum else ()
            flags["own_operators"] = flags.get("own_operators", False) or _differs(cls, OPERATORS, *of)
            flags["own_truth"] = flags.get("own_truth", False) or _differs(cls, ("__bool__", "__len__"), *of)
        known = _known[cls] = {name: True for name, value in flags.items() if value}
    return known
