"""Classes that a workflow names: how the engine knows them, and which of their constructors it can run itself."""
from __future__ import annotations

import dataclasses
import enum
import inspect
import typing
from types import FunctionType
from typing import Any, Optional

from .. import operators, values
from ..operators import is_python
from .graph import Form

BUILTIN_TYPES: dict[type, str] = {cls: cls.__name__ for cls in (
    object, int, bool, float, str, bytes, tuple, list, dict, set, range, type)}
BUILTIN_TYPES[type(None)] = "NoneType"
BUILTIN_TYPES[enum.Enum] = "Enum"

_OF_ENGINE: frozenset[str] = frozenset(
    "dict_keys dict_values dict_items generator list_iterator list_reverseiterator dict_reversekeyiterator enumerate zip map filter "
    "reversed builtin_function_or_method".split())
"""Other built-in classes that the engine knows: of objects that live during one evaluation."""


def is_unknown(cls: type) -> bool:
    """A built-in class of which a workflow has no objects: complex, bytearray, slice."""
    return cls.__module__ == "builtins" and cls not in BUILTIN_TYPES and cls.__name__ not in _OF_ENGINE and \
        not issubclass(cls, BaseException) and not values.is_standard(cls)


def class_name(cls: type) -> str:
    """The name under which values of the class cross: built-in classes by their own, others as "module:Class"."""
    if cls in BUILTIN_TYPES:
        return BUILTIN_TYPES[cls]
    return values.remember_class(cls)


def is_namedtuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_field_defaults")


def is_model(cls: type) -> bool:
    """pydantic 1 or 2."""
    return hasattr(cls, "model_fields") or hasattr(cls, "__fields__") and hasattr(cls, "__validators__") \
        or hasattr(cls, "__fields__") and hasattr(cls, "parse_obj")


def class_kind(cls: type) -> Optional[str]:
    """What the engine takes objects of the class for; None: it cannot have any."""
    if issubclass(cls, BaseException):
        return "exception"
    if issubclass(cls, enum.Enum):
        return "enum"
    if operators.hides_fields(cls):
        return None
    if is_namedtuple(cls):
        return "tuple" if operators.is_plain_tuple(cls) else "record"
    if dataclasses.is_dataclass(cls) or is_model(cls):
        return "record"
    return None


def field_names(cls: type) -> list[str]:
    if is_namedtuple(cls):
        return list(getattr(cls, "_fields"))
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    if hasattr(cls, "model_fields"):
        return list(getattr(cls, "model_fields"))
    if is_model(cls):
        return list(getattr(cls, "__fields__"))
    return []


def lacks(cls: Any, name: str) -> bool:
    """Whether no object of a model's class, or of one below it, can have the attribute."""
    config = getattr(cls, "model_config", None) or getattr(cls, "__config__", None)
    extra = config.get("extra") if isinstance(config, dict) else getattr(config, "extra", None)
    code = next((c for c in cls.__mro__ if "__getattr__" in c.__dict__), object)
    return is_model(cls) and not hasattr(cls, name) and name not in field_names(cls) and not name.startswith("_") and \
        extra != "allow" and code.__module__.partition(".")[0] in ("builtins", "pydantic") and \
        all(lacks(below, name) for below in cls.__subclasses__())


def _has_more(cls: type, fields: list[str]) -> bool:
    """Whether its objects have attributes that are not data: methods, properties, constants of the class. A metaclass may
    add some."""
    if type(cls) is not type:
        return True
    for name in dir(cls):
        if name in ("__getattr__", "__getattribute__") and getattr(cls, name) is not getattr(object, name, None):
            return True
        if not name.startswith("__") and name not in fields and name not in dir(BaseException):
            return True
    return False


