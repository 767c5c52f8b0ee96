"""What the evaluator of expressions has: functions, and the methods of the built-in types."""
from __future__ import annotations

import builtins
import datetime
import logging
import random
import sys
import time
from typing import Any, Callable

FUNCTIONS: dict[Any, str] = {getattr(builtins, name): name for name in (
    "abs all any ascii bin bool bytes callable chr dict divmod enumerate filter float format hex int isinstance len "
    "list map max min oct ord pow range repr reversed round set sorted str sum tuple type zip").split()}

METHODS: frozenset[str] = frozenset(
    name for cls in (str, bytes, int, float, list, tuple, dict, set, range, type({}.keys()))
    for name in dir(cls) if not name.startswith("_")
    and callable(getattr(cls, name)))

# Methods that change their object; with them a loop may change what it iterates over.
CHANGING: frozenset[str] = frozenset(
    "append extend insert remove pop clear sort reverse add discard update setdefault popitem difference_update "
    "intersection_update symmetric_difference_update".split())

MAKES_ITERATOR: frozenset[str] = frozenset({"zip", "map", "filter", "reversed", "enumerate"})

_ADVICE: dict[str, str] = {
    "print": "Use heddle.log(...), which writes the line once.",
    "input": "Ask in an action, or wait for a signal with heddle.signal(...).",
    "open": "Read and write files in an action.",
    "iter": "Loop over the object itself.",
    "next": "Take the first element with an index, or loop and break.",
    "hash": "It differs from run to run; use the value itself.",
    "id": "It differs from run to run; compare with `is`.",
    "frozenset": "Use a set or a tuple.",
    "getattr": "Write the attribute's name: x.name.",
    "setattr": "Write the attribute's name: x.name = value.",
    "hasattr": "Use isinstance(), or a value of None for what is not there.",
    "delattr": "Write the attribute's name: del x.name.",
    "eval": "Write the expression.",
    "exec": "Write the statements.",
    "vars": "Write the names that you need.",
    "locals": "Write the names that you need.",
    "globals": "Write the names that you need.",
    "dir": "Write the names that you need.",
    "issubclass": "Use isinstance().",
    "slice": "Write x[a:b:c].",
    "complex": "Compute with complex numbers in an action.",
    "bytearray": "Use bytes, or do it in an action.",
    "memoryview": "Use bytes, or do it in an action.",
    "object": "Use a string or None as a marker.",
    "breakpoint": "Set it in an action.",
    "super": "Call a method of it: super().name(...).",
}

_CLOCKS: dict[Callable[..., Any], str] = {
    time.time: "heddle.now()", time.time_ns: "heddle.now()", time.monotonic: "heddle.now()",
    time.perf_counter: "heddle.now()", random.random: "heddle.random()",
}


_MOMENT = "datetime(1970, 1, 1) + timedelta(seconds=heddle.now())"


def advice_for_method(name: str, owner: Any) -> str:
    """What to write instead of a call of a method of which no annotation says whose it is. ``owner``: the object, where it is
    one of the module."""
    if isinstance(owner, logging.Logger):
        return "Use heddle.log(...), which writes the line once."
    if hasattr(datetime.datetime, name):
        return f"If it is a datetime, annotate what it comes from. heddle.now() is a float: the datetime is {_MOMENT}."
    return "Make it an action that takes the object, and await the call."


def advice_for(function: Any) -> str:
    """What to write instead of a call of this function."""
    try:
        if function in _CLOCKS:
            return f"Use {_CLOCKS[function]}, whose value is stored."
    except TypeError:
        pass
    if function is time.sleep:
        return "Use `await asyncio.sleep(seconds)`."
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or getattr(owner if isinstance(owner, type) else type(owner), "__module__")
    name = getattr(function, "__name__", "")
    if module in ("random", "secrets", "_random"):
        return "Use heddle.random(), whose value is stored, or make the choice in an action."
    if module in ("uuid",):
        return "Use heddle.uuid(), whose value is stored."
    if name in ("now", "utcnow", "today", "fromtimestamp", "utcfromtimestamp"):
        return f"Use heddle.now(), whose value is stored: {_MOMENT} is the datetime in UTC."
    if module in ("time", "datetime"):
        return "Use heddle.now(), whose value is stored, or compute with dates in an action."
    if module == "builtins" and name in _ADVICE:
        return _ADVICE[name]
    top = str(module).partition(".")[0].lstrip("_")
    if top == "asyncio":
        return "Of asyncio there are sleep, gather, create_task, wait_for, timeout and TaskGroup; use the others in an action."
    if top == "heddle":
        return "Use stores in actions."
    if top in sys.stdlib_module_names:
        return "Call it in an action: a function of yours with @action before its definition."
    return "Make it an action: put @action before its definition, and await the call."
