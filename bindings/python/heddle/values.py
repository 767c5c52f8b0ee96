"""How Python's values cross into workflows and back.

``_heddle`` converts None, bool, int, float, str, bytes, list, dict, tuple and set itself. Every other object comes here:
:func:`encode` says ``(tag, head, body)``, and :func:`decode` makes the object again. The forms are those of
docs/EXPRESSIONS.md, "Encoding". Nothing is pickled, and nothing is imported because a stored value names it.

=================================  ==============================================================================
named tuple                        ``{"$tuple": [...], "class": "shop:Point"}``; one with operators of its own is a
                                   record
enum                               ``{"$enum": "shop:Colour", "name": "RED", "value": 1}``
dataclass, pydantic model          ``{"$record": "shop:Order", field: value, ...}``
datetime, UUID, Decimal, Path ...  ``{"$record": "datetime:datetime", "iso": "2026-11-17T06:00:00"}`` and the like
exception                          ``{"$error": "ValueError", "args": [...], "attrs": {...}, "cause": {...},``
                                   ``"bases": [...]}``; the first class that the engine knows counts there
class                              ``{"$type": "shop:Order"}``
range                              ``{"$range": [start, stop, step]}``
=================================  ==============================================================================

A class is named "module:Class", a built-in one by its name alone. The program that was started as a script has the name
of its file, so that a worker that imports the same file means the same class.
"""
from __future__ import annotations

import os
import sys
import weakref
from typing import Any, Callable, Optional

from . import operators

Encoded = tuple[str, Any, Optional[dict[str, Any]]]

_SPECIAL = {
    "asyncio.exceptions:CancelledError": "CancelledError",
    "dataclasses:FrozenInstanceError": "FrozenInstanceError",
    "heddle.unsupported:Unsupported": "Unsupported",
}
_SPECIAL_BACK = {"CancelledError": ("asyncio", "CancelledError"), "FrozenInstanceError": ("dataclasses", "FrozenInstanceError"),
                 "Unsupported": ("heddle", "Unsupported"), "NoneType": ("types", "NoneType"), "Enum": ("enum", "Enum")}


# ---- Names of classes


