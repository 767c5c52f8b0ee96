"""Who decides an operation on a value of a type (inference.py): the engine, which knows it, or code of the value's class. And
what may cross into a step as a copy: what never changes, and what is equal to its copy."""
from __future__ import annotations

import enum
from typing import Any, Iterator, Optional

from .. import operators
from .classes import class_kind, field_names
from .inference import NONE, PLAIN, Of, hints, is_standard, members

_CONTAINERS = (list, tuple, dict, set)


def code_says(cls: Any, what: str) -> bool:
    """Whether code of the class decides this: "own_operators", "own_text", "own_equal", "own_truth"; "own_calls": what built-in
    functions and methods do with its objects, of which the engine takes only operators of an IntEnum to be its value's."""
    cls = cls.origin if isinstance(cls, Of) else cls
    if not isinstance(cls, type) or cls in PLAIN or cls is NONE:
        return False
    if is_standard(cls):
        return True
    kind = class_kind(cls)
    if kind is None or kind == "tuple":
        return False
    flags = operators.own(cls, kind)
    if what == "own_calls":
        return "own_operators" in flags
    return what in flags and not (what == "own_operators" and "bare" in flags)


def class_of(found: Any) -> Any:
    return found.origin if isinstance(found, Of) else found


def decides(found: Any, says: str) -> Any:
    """The first class of which the value may be, and whose code decides; None: there is none."""
    return next((class_of(member) for member in members(found) if code_says(member, says)), None)


def sets(cls: Any) -> bool:
    """Whether code of the class says what it means to assign an attribute; of an exception: what text it then has."""
    kind = class_kind(cls) if isinstance(cls, type) else None
    flags = operators.own(cls, kind) if kind in ("record", "exception") else {}
    return "own_set" in flags or kind == "exception" and "own_text" in flags


def held(found: Any, seen: Optional[set[Any]] = None) -> Iterator[Any]:
    """The types of what is inside of it, at any depth. It looks into each type once: classes may name each other."""
    seen = set() if seen is None else seen
    for member in members(found):
        if member not in seen:
            seen.add(member)
            for part in parts(member):
                yield part
                yield from held(part, seen)


def within(found: Any, says: str) -> Any:
    """The same for values inside of a container or of a dataclass."""
    return next((cls for part in held(found) if (cls := decides(part, says)) is not None), None)


def orders(found: Any) -> Any:
    """The first class whose code says which of two such values is less, or where two tuples differ; None: there is none."""
    inside = None if has_only_one(found) else within(found, "own_operators") or within(found, "own_equal")
    return decides(found, "own_operators") or inside


def parts(member: Any) -> list[Any]:
    """The types of what an object holds."""
    if isinstance(member, Of):
        return [arg for arg in member.args if arg is not Ellipsis] if member.origin in (list, tuple, set, dict) else []
    if isinstance(member, type) and class_kind(member) in ("record", "tuple"):
        known = hints(member)
        return [known.get(name) for name in field_names(member)]
    return []


def has_only_one(found: Any) -> bool:
    """Whether it may hold objects that are equal to themselves only: copies are not equal to them."""
    return any(part is None or part in _CONTAINERS or any(map(is_by_id, members(part))) for part in (found, *held(found)))


def is_by_id(member: Any) -> bool:
    return isinstance(member, type) and class_kind(member) == "record" and "by_id" in operators.own(member, "record")


def is_fixed(found: Any) -> bool:
    """Whether what it is never changes, so that a copy is as good."""
    return all(member is NONE or isinstance(member, type) and (member in PLAIN or issubclass(member, (enum.Enum, BaseException)))
               or is_standard(member) for member in members(found))


def is_named_tuple(member: Any) -> bool:
    return isinstance(member, type) and class_kind(member) == "tuple"


def is_all_fixed(found: Any) -> bool:
    """The same for tuples, and for what is in them."""
    return all(is_fixed(member) or (isinstance(member, Of) and member.origin is tuple or is_named_tuple(member))
               and all(map(is_all_fixed, parts(member))) for member in members(found))


def is_sure(found: Any, says: str) -> bool:
    """Whether code of the value's class decides, whichever class it is of: only None is no object of it."""
    return found is not NONE and all(member is NONE or member is BaseException or code_says(member, says) for member in members(found))
