"""Runs the source of a workflow twice: compiled, on an engine in memory, and as the Python that it is.

Both runs have the same actions, which note each call. What a run gives is its result or its exception, and the calls."""
from __future__ import annotations

import asyncio
import collections
import copy
import functools
import itertools
import linecache
import re
import selectors
import sys
import time
import types
from collections.abc import Coroutine
from typing import Any, Optional

import heddle
from heddle import registry, values
from heddle.compiler import construct, source

_numbers = itertools.count()
_FREE = re.compile(r"^raised NameError: cannot access free variable ('\w+') .* in enclosing scope$")
"""What CPython 3.11 says in a comprehension; later versions, and one that waits, say it as elsewhere in the function."""

ACTIONS = '''
async def _note(name, *args):
    """Every action really waits: then a task begins where it does in a program."""
    _calls.append((name, args))
    await asyncio.sleep(0)

@action
async def echo(x):
    await _note("echo", x)
    return x

def _of_module(function):
    """Complaints of CPython name the module of a function, which is another one in each run."""
    function.__module__ = "actions"
    return function

@action
@_of_module
async def add(a, b=1):
    await _note("add", a, b)
    return a + b

@action
async def fail(kind="ValueError", text="no"):
    await _note("fail", kind, text)
    raise {"ValueError": ValueError, "KeyError": KeyError, "TypeError": TypeError, "OSError": OSError,
           "ZeroDivisionError": ZeroDivisionError, "Own": Own, "OwnChild": OwnChild}[kind](text)

@action
async def maybe(x, limit=3):
    await _note("maybe", x, limit)
    if x >= limit:
        raise ValueError(f"{x} is too large")
    return x * 10

_tries = {}

@action
async def flaky(x, key):
    """Fails the first time and the third."""
    await _note("flaky", x, key)
    _tries[key] = _tries.get(key, 0) + 1
    if _tries[key] in (1, 3):
        raise ConnectionError(key)
    return x

@action
async def pair(x):
    await _note("pair", x)
    return [x, x + 1]
'''

HEAD = '''
import asyncio
import asyncio as aio
import enum
from collections import namedtuple
from dataclasses import dataclass, field
from typing import NamedTuple

class Own(Exception):
    pass

class OwnChild(Own):
    pass

class Coded(Exception):
    def __init__(self, code=4):
        super().__init__("coded", code)
        self.code = code

class Needs(Exception):
    def __init__(self, what):
        self.what = what

class Colour(enum.Enum):
    RED = 1
    BLUE = 2

@dataclass
class Point:
    x: int
    y: int = 0

class Rank(enum.IntEnum):
    LOW = 1
    HIGH = 2

class Kind(str, enum.Enum):
    A = "x"
    B = "yz"

class Closed(str, enum.Enum):
    X = "x"
    def __iter__(self):
        raise TypeError("my own message")

@dataclass(frozen=True)
class Frozen:
    größe: int

class Pair(NamedTuple):
    left: int
    länge: int = 7

LIMIT = 5
WORDS = ("a", "bb", "ccc")
'''


def _by_value(function: Any) -> Any:
    """Arguments and results of an action cross by value, when it begins and when it ends."""
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _Call(function, args, kwargs)
    return call


