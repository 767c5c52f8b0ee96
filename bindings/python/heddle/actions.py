"""Actions: the functions that do something, and what is done when they fail."""
from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from datetime import timedelta
from types import FunctionType
from typing import (Any, Awaitable, Callable, Generator, Generic, Mapping, Optional, ParamSpec, Sequence, TypeVar,
                    Union, overload)

from .attempts import _current

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_QUEUE = re.compile(r"[A-Za-z0-9_.-]{1,100}")
Seconds = Union[float, timedelta]
ExceptionTypes = Union[type[BaseException], Sequence[type[BaseException]]]


@dataclass(frozen=True)
class RetryPolicy:
    """How often an action is tried. ``attempts`` is the total; the first attempt counts."""

    attempts: int = 1
    exception_types: tuple[type[BaseException], ...] = ()
    backoff_seconds: float = 0.0
    backoff_factor: float = 2.0
    backoff_max: float = 3600.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("attempts is the number of tries in all: at least 1")


@dataclass(frozen=True)
class Options:
    """What ``@action(...)`` and ``.options(...)`` say about a step. None: nothing."""

    retries: Optional[int] = None
    backoff: Optional[float] = None
    backoff_factor: Optional[float] = None
    backoff_max: Optional[float] = None
    retry_on: Optional[tuple[type[BaseException], ...]] = None
    timeout: Optional[float] = None
    heartbeat: Optional[float] = None
    priority: Optional[int] = None
    queue: Optional[str] = None

    def __post_init__(self) -> None:
        for name in ("retries", "priority"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int):
                raise TypeError(f"{name} is an int, not {value!r}")
        if self.retries is not None and self.retries < 0:
            raise ValueError("retries is the number of tries after the first: at least 0")
        if self.queue is not None and not (isinstance(self.queue, str) and _QUEUE.fullmatch(self.queue)):
            raise ValueError(f"queue is a name of letters, digits, '_', '-' and '.', not {self.queue!r}")
        for name in ("backoff", "backoff_factor", "backoff_max", "timeout", "heartbeat"):
            value = getattr(self, name)
            what = "a factor" if name == "backoff_factor" else "a number of seconds or a timedelta"
            if value is not None and not isinstance(value, (int, float)):
                raise TypeError(f"{name} is {what}, not {value!r}")
            if value is not None and not 0 <= value <= 1e9:
                raise ValueError(f"{name} is {what}, not {value!r}")

    def over(self, below: Options) -> Options:
        """These, and those below where these say nothing."""
        merged = {name: getattr(self, name) if getattr(self, name) is not None else getattr(below, name)
                  for name in self.__dataclass_fields__}
        return Options(**merged)


_SECONDS = ("backoff", "backoff_max", "timeout", "heartbeat")
OPTION_NAMES = tuple(Options.__dataclass_fields__)


def make_options(given: Mapping[str, Any]) -> Options:
    """Options from keyword arguments; one class in ``retry_on`` may stand alone, and a timedelta is its seconds."""
    values = {name: value.total_seconds() if name in _SECONDS and isinstance(value, timedelta) else value
              for name, value in given.items()}
    on = values.get("retry_on")
    if on is not None:
        classes = (on,) if isinstance(on, (type, str)) or not isinstance(on, Iterable) else tuple(on)
        if not all(isinstance(cls, type) and issubclass(cls, BaseException) for cls in classes):
            raise TypeError(f"retry_on takes a class of exceptions, or a tuple of them (retry_on=OSError), not {on!r}")
        values["retry_on"] = classes
    return Options(**values)


