"""Objects that Python makes: a constructor that runs code is a recorded step, done by an action made for its class."""
from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Union

from ..actions import Action, Options
from ..values import STANDARD
from .classes import class_name
from .graph import Form
from .names import Known

_makers: dict[type, Action[..., Any]] = {}


def maker(cls: type) -> Action[..., Any]:
    """The action that makes objects of the class."""
    known = _makers.get(cls)
    if known is None:
        def make(args: list[Any], kwargs: dict[str, Any]) -> Any:
            return cls(*args, **kwargs)
        make.__name__ = make.__qualname__ = f"new {cls.__qualname__}"
        known = _makers[cls] = Action(make, f"heddle.new.{class_name(cls)}", Options())
    return known


def standard_makers() -> dict[str, Action[..., Any]]:
    """Those of the classes of the standard library, which are imported when they are needed."""
    def of(name: str) -> Action[..., Any]:
        def make(args: list[Any], kwargs: dict[str, Any]) -> Any:
            module, _, path = name.rpartition(":")
            return getattr(importlib.import_module(module or "builtins"), path)(*args, **kwargs)
        return Action(make, f"heddle.new.{name}", Options())
    return {action.name: action for action in map(of, STANDARD)}


def named(names: list[Form]) -> Form:
    """Keyword arguments as a dict."""
    parts: list[Form] = []
    for pair in names:
        parts += [pair] if pair[0] == "**" else pair
    return ["dict", *parts]


def defaults(cls: Any) -> dict[str, Union[list[Form], Known]]:
    """Of the fields that need not be given: a constant, or the form that makes a new object."""
    if dataclasses.is_dataclass(cls):
        found: dict[str, Union[list[Form], Known]] = {}
        for field in dataclasses.fields(cls):
            if field.default is not dataclasses.MISSING:
                found[field.name] = Known(field.default)
            elif field.default_factory is not dataclasses.MISSING:
                found[field.name] = [getattr(field.default_factory, "__name__")]
        return found
    return {name: Known(value) for name, value in getattr(cls, "_field_defaults", {}).items()}