class _Call(Coroutine[Any, Any, Any]):
    """A call of an action that may be tried again."""

    def __init__(self, function: Any, args: Any, kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.tries = 1
        self.running: Any = None

    def options(self, retries: int = 0) -> Any:
        self.tries = retries + 1
        return self

    async def _run(self) -> Any:
        for left in range(self.tries - 1, -1, -1):
            try:
                return copy.deepcopy(await self.function(*copy.deepcopy(self.args), **copy.deepcopy(self.kwargs)))
            except Exception:
                if not left:
                    raise

    def _begin(self) -> Any:
        if self.running is None:
            self.running = self._run()
        return self.running

    def __await__(self) -> Any:
        return self._begin().__await__()

    def send(self, value: Any) -> Any:
        return self._begin().send(value)

    def throw(self, *args: Any) -> Any:
        return self._begin().throw(*args)

    def close(self) -> None:
        if self.running is not None:
            self.running.close()


class _Plain(types.ModuleType):
    """What workflows import from heddle, for Python alone."""

    def __init__(self) -> None:
        super().__init__("plain_heddle")

        class Workflow:
            async def run_action(self, call: Any, **options: Any) -> Any:
                return await call
        self.Workflow = Workflow
        self.workflow = lambda cls: cls
        self.log = lambda *args: None
        self.now = heddle.now
        self.uuid = heddle.uuid
        self.random = heddle.random

    @staticmethod
    def action(function: Any = None, **options: Any) -> Any:
        return _by_value(function) if function is not None else _by_value


PLAIN = _Plain()


def module_of(text: str, package: Any) -> dict[str, Any]:
    """Executes the source as a module whose text the compiler can read."""
    name = f"twin{next(_numbers)}"
    filename = f"<{name}>"
    text = HEAD + ACTIONS + text
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = types.ModuleType(name)
    module.__dict__.update(_calls=[], heddle=package, Workflow=package.Workflow, action=package.action,
                           workflow=package.workflow)
    sys.modules[name] = module
    try:
        exec(compile(text, filename, "exec"), module.__dict__)
    except BaseException:  # it is refused, for example
        forget(module.__dict__)
        raise
    return module.__dict__


def more(names: dict[str, Any], text: str) -> None:
    """Executes one more piece of source in the module."""
    filename = f"<{names['__name__']}.{next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), names)


def forget(names: dict[str, Any]) -> None:
    """The module is not used any more. The package keeps what a program defines for ever; a test that defines thousands does not."""
    name = names["__name__"]
    sys.modules.pop(name, None)
    for place in (linecache.cache, source._modules):
        for filename in [filename for filename in place if filename == f"<{name}>" or filename.startswith(f"<{name}.")]:
            del place[filename]
    for known in [known for known, compiled in registry._known.items() if compiled.cls.__module__ == name]:
        del registry._known[known]
    for known in [known for known, cls in values._found.items() if getattr(cls, "__module__", None) == name]:
        del values._found[known]
    for cls in [cls for cls in construct._makers if cls.__module__ == name]:
        del construct._makers[cls]


def _later_timeout() -> None:
    """asyncio.timeout as in the later releases of CPython 3.11, and in 3.12: those are what workflows do."""
    cls: Any = asyncio.Timeout
    state = asyncio.timeouts._State
    enter = cls.__aenter__

    async def __aenter__(self: Any) -> Any:
        task = asyncio.current_task()
        assert task is not None
        self._cancelling = task.cancelling()
        return await enter(self)

    async def __aexit__(self: Any, kind: Any, error: Any, traceback: Any) -> None:
        if self._timeout_handler is not None:
            self._timeout_handler.cancel()
            self._timeout_handler = None
        if self._state is state.EXPIRING:
            self._state = state.EXPIRED
            if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
                raise TimeoutError from error
        elif self._state is state.ENTERED:
            self._state = state.EXITED
    cls.__aenter__, cls.__aexit__ = __aenter__, __aexit__


if "cancelling" not in asyncio.Timeout.__aenter__.__code__.co_names:
    _later_timeout()


class Outcome:
    """How a run ended, and what it called."""

    def __init__(self, value: Any, error: Optional[BaseException], calls: list[Any]) -> None:
        self.value = value
        self.error = error
        self.calls = calls

    def shown(self) -> str:
        if self.error is None:
            try:
                return f"returned {self.value!r}"
            except AttributeError as error:  # an attribute was deleted
                return f"returned what cannot be shown: {error}"
        text = f"raised {type(self.error).__name__}: {self.error}"
        return _FREE.sub(r"raised UnboundLocalError: cannot access local variable \1 where it is not associated with a value", text)

    def __repr__(self) -> str:
        return f"{self.shown()}\n    calls {self.calls!r}"


async def outcome(running: Any, calls: list[Any]) -> Outcome:
    """Awaits a run; the calls are those that it has made."""
    calls.clear()
    try:
        return Outcome(await asyncio.ensure_future(running), None, list(calls))
    except (Exception, asyncio.CancelledError, heddle.Unsupported) as error:
        return Outcome(None, error, list(calls))


class Endless(BaseException):
    """A run has not ended in the real time that it was given. It is no Exception: sources catch those."""

    def __init__(self, who: str) -> None:
        super().__init__(f"{who} does not end")
        self.who = who


class _Virtual(selectors.DefaultSelector):
    """Nothing comes from outside, so a wait is over at once, and takes the time that it was to take."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.now = 0.0
        self.deadline = time.monotonic() + limit

    def select(self, timeout: Optional[float] = None) -> Any:
        if timeout is None or time.monotonic() > self.deadline:
            raise Endless("Python")
        self.now += timeout
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    """Limits and sleeps have the same order on each machine, under each load; a sleep of 1000 seconds takes none."""

    def __init__(self, limit: float) -> None:
        self._virtual = _Virtual(limit)
        super().__init__(self._virtual)
        self._clock_resolution = 1e-6  # after years of virtual time a float still tells it apart

    def time(self) -> float:
        return self._virtual.now


def outcome_of_python(running: Coroutine[Any, Any, Any], calls: list[Any], limit: float = 30) -> Outcome:
    """As asyncio.run, in virtual time, and also in a program whose loop runs already. Endless after ``limit`` real seconds."""
    around = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        with asyncio.Runner(loop_factory=lambda: _VirtualLoop(limit)) as runner:
            found = runner.run(outcome(running, calls))
        found.calls = list(calls)  # with those of the clean-up of tasks that were left
        return found
    finally:
        asyncio._set_running_loop(around)


async def run_compiled(store: Any, source: str, *args: Any, name: str = "Flow") -> Outcome:
    names = module_of(source, heddle)
    try:
        return await outcome(store.run(names[name], *args), names["_calls"])
    finally:
        forget(names)


async def run_plain(source: str, *args: Any, name: str = "Flow") -> Outcome:
    names = module_of(source, PLAIN)
    try:
        return outcome_of_python(names[name]().run(*args), names["_calls"])
    finally:
        forget(names)


def flow(body: str, rest: str = "", params: str = "") -> str:
    """A workflow with this body of run, and further methods."""
    def indent(text: str, by: int) -> str:
        lines = [line for line in text.strip("\n").split("\n")]
        return "\n".join(" " * by + line for line in lines)
    tail = f"\n{indent(rest, 4)}\n" if rest else "\n"
    return f"@workflow\nclass Flow(Workflow):\n    async def run(self{', ' if params else ''}{params}):\n{indent(body, 8)}\n{tail}"


def same(a: Outcome, b: Outcome, ordered: bool = True, cut: bool = False) -> bool:
    """Whether two runs cannot be told apart. ``cut``: b may have called less, where something was cancelled."""
    if cut:
        left = collections.Counter(map(repr, b.calls))
        left.subtract(map(repr, a.calls))
        return a.shown() == b.shown() and max(left.values(), default=0) <= 0
    calls_a, calls_b = (repr(a.calls), repr(b.calls)) if ordered else (sorted(map(repr, a.calls)), sorted(map(repr, b.calls)))
    return a.shown() == b.shown() and calls_a == calls_b