def _main_name() -> str:
    """The module that the program was started as: the name of its file."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        name: str = spec.name
        return name[: -len(".__main__")] if name.endswith(".__main__") else name
    file = getattr(main, "__file__", None)
    return str(os.path.splitext(os.path.basename(file))[0]) if file else "__main__"


def module_name(module: str) -> str:
    return _main_name() if module == "__main__" else module


def class_name(cls: type) -> str:
    """The name under which values of the class cross."""
    if cls.__module__ == "builtins":
        return cls.__name__
    name = f"{module_name(cls.__module__)}:{cls.__qualname__}"
    return _SPECIAL.get(name, name)


_found: dict[str, Any] = {}


def remember_class(cls: type) -> str:
    """A class that values may name, also if it cannot be reached from its module."""
    name = class_name(cls)
    _found[name] = cls
    return name


def _reach(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part, None)
    return module


def find_class(name: str) -> Optional[type]:
    """The class of this name among the modules that are loaded; None: there is none."""
    cls = _found.get(name)
    if cls is None:
        module, colon, path = name.partition(":")
        if not colon:
            module, path = _SPECIAL_BACK.get(name, ("builtins", name))
        cls = _reach(sys.modules.get(module), path)
        if cls is None and module == _main_name():
            cls = _reach(sys.modules.get("__main__"), path)
        if not isinstance(cls, type):
            return None
        _found[name] = cls
    return cls if isinstance(cls, type) else None


# ---- Kinds of classes


def is_model(cls: type) -> bool:
    """pydantic, 1 or 2."""
    return hasattr(cls, "model_fields") and hasattr(cls, "model_validate") or \
        hasattr(cls, "__fields__") and hasattr(cls, "parse_obj")


def is_dataclass(cls: type) -> bool:
    return "__dataclass_fields__" in cls.__dict__ or hasattr(cls, "__dataclass_fields__")


_dataclass_fields: weakref.WeakKeyDictionary[type, tuple[Any, ...]] = weakref.WeakKeyDictionary()


def dataclass_fields(cls: Any) -> tuple[Any, ...]:
    """The fields of a dataclass: without ClassVars, which belong to the class, and InitVars, which its objects do not keep."""
    known = _dataclass_fields.get(cls)
    if known is None:
        known = _dataclass_fields[cls] = sys.modules["dataclasses"].fields(cls)
    return known


def is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


# ---- The standard library's


def _datetime(v: Any) -> Encoded:
    body = {"iso": v.isoformat(), **({"fold": 1} if getattr(v, "fold", 0) else {})}
    tzinfo = getattr(v, "tzinfo", None)
    zone = getattr(tzinfo, "key", None)  # of a ZoneInfo: its offset alone would be another zone
    if isinstance(zone, str):
        body["zone"] = zone
    elif _zone_name(tzinfo):
        body["tzname"] = _zone_name(tzinfo)
    return "$record", class_name(type(v)), body


def _zone_name(zone: Any) -> Optional[str]:
    """The name that the program gave a timezone; None: it has none but its offset."""
    if type(zone).__name__ != "timezone" or type(zone).__module__ != "datetime":
        return None
    name: str = zone.tzname(None)
    return name if name != type(zone)(zone.utcoffset(None)).tzname(None) else None


def _timezone(v: Any) -> Encoded:
    name = _zone_name(v)
    return "$record", "datetime:timezone", {**({"name": name} if name else {}), "seconds": v.utcoffset(None).total_seconds()}


def _timedelta(v: Any) -> Encoded:
    return "$record", class_name(type(v)), {"days": v.days, "microseconds": v.microseconds, "seconds": v.seconds}


_WRITERS: dict[str, Callable[[Any], Encoded]] = {
    "datetime:datetime": _datetime,
    "datetime:date": _datetime,
    "datetime:time": _datetime,
    "datetime:timedelta": _timedelta,
    "datetime:timezone": _timezone,
    "uuid:UUID": lambda v: ("$record", "uuid:UUID", {"hex": str(v)}),
    "decimal:Decimal": lambda v: ("$record", "decimal:Decimal", {"value": str(v)}),
    "fractions:Fraction": lambda v: ("$record", "fractions:Fraction", {"value": str(v)}),
    "pathlib:PosixPath": lambda v: ("$record", "pathlib:PosixPath", {"path": str(v)}),
    "pathlib:PurePosixPath": lambda v: ("$record", "pathlib:PurePosixPath", {"path": str(v)}),
    "frozenset": lambda v: ("$record", "frozenset", {"items": list(v)}),
    "range": lambda v: ("$range", [v.start, v.stop, v.step], None),
}


def _read_datetime(cls: Any, body: dict[str, Any]) -> Any:
    value = cls.fromisoformat(body["iso"])
    if "zone" in body:
        from zoneinfo import ZoneInfo

        value = value.replace(tzinfo=ZoneInfo(body["zone"]))
    if "tzname" in body:
        value = value.replace(tzinfo=type(value.tzinfo)(value.tzinfo.utcoffset(None), body["tzname"]))
    return value.replace(fold=1) if body.get("fold") else value


def _read_timezone(cls: Any, body: dict[str, Any]) -> Any:
    from datetime import timedelta

    offset = timedelta(seconds=body["seconds"])
    return cls(offset, body["name"]) if "name" in body else cls(offset)


_READERS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "datetime:datetime": _read_datetime,
    "datetime:date": _read_datetime,
    "datetime:time": _read_datetime,
    "datetime:timedelta": lambda cls, body: cls(**body),
    "datetime:timezone": _read_timezone,
    "uuid:UUID": lambda cls, body: cls(body["hex"]),
    "decimal:Decimal": lambda cls, body: cls(body["value"]),
    "fractions:Fraction": lambda cls, body: cls(body["value"]),
    "pathlib:PosixPath": lambda cls, body: cls(body["path"]),
    "pathlib:PurePosixPath": lambda cls, body: cls(body["path"]),
    "frozenset": lambda cls, body: cls(body["items"]),
}

STANDARD = frozenset({*_READERS, "pathlib:Path", "pathlib:PurePath"})
"""Names of the classes of the standard library that have a form of their own when they cross; their objects never change."""


def is_standard(cls: type) -> bool:
    return class_name(cls) in STANDARD


_STANDARD_MODULES = frozenset({"datetime", "uuid", "decimal", "fractions", "pathlib"})


# ---- Encoding

_SCALARS = (type(None), bool, int, float, str, bytes)
_CONTENT = (int, float, str, bytes, tuple, list, dict, set, frozenset)

def is_enum(cls: type) -> bool:
    enum = sys.modules.get("enum")
    return enum is not None and issubclass(cls, enum.Enum)


def _fields(v: Any, cls: type) -> dict[str, Any]:
    if is_dataclass(cls):
        fields = {field.name: getattr(v, field.name) for field in dataclass_fields(cls) if hasattr(v, field.name)}
        fields.update(getattr(v, "__dict__", {}))
        return fields
    fields = dict(v.__dict__)
    fields.update(getattr(v, "__pydantic_extra__", None) or {})
    return fields


def encode(v: Any) -> Optional[Encoded]:
    """An object as ``(tag, head, body)``; None: it cannot cross."""
    cls = type(v)
    name = class_name(cls)
    writer = _WRITERS.get(name)
    if writer is not None:
        return writer(v)
    if isinstance(v, BaseException):
        return encode_error(v)
    if is_enum(cls):
        return "$enum", remember_class(cls), {"name": v.name or "", "value": v.value}  # flags may have no name
    if is_named_tuple(cls) and not operators.hides_fields(cls):
        if operators.is_plain_tuple(cls):
            return "$tuple", list(v), {"class": remember_class(cls)}
        return "$record", remember_class(cls), dict(zip(getattr(cls, "_fields"), tuple.__iter__(v)))
    if is_dataclass(cls) or is_model(cls):
        if isinstance(v, _CONTENT) or operators.hides_fields(cls):
            return None  # it has more than its fields, or other ones
        return "$record", remember_class(cls), _fields(v, cls)
    if isinstance(v, type):
        return "$type", remember_class(v), None
    return None


def can_cross(v: Any) -> bool:
    from . import _heddle

    try:
        _heddle.dumps(v)
    except (TypeError, RecursionError):
        return False
    return True


Around = tuple[BaseException, ...]


def _crossing(v: Any, around: Around) -> Any:
    """The value, or its text where it cannot cross: an exception is not lost for its arguments. `around`: the exceptions in
    which it is."""
    try:
        made = _ready(v, around)
    except (TypeError, RecursionError):
        return repr(v)
    return made if can_cross(made) else repr(v)


def _ready(v: Any, around: Around) -> Any:
    """The value with the objects in it encoded, so that each exception is met once and one that refers to itself is noticed."""
    cls = type(v)
    if cls in _SCALARS:
        return v
    if cls in (list, tuple, set):
        return cls(_ready(part, around) for part in v)
    if cls is dict:
        return {_ready(key, around): _ready(part, around) for key, part in v.items()}
    if any(v is error for error in around):
        raise TypeError("an exception refers to itself")
    if isinstance(v, BaseException):
        return _Ready(*encode_error(v, around))
    encoded = encode(v)
    return v if encoded is None else _Ready(encoded[0], _ready(encoded[1], around), _ready(encoded[2], around))


def _traceback_text(error: BaseException) -> str:
    if error.__traceback__ is None:
        known: str = getattr(error, "__traceback_text__", "")
        return known
    import traceback

    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


_SLOTS: dict[type, tuple[str, ...]] = {OSError: ("filename", "filename2"), ImportError: ("name", "path"),
                                      NameError: ("name",), AttributeError: ("name",)}
"""Attributes of CPython's own exceptions that are data, and neither in ``__dict__`` nor in ``args``."""


