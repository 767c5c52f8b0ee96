"""The lab: a store for a test."""
from __future__ import annotations

import asyncio
import difflib
import threading
from typing import Any, Callable, Coroutine, Optional, TypeVar

from .. import registry
from ..running import Served
from ..attempts import Attempt
from ..store import Store

T = TypeVar("T")

CLOCK = 1767225600.0
"""The lab's clock starts at 2026-01-01, 00:00 UTC."""


class Call:
    """An attempt at a step that was begun."""

    def __init__(self, action: str, args: Any, attempt: int, id: str) -> None:
        self.action, self.args, self.attempt, self.id = action, args, attempt, id

    def __repr__(self) -> str:
        return f"{self.action}({self.args!r}), attempt {self.attempt}"


class Lab:
    """A store in memory whose time is virtual, and whose actions the test can replace.

    Everything that a store has is at ``lab.store``. :meth:`run` is for tests that are ordinary functions; in an async
    test use ``await lab.store.run(...)``.
    """

    def __init__(self, file: Optional[str] = None, *, clock: float = CLOCK) -> None:
        self.store = Store(file, clock=clock)
        self.calls: list[Call] = []
        """Every attempt that was begun, in order."""
        self._scripts: dict[str, list[Any]] = {}
        self._instead: dict[str, Callable[..., Any]] = {}
        self._lock = threading.Lock()
        self._runner: Optional[asyncio.Runner] = None
        """The loop of all that :meth:`wait` runs. One for each would pump the store while it is closed: it would move the
        clock, and begin actions that never run."""
        self.store._flows_().actions.intercept = self._intercept

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()
        if self._runner is not None:
            self._runner.close()

    # ---- Actions

    def fail(self, action: str, error: BaseException, *, times: int = 1, after: int = 0) -> None:
        """The next ``times`` attempts at the action raise ``error``, after ``after`` that go as they go."""
        script = self._scripts.setdefault(action, [])
        script += [None] * after + [error] * times

    def give(self, action: str, *results: Any) -> None:
        """The next attempts at the action return these, and its function is not called."""
        self._scripts.setdefault(action, []).extend((result,) for result in results)

    def replace(self, action: str, fn: Callable[..., Any]) -> None:
        """From now on ``fn`` (not async) stands for the action."""
        self._instead[action] = fn

    def _check(self, workflow: Any) -> None:
        """The name of an action that is wrong would be a script that nothing plays."""
        compiled = registry.compiled_of(workflow)
        known = {*self.store._flows_().actions.by_name, *compiled.actions,
                 *(name for other in (*registry.known(), *compiled.children) for name in other.actions)}
        for action in {*self._scripts, *self._instead} - known:
            near = difflib.get_close_matches(action, known, 1)
            raise ValueError(f"no workflow has an action {action!r}" + (f"; did you mean {near[0]!r}?" if near else ""))

    def _intercept(self, attempt: Attempt, action: Served, args: Any) -> Optional[tuple[Any]]:
        with self._lock:
            self.calls.append(Call(action.name, args, attempt.number, attempt.id))
            script = self._scripts.get(action.name)
            step = script.pop(0) if script else None
        if isinstance(step, BaseException):
            raise step
        if step is not None:
            result: tuple[Any] = step
            return result
        instead = self._instead.get(action.name)
        if instead is None:
            return None
        return (instead(**args) if isinstance(args, dict) else instead(*args),)

    def count(self, action: str) -> int:
        """How many attempts at the action were begun."""
        return sum(call.action == action for call in self.calls)

    # ---- Running

    def wait(self, awaitable: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine to its end, in the lab's loop. Actions that are under way then go on in the next one."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(awaitable)

    def run(self, workflow: Any, *args: Any, **inputs: Any) -> Any:
        """Starts an instance and waits for its result."""
        self._check(workflow)
        return self.wait(self.store.run(workflow, *args, **inputs))

    def start(self, workflow: Any, *args: Any, key: Optional[str] = None, **inputs: Any) -> Any:
        """Starts an instance: its handle."""
        self._check(workflow)
        return self.wait(self.store.options(key=key).start(workflow, *args, **inputs))

    # ---- Time

    def advance(self, seconds: float) -> None:
        """Moves the clock, and runs what has become due."""
        self.store._runtime.advance(seconds)
        self.store._runtime.settle()

    @property
    def now(self) -> float:
        """The lab's clock: seconds since 1970."""
        return self.store._runtime.now()