class ClassTable:
    """The classes of one workflow, in the order in which they were met; a base stands before what derives from it."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Form]] = {}

    def name(self, cls: type) -> Optional[str]:
        """Its name, and an entry if it is no built-in one. None: the engine cannot have objects of it."""
        name = class_name(cls)
        standard = values.is_standard(cls)
        if ":" not in name and not standard or name in self.entries:
            return name
        if standard:
            return self._standard(cls, name)
        kind = class_kind(cls)
        if kind is None:
            return None
        above = [] if kind == "tuple" else [c for c in cls.__mro__[1:-1] if c in BUILTIN_TYPES or class_kind(c) == kind]
        parent = next((c for c in above if class_kind(c) == kind), object)
        base = self.name(parent) or "object"
        more = [self.name(c) for c in above if c not in parent.__mro__]
        self.entries[name] = self._entry(cls, name, kind, base)
        if more:
            self.entries[name]["more"] = more
        if kind in ("record", "tuple"):
            self.meet(cls)
        return name

    def _standard(self, cls: type, name: str) -> str:
        """A class of the standard library: all that the engine knows of it is what is above it."""
        above = [self.name(c) for c in cls.__mro__[1:-1] if values.is_standard(c)]
        self.entries[name] = {"name": name, "kind": "record", "own": True, "own_set": True, "open": True, "partial": True,
                              **({"base": above[0]} if above else {}), **({"more": above[1:]} if above[1:] else {})}
        for below in cls.__subclasses__():
            if values.is_standard(below):
                self.name(below)  # an object of Path is a PosixPath
        return name

    def _entry(self, cls: type, name: str, kind: str, base: str) -> dict[str, Form]:
        entry: dict[str, Form] = {"name": name, "kind": kind}
        if base != "object":
            entry["base"] = base
        fields = field_names(cls)
        if fields:
            entry["fields"] = fields
        if kind == "record":
            entry.update(_record_flags(cls))
        if kind != "enum" and _has_more(cls, fields):
            entry["partial"] = True
        if kind == "exception" and runs_code(cls):
            entry["own_new"] = True
        entry.update(operators.own(cls, kind))
        return entry

    def meet(self, function: Any) -> None:
        """Declares the classes that the annotations of a function or class name: its arguments, results and fields are of them."""
        try:
            hints = typing.get_type_hints(function)
        except Exception:  # an annotation may name what is only there for type checkers
            return
        for hint in hints.values():
            self.declare(hint)

    def declare(self, hint: Any) -> None:
        """Declares the classes that an annotation names."""
        for part in typing.get_args(hint):
            self.declare(part)
        if isinstance(hint, type) and values.is_standard(hint):
            self.name(hint)
        elif isinstance(hint, type) and class_name(hint) not in self.entries and ":" in class_name(hint) and \
                class_kind(hint) is not None:
            self.name(hint)

    def add(self, name: str, **flags: Form) -> None:
        """A class of records that no Python class stands behind."""
        self.entries.setdefault(name, {"name": name, "kind": "record", **flags})


def _record_flags(cls: type) -> dict[str, Form]:
    flags: dict[str, Form] = {}
    if dataclasses.is_dataclass(cls):
        params: Any = getattr(cls, "__dataclass_params__")
        if params.frozen:
            flags["frozen"] = True
        elif not hasattr(cls, "__slots__"):
            flags["open"] = True
        return flags
    return flags


def runs_code(cls: type) -> bool:
    """Whether making an object runs Python that the engine does not know: then a recorded step makes it."""
    if is_python(type(cls), "__call__"):
        return True
    if issubclass(cls, BaseException):
        return any(is_python(cls, name) for name in ("__init__", "__new__", "__str__", "__repr__"))
    if is_namedtuple(cls):
        return is_python(cls, "__init__") or any("__new__" in c.__dict__ and "_fields" not in c.__dict__ for c in cls.__mro__ if c is not tuple and c is not object)
    if dataclasses.is_dataclass(cls):
        params: Any = getattr(cls, "__dataclass_params__")
        made = cls.__dict__.get("__init__")
        own = not params.init or (isinstance(made, FunctionType) and made.__code__.co_filename != "<string>")
        return own or hasattr(cls, "__post_init__") or is_python(cls, "__new__") or operators.sets_by_code(cls) or \
            any(not _is_plain_field(field) for field in dataclasses.fields(cls)) or _has_init_vars(cls)
    return True


def _has_init_vars(cls: Any) -> bool:
    """Whether the constructor takes what the objects do not keep."""
    fields = {field.name for field in dataclasses.fields(cls)}
    return any(name not in fields for name in inspect.signature(cls).parameters)


def _is_plain_field(field: Any) -> bool:
    return bool(field.init) and field.default_factory in (dataclasses.MISSING, list, dict, set)