def encode_error(error: BaseException, around: Around = ()) -> Encoded:
    cls: type = getattr(type(error), "__heddle_of__", type(error))
    name, around = remember_class(cls), (*around, error)
    attrs = {key: _crossing(value, around) for key, value in getattr(error, "__dict__", {}).items() if key != "__traceback_text__"}
    for base, names in _SLOTS.items():
        if isinstance(error, base):
            attrs.update((key, _crossing(value, around)) for key in names if (value := getattr(error, key, None)) is not None)
    attrs.update(_own_texts(error, cls))
    text = _traceback_text(error)
    if text:
        attrs["__traceback_text__"] = text
    if ":" in name:
        attrs["__class_name__"] = name
    if hasattr(cls, "from_exception_data"):
        attrs["__validation__"] = _validation(error, around)
    body: dict[str, Any] = {"args": [_crossing(argument, around) for argument in error.args], "attrs": attrs,
                            "bases": _bases(cls), "message": str(error)}
    if error.__cause__ is not None and len(around) <= 10 and not any(error.__cause__ is outer for outer in around):
        tag, head, inner = encode_error(error.__cause__, around)
        body["cause"] = _Ready(tag, head, inner)
    return "$error", name, body


def _own_texts(error: BaseException, cls: type) -> dict[str, Any]:
    """What the engine cannot know of an exception: texts that code of its class makes, and that it has operators."""
    flags = operators.own(cls, "exception")
    named = isinstance(error, OSError) and error.filename is not None
    found: dict[str, Any] = {}
    if flags.get("own_text") or named:
        found = {"__str__": str(error), "__repr__": repr(error)} if flags.get("own_text") else {"__str__": str(error)}
    if any(flag in flags for flag in ("own_operators", "own_equal", "own_truth", "own_set")):
        found["__own__"] = True
    return found


