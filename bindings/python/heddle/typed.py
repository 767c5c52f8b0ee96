"""Cells with a type: objects as plain data in the document, and back.

What is written is read back equal, or the write raises a TypeError. A write makes the data, reads them as a later read
would, and looks for a difference; so a type that plain data cannot stand for is refused, whatever the reason. A dataclass is
made again without its ``__init__``, as it is for workflows; a pydantic model is validated.
"""
from __future__ import annotations

import collections.abc
import functools
import json
import reprlib
import types
import typing
from typing import Any, Callable, Iterable, Optional

from . import _heddle, values

Load = Callable[[Any], Any]

_PLAIN = (Any, object, None, type(None), bool, int, float, str, bytes, list, dict)
"""Types of the document itself: their values need no work."""
_LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Collection, collections.abc.Iterable)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def model_of(cls: Any, cell: str) -> tuple[Optional[Load], Optional[Load]]:
    """How the data of this cell become a value of the type, and back. Plain types need nothing."""
    if any(cls is plain for plain in _PLAIN):
        return None, None
    return lambda data: _read(data, cls, cell), lambda value: _written(value, cls, cell)


def _read(data: Any, cls: Any, cell: str) -> Any:
    try:
        return load(data, cls)
    except (TypeError, ValueError, LookupError) as error:
        what = f"{cell} cannot be read as {getattr(cls, '__qualname__', cls)}"
        if hasattr(error, "errors"):  # pydantic's, whose parts programs look at
            error.add_note(what)
            raise
        raise _heddle.InputError(f"{what}: {error}") from error


def _written(value: Any, cls: Any, cell: str) -> Any:
    try:
        data = dump(value)
        back = load(data, cls)
    except (TypeError, ValueError, LookupError) as error:
        raise TypeError(f"{cell}: {reprlib.repr(value)} cannot be stored as {getattr(cls, '__qualname__', cls)}: {error}") from error
    found = difference(value, back)
    if found is not None:
        place, given, read = found
        raise TypeError(f"{cell}: {place} cannot be stored as it is: {reprlib.repr(given)} would be read as {reprlib.repr(read)}")
    return data


# ---- Kinds of classes


def _names(cls: Any) -> Iterable[str]:
    """The fields of a dataclass or model."""
    if values.is_dataclass(cls):
        return [field.name for field in values.dataclass_fields(cls)]
    for kind in ("model_fields", "__fields__"):
        if hasattr(cls, kind):
            return typing.cast("Iterable[str]", getattr(cls, kind))
    return ()


def _is_record(cls: Any) -> bool:
    return isinstance(cls, type) and (values.is_model(cls) or values.is_dataclass(cls))


def _fields(v: Any) -> dict[str, Any]:
    """What a dataclass or model is made of. An attribute that is no field is one part more: it would be lost."""
    cls = type(v)
    fields = {name: getattr(v, name) for name in _names(cls) if hasattr(v, name)}
    more = {**getattr(v, "__dict__", {}), **(getattr(v, "__pydantic_extra__", None) or {})}
    return {**fields, **{name: part for name, part in more.items()
                         if not name.startswith("__") and not isinstance(getattr(cls, name, None), functools.cached_property)}}


# ---- To plain data


def dump(v: Any) -> Any:
    """The value as the data of a document. What a document cannot hold stays as it is: the write refuses it."""
    cls = type(v)
    if values.is_enum(cls):
        return dump(v.value)
    if values.is_model(cls):
        return _dump_model(v, cls)
    if values.is_dataclass(cls):
        return {name: dump(getattr(v, name)) for name in _names(cls) if hasattr(v, name)}
    if isinstance(v, dict):
        return {key: dump(item) for key, item in v.items()}
    if isinstance(v, (list, tuple)):
        return [dump(item) for item in v]
    return v


def _dump_model(v: Any, cls: Any) -> Any:
    try:
        return values.plain_model(v)
    except (TypeError, ValueError) as error:
        for name in _names(cls):
            try:
                values.plain_model(v, include={name})
            except (TypeError, ValueError) as refused:
                raise TypeError(f"{cls.__qualname__}.{name}: {refused}") from error
        raise


# ---- From plain data


def load(data: Any, hint: Any, exact: bool = False) -> Any:
    """The value that the annotation describes. What it says nothing about stays plain data. ``exact``: a ValueError for a
    dataclass whose fields or Literals are others, which a member of a union must not have."""
    cls, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if cls is typing.Union or cls is types.UnionType:
        one_of = [arg for arg in args if arg is not type(None)]
        return load(data, _alternative(data, args) if len(one_of) > 1 else one_of[0], exact)
    if cls is typing.Annotated:
        return load(data, args[0], exact)
    if cls is typing.Literal and exact and not any(type(dump(arg)) is type(data) and dump(arg) == data for arg in args):
        raise ValueError(f"{reprlib.repr(data)} is none of {args}")
    if data is None or not isinstance(cls, type):
        return data
    if _is_record(cls) and isinstance(data, cls):  # in a result of a workflow, whose objects were made before
        return data
    if values.is_enum(cls):
        return data if isinstance(data, cls) else cls(data)
    if values.is_model(cls):
        return _load_model(data, cls)
    if values.is_dataclass(cls):
        return _load_dataclass(data, cls, exact)
    if isinstance(data, dict):
        return _load_dict(data, cls, args, exact)
    return _load_list(data, cls, args, exact) if isinstance(data, list) else data