class ActionCall(Coroutine[Any, Any, T_co], Generic[T_co]):
    """One call of an action, to be awaited. Outside of a workflow it runs the function."""

    def __init__(self, action: Action[..., T_co], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.action = action
        self.args = args
        self.kwargs = kwargs
        self._running: Optional[Coroutine[Any, Any, T_co]] = None

    def options(self, *, retries: Optional[int] = None, backoff: Optional[Seconds] = None,
                backoff_factor: Optional[float] = None, backoff_max: Optional[Seconds] = None,
                retry_on: Optional[ExceptionTypes] = None, timeout: Optional[Seconds] = None,
                heartbeat: Optional[Seconds] = None, priority: Optional[int] = None,
                queue: Optional[str] = None) -> ActionCall[T_co]:
        """The same call with other options. They count inside of a workflow, where the compiler reads them."""
        return self

    def _begin(self) -> Coroutine[Any, Any, T_co]:
        if self._running is None:
            result = self.action.function(*self.args, **self.kwargs) if self.action.is_async else \
                asyncio.to_thread(self.action.function, *self.args, **self.kwargs)
            self._running = result
        return self._running

    def __await__(self) -> Generator[Any, Any, T_co]:
        return self._begin().__await__()

    def send(self, value: Any) -> Any:
        return self._begin().send(value)

    def throw(self, *args: Any) -> Any:
        return self._begin().throw(*args)

    def close(self) -> None:
        if self._running is not None:
            self._running.close()


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Action(Generic[P, T_co]):
    """A function that workflows call as a step: what ``@action`` makes of it."""

    def __init__(self, function: Callable[..., Any], name: Optional[str], options: Options) -> None:
        if not isinstance(function, FunctionType):
            raise TypeError(f"@action decorates a function, not {type(function).__name__}")
        self.function: Callable[..., Any] = function
        self.name = name or function.__name__
        self.defaults = options
        self.is_async = inspect.iscoroutinefunction(function)
        self.signature = inspect.signature(function)
        parameters = self.signature.parameters
        named = all(p.kind in _NAMED for p in parameters.values()) and _takes_names(function, parameters)
        self._names = frozenset(parameters) if named else frozenset()
        """The parameters, if all of them can be given by name."""
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ActionCall[T_co]:
        if _current.get() is not None:  # inside of an action another one is an ordinary function
            called: ActionCall[T_co] = self.function(*args, **kwargs)
            return called
        return ActionCall(self, args, kwargs)

    def invoke(self, args: Mapping[str, Any]) -> Any:
        """Calls the function with arguments as a step has them: by the names of its parameters. What ``*args`` and
        ``**kwargs`` of a call have given stands at "*" and "**"."""
        if self._names.issuperset(args):
            return self.function(**args)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in self.signature.parameters.values():
            if parameter.name not in args:
                continue
            value = args[parameter.name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(value)
            elif parameter.kind is parameter.POSITIONAL_ONLY or (not named and len(positional) == _place(parameter, self.signature)):
                positional.append(value)
            else:
                named[parameter.name] = value
        return self.function(*positional, *args.get("*", ()), **named, **args.get("**", {}))

    def __repr__(self) -> str:
        return f"<action {self.name}>"


def _takes_names(function: Callable[..., Any], names: Iterable[str]) -> bool:
    """Not so a decorator's wrapper ``def wrapper(*args)``, whose signature functools.wraps makes that of the function inside."""
    if not hasattr(function, "__wrapped__"):
        return True
    own = inspect.signature(function, follow_wrapped=False).parameters
    return any(p.kind is p.VAR_KEYWORD for p in own.values()) or all(
        name in own and own[name].kind in _NAMED for name in names)


def is_another(one: Any, two: Any) -> bool:
    """Whether two actions are different functions. A function that is defined again (in a notebook, after a reload, in a
    module that also is __main__) counts as the same: its last definition does the steps. What a function has made, such as
    a decorator's wrapper, is each time another one."""
    if not isinstance(one, Action) or not isinstance(two, Action) or one.function is two.function:
        return False
    if "<locals>" in one.__qualname__:
        return True
    place, other = ((action.function.__code__.co_filename, action.__qualname__) for action in (one, two))
    return place != other and (one.__module__, one.__qualname__) != (two.__module__, two.__qualname__)


def two_of_a_name(name: str, one: Action[..., Any], two: Action[..., Any]) -> str:
    """What is wrong with them: steps find their action by its name."""
    of = " and ".join(f"{action.__module__}.{action.__qualname__}" for action in (one, two))
    return f"two actions have the name {name}: {of}. Give one of them another: @action(name=...)"


_defined: dict[str, Optional[Action[..., Any]]] = {}
"""The actions that modules of this process define, by name; None: several have the name."""


def _define(action: Action[..., Any]) -> Action[..., Any]:
    if "<locals>" not in action.__qualname__:
        known = _defined.get(action.name, action)
        _defined[action.name] = None if known is None or is_another(known, action) else action
    return action


def defined() -> dict[str, Action[..., Any]]:
    """Without those whose name several have: none of them is the one that is meant."""
    return {name: action for name, action in _defined.items() if action is not None}


def _place(parameter: inspect.Parameter, signature: inspect.Signature) -> int:
    return list(signature.parameters).index(parameter.name) if parameter.kind is not parameter.KEYWORD_ONLY else -1


@overload
def action(function: Callable[P, Coroutine[Any, Any, T]]) -> Action[P, T]: ...
@overload
def action(function: Callable[P, Awaitable[T]]) -> Action[P, T]: ...
@overload
def action(function: Callable[P, T]) -> Action[P, T]: ...
@overload
def action(*, name: Optional[str] = None, retries: Optional[int] = None, backoff: Optional[Seconds] = None,
           backoff_factor: Optional[float] = None, backoff_max: Optional[Seconds] = None,
           retry_on: Optional[ExceptionTypes] = None, timeout: Optional[Seconds] = None,
           heartbeat: Optional[Seconds] = None, priority: Optional[int] = None, queue: Optional[str] = None) -> _Decorator: ...


def action(function: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None, **options: Any) -> Any:
    """Makes a function an action: ``@action`` or ``@action(name="charge", retries=3, timeout=30)``.

    ``retries`` is the number of tries after the first (default none), ``backoff`` the seconds before the second try,
    ``backoff_factor`` by how much each further wait is longer (2), ``backoff_max`` the longest (3,600); ``retry_on`` the
    classes of exceptions that are worth another try (all). ``timeout`` is the seconds that one attempt may take, and
    ``heartbeat`` how long a worker may be silent before another takes over; times may be timedeltas. Steps of higher
    ``priority`` go first; ``queue`` names the queue that they wait in, for workers that serve it
    (``heddle-worker --queue gpu``).
    """
    unknown = set(options) - set(OPTION_NAMES)
    if unknown:
        raise TypeError(f"@action has no option {sorted(unknown)[0]!r}; there are name, {', '.join(OPTION_NAMES)}")
    made = make_options({key: value for key, value in options.items() if value is not None})
    if function is not None:
        return _define(Action(function, name, made))
    return _Decorator(name, made)


class _Decorator:
    """What ``@action(...)`` with options is until it sees the function."""

    def __init__(self, name: Optional[str], options: Options) -> None:
        self.name = name
        self.options = options

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]]) -> Action[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[T]]) -> Action[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T]) -> Action[P, T]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        return _define(Action(function, self.name, self.options))