def _validation(error: Any, around: Around) -> dict[str, Any]:
    """What pydantic 2 makes its ValidationError of."""
    parts = [{key: part[key] for key in ("type", "loc", "input", "ctx") if key in part} for part in error.errors()]
    return {"title": error.title, "errors": [{key: _crossing(value, around) for key, value in part.items()} for part in parts]}


class _Ready:
    """A part that is encoded already."""

    def __init__(self, tag: str, head: Any, body: Optional[dict[str, Any]]) -> None:
        self.encoded = tag, head, body


def _bases(cls: type) -> list[str]:
    return [class_name(base) for base in cls.__mro__[1:-1]]


def shortened_error(cls: type, message: str) -> _Ready:
    """An exception of the class, with this message as its only argument and no attributes. Of a group it is a ValueError,
    because a group cannot be made of a message alone."""
    made: type = getattr(cls, "__heddle_of__", cls)
    if issubclass(made, BaseExceptionGroup):
        made = ValueError
    return _Ready("$error", remember_class(made), {"args": [message], "bases": _bases(made)})


def final_error(message: str, cls: str = "TypeError") -> _Ready:
    """An exception that no policy retries."""
    return _Ready("$error", cls, {"args": [message], "final": True})


_WRITERS["heddle.values:_Ready"] = lambda v: v.encoded  # type: ignore[no-any-return]


# ---- Decoding


class Record:
    """A value whose class is not known to this program: its fields are attributes."""

    def __init__(self, class_name: str, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)
        self.__dict__["$class"] = class_name

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={value!r}" for key, value in record_fields(self).items())
        return f"<{self.__dict__['$class']} {fields}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.__dict__ == other.__dict__


def record_fields(record: Record) -> dict[str, Any]:
    return {key: value for key, value in record.__dict__.items() if key != "$class"}


def _record(name: str, body: dict[str, Any]) -> Any:
    reader = _READERS.get(name)
    if reader is not None:
        module, _, path = name.rpartition(":")
        if module in _STANDARD_MODULES:
            __import__(module)
        return reader(find_class(name), body)
    cls: Any = find_class(name)
    if cls is None:
        return Record(name, body)
    if is_named_tuple(cls):
        return tuple.__new__(cls, [body[field] for field in getattr(cls, "_fields")])
    if is_dataclass(cls):
        made = object.__new__(cls)
        fields = dataclass_fields(cls)
        fits = len(body) == len(fields) and all(field.name in body for field in fields)
        for key, value in body.items():
            if fits or _may_have(made, key):
                object.__setattr__(made, key, value)
        if not fits:
            _fill_new(made, cls, body)
        return made
    if hasattr(cls, "model_construct"):
        return cls.model_construct(**body)
    if hasattr(cls, "construct"):
        return cls.construct(**body)
    return Record(name, body)


def _may_have(made: Any, name: str) -> bool:
    """A class with slots has no room for a field that it has lost."""
    return hasattr(made, "__dict__") or hasattr(type(made), name)