def _load_model(data: Any, cls: Any) -> Any:
    """The data are JSON: a strict model takes a date or a tuple from that, and not from Python's text or list."""
    if not hasattr(cls, "model_validate"):
        return cls.parse_obj(data)
    try:
        return cls.model_validate(data)
    except ValueError:
        try:
            return cls.model_validate_json(json.dumps(data))
        except (TypeError, ValueError):
            pass
        raise


def _load_dict(data: dict[str, Any], cls: Any, args: tuple[Any, ...], exact: bool) -> Any:
    if cls in _DICTS and len(args) == 2:
        return {key: load(item, args[1], exact) for key, item in data.items()}
    return data


def _load_list(data: list[Any], cls: Any, args: tuple[Any, ...], exact: bool) -> Any:
    if cls is tuple:
        every = args[0] if len(args) == 2 and args[1] is ... else None
        return tuple(load(item, every if every is not None else args[i] if i < len(args) else None, exact)
                     for i, item in enumerate(data))
    return [load(item, args[0], exact) for item in data] if cls in _LISTS and args else data


def _load_dataclass(data: Any, cls: Any, exact: bool) -> Any:
    """Without __init__: its parameters are not the fields, and __post_init__ has run. What the class has no field for is left
    out; a new field has its default."""
    import dataclasses

    if not isinstance(data, dict):
        raise ValueError(f"{reprlib.repr(data)} is no data of {cls.__qualname__}")
    if exact and set(data) - set(_names(cls)):
        raise ValueError(f"{cls.__qualname__} has no {sorted(set(data) - set(_names(cls)))[0]!r}")

    hints, made = _hints(cls), object.__new__(cls)
    for field in values.dataclass_fields(cls):
        name = field.name
        if name in data:
            value = load(data[name], hints.get(name), exact)
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        elif field.init:
            raise ValueError(f"there is no {name!r}, for which {cls.__qualname__} has no default")
        else:
            continue
        object.__setattr__(made, name, value)
    return made


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError:  # a class inside a function names another one there: a field of that class is refused when it is written
        return {}


def _alternative(data: Any, hints: tuple[Any, ...]) -> Any:
    """The member of a union that the data are of: the first that they can be read as exactly. Tried first are records with
    these fields, and last root models. None: plain data."""
    def rank(hint: Any) -> tuple[bool, int]:
        return _is_root(hint), len(set(data) ^ set(_names(hint))) if isinstance(data, dict) and _is_record(hint) else 0

    hints = tuple(typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint for hint in hints)
    fitting = sorted((hint for hint in hints if _fits(data, typing.get_origin(hint) or hint)), key=rank)
    for hint in fitting if len(fitting) > 1 else ():
        try:
            load(data, hint, True)
        except (TypeError, ValueError, LookupError):
            continue
        return hint
    return fitting[0] if fitting else None


def _is_root(cls: Any) -> bool:
    """Whether it is a model of any data: of pydantic 2 a RootModel, of pydantic 1 one with ``__root__``."""
    if not values.is_model(cls):
        return False
    root = getattr(cls, "__pydantic_root_model__", None)
    return "__root__" in cls.__fields__ if root is None else bool(root)


def _fits(data: Any, cls: Any) -> bool:
    if isinstance(cls, type) and values.is_enum(cls):
        return any(data == dump(member.value) for member in getattr(cls, "__members__").values())
    if _is_root(cls):
        return True
    if isinstance(data, dict):
        return _is_record(cls) or cls in _DICTS
    if isinstance(data, list):
        return cls is tuple or cls in _LISTS
    return type(data) is cls


# ---- Whether it is the same


def _parts(v: Any) -> Optional[tuple[Any, dict[str, Any]]]:
    """Its kind, and its parts by their places; None: it has no parts."""
    cls = type(v)
    if values.is_enum(cls):
        return None
    if _is_record(cls):
        return cls, {f"[{name!r}]": part for name, part in _fields(v).items()}
    if isinstance(v, dict):
        return dict, {f"[{key!r}]": part for key, part in v.items()}
    if isinstance(v, (list, tuple)):
        return list if isinstance(v, list) else cls, {f"[{i}]": part for i, part in enumerate(v)}
    return None


def _same(a: Any, b: Any) -> bool:
    """Of two values without parts. A class below str is stored as its text, which is equal."""
    alike = type(a) is type(b) or type(b) is str and isinstance(a, str) and not values.is_enum(type(a))
    return a is b or alike and bool(a == b or a != a and b != b)


def difference(a: Any, b: Any, at: str = "value") -> Optional[tuple[str, Any, Any]]:
    """The first place where ``b``, which was read, is not what was written, with both values. A dict may be written for an
    object of the class that the annotation names."""
    one, other = _parts(a), _parts(b)
    if one is None or other is None:
        return None if one is other and _same(a, b) else (at, a, b)
    if one[0] is dict and _is_record(other[0]):
        return None
    if one[0] is not other[0] or one[1].keys() != other[1].keys():
        return at, a, b
    found = (difference(part, other[1][place], at + place) for place, part in one[1].items())
    return next((where for where in found if where is not None), None)