def _fill_new(made: Any, cls: Any, body: dict[str, Any]) -> None:
    """An older version of the program has made the object: fields that are new since then have their defaults."""
    missing = sys.modules["dataclasses"].MISSING
    for field in dataclass_fields(cls):
        if field.name in body:
            continue
        if field.default is not missing:
            object.__setattr__(made, field.name, field.default)
        elif field.default_factory is not missing:
            object.__setattr__(made, field.name, field.default_factory())


def _named_tuple(cls: Any, items: list[Any]) -> Any:
    """It crosses by the places of its fields. An older version of the program may have had fewer of them, or more."""
    names, defaults = getattr(cls, "_fields", items), getattr(cls, "_field_defaults", {})
    if len(items) != len(names):
        items = [*items[:len(names)], *(defaults[name] for name in names[len(items):] if name in defaults)]
    return tuple.__new__(cls, items)


def _new_error(cls: Any, args: list[Any]) -> BaseException:
    """If only code of the class can make it, the next class above it counts."""
    for above in cls.__mro__:
        made = _made_error(above, args) if issubclass(above, BaseException) else None
        if made is not None:
            return made
    raise AssertionError("BaseException takes any arguments")


def _made_error(cls: Any, args: list[Any]) -> Optional[BaseException]:
    if cls.__module__ == "builtins":
        try:
            made: BaseException = cls(*args)
            return made
        except (TypeError, ValueError):  # ValueError: of a group without exceptions
            pass
    for given in (args, []):
        try:
            made = cls.__new__(cls, *given)
        except (TypeError, ValueError):
            continue
        made.args = tuple(args)
        return made
    return None


def _validation_error(cls: Any, given: Any) -> Optional[BaseException]:
    """pydantic 2's; None: it cannot be made again."""
    try:
        made: BaseException = cls.from_exception_data(given["title"], given["errors"])
        return made
    except Exception:
        return None


def _error(name: str, body: dict[str, Any]) -> BaseException:
    attrs = body.get("attrs") or {}
    cls = find_class(attrs.pop("__class_name__", name)) or find_class(name)
    if cls is None or not issubclass(cls, BaseException):
        cls = RuntimeError
    shown, represented = attrs.pop("__str__", None), attrs.pop("__repr__", None)
    attrs.pop("__own__", None)
    validation = attrs.pop("__validation__", None)
    error = None if validation is None else _validation_error(cls, validation)
    if error is None:
        message = [body["message"]] if "message" in body and ("args" not in body or validation is not None) else []
        error = _new_error(cls, body.get("args") or message)
    for key, value in attrs.items():
        try:
            setattr(error, key, value)
        except (AttributeError, TypeError):
            pass
    if shown is not None and not _shows(error, shown):
        error = _showing(error, shown, represented or shown)
    if body.get("cause") is not None:
        error.__cause__ = body["cause"]
    return error


def _shows(error: BaseException, text: str) -> bool:
    try:
        return str(error) == text
    except Exception:  # its code needs what has not crossed
        return False


def _showing(error: BaseException, shown: str, represented: str) -> BaseException:
    """The exception with the text that it had: of a class below its own, which cannot make it from what has crossed."""
    cls = type(error)
    texts: dict[str, Any] = {"__str__": lambda self: shown, "__repr__": lambda self: represented, "__module__": cls.__module__,
                             "__qualname__": cls.__qualname__, "__heddle_of__": cls}
    made = _new_error(type(cls.__name__, (cls,), texts), list(error.args))
    made.__dict__.update(error.__dict__)
    return made


def _enum(name: str, body: dict[str, Any]) -> Any:
    cls: Any = find_class(name)
    if cls is None:
        return Record(name, body)
    return cls[body["name"]] if body["name"] in getattr(cls, "__members__", ()) else cls(body["value"])


def decode(tag: str, head: Any, body: dict[str, Any]) -> Any:
    """The object that :func:`encode` wrote."""
    if tag == "$record":
        return _record(head, body)
    if tag == "$error":
        return _error(head, body)
    if tag == "$tuple":
        cls = find_class(body["class"])
        return tuple(head) if cls is None else _named_tuple(cls, head)
    if tag == "$enum":
        return _enum(head, body)
    if tag == "$range":
        return range(*head)
    if tag == "$str":
        return "".join(map(chr, head))
    if tag == "$type":
        return find_class(head) or Record("type", {"name": head})
    raise ValueError(f"a stored value has an unknown form {tag!r}")


_FORMS = frozenset({"$record", "$error", "$tuple", "$set", "$dict", "$enum", "$range", "$str", "$type"})


def _revive_form(tag: str, data: dict[str, Any]) -> Any:
    head = revive(data[tag])
    if tag == "$set":
        return set(head)
    if tag == "$dict":
        return {key: value for key, value in head}
    if tag == "$tuple" and "class" not in data:
        return tuple(head)
    return decode(tag, head, _revive_names(data))


def _revive_names(data: dict[str, Any]) -> dict[str, Any]:
    """The program's own keys and their values, in their order. The store doubles a dollar with which such a key
    begins."""
    if "$keys" in data:
        return {key: revive(data["$" + key if key.startswith("$") else key]) for key in data["$keys"]}
    return {key[1:] if key.startswith("$$") else key: revive(value) for key, value in data.items()
            if key.startswith("$$") or not key.startswith("$")}


def revive(data: Any) -> Any:
    """The value of a workflow from plain data, as the store has it. The engine's own forms, such as a reference to one
    of its objects, stay plain data."""
    if isinstance(data, list):
        return [revive(item) for item in data]
    if not isinstance(data, dict):
        return data
    tags = [key for key in data if key.startswith("$") and not key.startswith("$$") and key != "$keys"]
    if not tags:
        return _revive_names(data)
    return _revive_form(tags[0], data) if tags[0] in _FORMS else data


# ---- Plain data, for cells


def plain_model(v: Any, **which: Any) -> Any:
    """A model as its class reads it: under aliases where it takes no names of fields. ``include={"name"}``: that field alone."""
    cls = type(v)
    if hasattr(cls, "model_dump"):
        config = getattr(cls, "model_config", {})
        by_name = config.get("populate_by_name") or config.get("validate_by_name")
        return v.model_dump(mode="json", by_alias=not by_name, **which)
    import decimal
    import json

    own = decimal.Decimal in cls.__config__.json_encoders
    exact = cls.__json_encoder__ if own else lambda part: str(part) if type(part) is decimal.Decimal else cls.__json_encoder__(part)
    return json.loads(v.json(encoder=exact, by_alias=not cls.__config__.allow_population_by_field_name, **which))


def plain(v: Any) -> Any:
    """A model or dataclass as plain data; anything else as it is."""
    cls = type(v)
    if is_model(cls):
        return plain_model(v)
    if is_dataclass(cls):
        return {field.name: getattr(v, field.name) for field in dataclass_fields(cls)}
    if is_enum(cls):
        return v.value
    if isinstance(v, dict):
        return dict(v)
    if isinstance(v, (list, tuple)):
        return list(v)
    if isinstance(v, str):
        return str.__str__(v)
    return v


# ---- By annotation, for what came from outside


def _build_dataclass(cls: Any, data: dict[str, Any]) -> Any:
    import typing

    hints = typing.get_type_hints(cls)
    return cls(**{key: conform(value, hints.get(key)) for key, value in data.items()})


def _conform_items(value: Any, annotation: Any) -> Any:
    import typing

    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and isinstance(value, list) and args:
        return [conform(item, args[0]) for item in value]
    if origin is dict and isinstance(value, dict) and len(args) == 2:
        return {key: conform(item, args[1]) for key, item in value.items()}
    candidates = [a for a in args if isinstance(a, type) and a is not type(None)]
    if len(candidates) == 1 and origin not in (list, dict, tuple, set, frozenset) and isinstance(value, dict):
        return conform(value, candidates[0])
    return value


def conform(value: Any, annotation: Any) -> Any:
    """Plain data as the record that the annotation names. Scalars are never converted."""
    if annotation is None or value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(annotation, type) and isinstance(value, dict):
        if hasattr(annotation, "model_validate"):
            return annotation.model_validate(value)
        if is_model(annotation):
            return getattr(annotation, "parse_obj")(value)
        if is_dataclass(annotation):
            return _build_dataclass(annotation, value)
    return _conform_items(value, annotation) if hasattr(annotation, "__args__") else value
