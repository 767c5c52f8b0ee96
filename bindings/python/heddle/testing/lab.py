"""The lab: a store for a test."""
from __future__ import annotations

import asyncio
import concurrent.futures.thread
import difflib
import sys
import threading
import time
from typing import Any, Callable, Coroutine, Optional, ParamSpec, TypeVar

from .. import registry
from ..attempts import Attempt
from ..flows import Handle
from ..progress import leave, line_of
from ..registry import Runs
from ..running import Served
from ..schedules import Seconds, seconds as in_seconds
from ..space import Starter
from ..store import File, Store
from ..version import is_async

P = ParamSpec("P")
T = TypeVar("T")

CLOCK = 1767225600.0
"""The lab's clock starts at 2026-01-01, 00:00 UTC."""

LOOK_SECONDS, STILL_LOOKS, THREAD_LOOKS = 0.02, 10, 250
"""Lab.run concludes that nothing can happen any more when STILL_LOOKS looks in a row have found the store at rest, or
THREAD_LOOKS while threads run that could give a signal. The looks are LOOK_SECONDS of real time apart."""

REST_ROUNDS = 5
"""Lab.advance moves the clock when so many rounds of the loop in a row have found nothing to do."""


class Still(RuntimeError):
    """Nothing can happen any more, and the instance that is waited for has not ended."""


POOL = concurrent.futures.thread.__file__
"""Where the threads of a pool wait for work."""


def _no_action(action: str, near: list[str]) -> str:
    return f"no workflow has an action {action!r}" + (f"; did you mean {near[0]!r}?" if near else "")


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

    Time is virtual for workflows, not inside of actions: ``asyncio.sleep(3)`` in an action takes three real seconds, and the
    clock stands still while an action runs, so that no timeout comes. To test one, script it,
    ``lab.fail("charge", TimeoutError())``, or start the workflow and move the clock with :meth:`advance`.
    """

    def __init__(self, file: File = None, *, clock: float = CLOCK) -> None:
        self._threads = set(threading.enumerate())
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
        """The next ``times`` attempts at the action raise ``error``, after ``after`` attempts that run as usual."""
        self._check_name(action)
        script = self._scripts.setdefault(action, [])
        script += [None] * after + [error] * times

    def give(self, action: str, *results: Any) -> None:
        """The next attempts at the action return these, and its function is not called."""
        self._check_name(action)
        self._scripts.setdefault(action, []).extend((result,) for result in results)

    def replace(self, action: str, fn: Callable[..., Any]) -> None:
        """From now on ``fn`` (not async) is called in place of the action."""
        if is_async(fn):
            raise TypeError(f"lab.replace takes a plain function, and {getattr(fn, '__name__', 'this one')} is async: write `def`, "
                            "also for an async action")
        self._check_name(action)
        self._instead[action] = fn

    def _check(self, workflow: Any) -> None:
        """Refuses scripts and replacements for actions that no workflow has: they would never be used."""
        compiled = registry.compiled_of(workflow)
        known = {*self._known(), *compiled.actions, *(name for child in compiled.children for name in child.actions)}
        for action in {*self._scripts, *self._instead} - known:
            near = difflib.get_close_matches(action, known, 1)
            raise ValueError(_no_action(action, near))

    def _check_name(self, action: str) -> None:
        """Refuses a name that is almost that of a known action. A name that resembles none may be an action of a workflow that
        is defined later: :meth:`_check` decides when a workflow is run."""
        known = self._known()
        near = difflib.get_close_matches(action, known, 1)
        if near and action not in known:
            raise ValueError(_no_action(action, near))

    def _known(self) -> set[str]:
        """The actions of all workflows that the program has defined, and those that the store serves."""
        return {*self.store._flows_().actions.by_name, *(name for compiled in registry.known() for name in compiled.actions)}

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
        """Runs a coroutine to its end, in the lab's loop. Actions that are under way then go on in the next one. While the
        coroutine waits, and nothing else can happen, the clock moves to the next time that something waits for: with a schedule
        in the store it runs ahead until the coroutine ends."""
        if asyncio._get_running_loop() is not None:
            awaitable.close()
            raise RuntimeError("a loop runs already: in an async test, await what lab.store has (await lab.store.run(...))")
        if self._runner is None:
            self._runner = asyncio.Runner()
        self.store._driver_().reset_quiet()
        return self._runner.run(awaitable)

    def run(self, workflow: Callable[..., Runs[P, T]], *args: P.args, **inputs: P.kwargs) -> T:
        """Starts an instance and waits for its result. RuntimeError: the instance waits for something, such as a
        signal, and nothing can happen any more."""
        self._check(workflow)
        result: T = self.wait(self._run(Starter(self.store), workflow, args, inputs))
        return result

    async def _run(self, starter: Starter, workflow: Any, args: tuple[Any, ...], inputs: dict[str, Any]) -> Any:
        handle = starter._begin(workflow, args, inputs)
        over = asyncio.ensure_future(handle.result())
        try:
            still = alone = 0
            while not over.done():
                await asyncio.wait([over], timeout=LOOK_SECONDS)
                still = still + 1 if self._is_still() and not over.done() else 0
                alone = alone + 1 if still and not self._has_threads() else 0
                if alone >= STILL_LOOKS or still >= THREAD_LOOKS:
                    raise Still(self._why_still(handle))
            return await over
        finally:
            leave(over)

    def _is_still(self) -> bool:
        """Whether no action runs, every commit has its verdict, no time is waited for, and there is no task besides the two
        of :meth:`_run`."""
        runtime, driver = self.store._runtime, self.store._driver_()
        return (not driver.is_busy() and not driver.has_pending() and runtime.idle() and runtime.due() is None
                and len(asyncio.all_tasks()) <= 2)

    def _has_threads(self) -> bool:
        """Whether a thread runs that was started since the lab was made. Threads of a pool that wait for work do not
        count: such a thread executes no function but the pool's own."""
        frames = sys._current_frames()
        return any(thread not in self._threads and thread.ident in frames
                   and frames[thread.ident].f_code.co_filename != POOL for thread in threading.enumerate())

    def _why_still(self, handle: Handle[Any]) -> str:
        """The error's text: what the instance, or a child of it, waits for. A child's id contains its parent's."""
        engine, mark = handle._flows.engine, handle.id.replace("/", ":") + "."
        ids = [handle.id, *(id for id, _ in engine.list(status="running") if mark in id)]
        states = [engine.state(id) for id in ids]
        waits = [(state["id"], step) for state in states for step in state.get("steps", []) if step["state"] == "waiting"]
        if not waits:
            return f"nothing can happen any more, and {line_of(states[0])}"
        id, step = waits[0]
        signal, given = step["signal"], "handle" if id == handle.id else f"lab.store.handle({id!r})"
        return (f"nothing can happen any more, and {id} waits for the signal {signal!r} ({step.get('at', step['node'])}). Write "
                f"`handle = lab.start(...)`, then `lab.wait({given}.signal({signal!r}, value))` and `lab.wait(handle.result())`.")

    def start(self, workflow: Callable[..., Runs[..., T]], *args: Any, key: Optional[str] = None, **inputs: Any) -> Handle[T]:
        """Starts an instance: its handle."""
        self._check(workflow)
        return self.wait(self.store.options(key=key).start(workflow, *args, **inputs))

    # ---- Time

    def advance(self, seconds: Seconds) -> None:
        """Moves the clock, and stops at each time in between that something waits for. When it returns, all that was due by
        then has begun, and has run until nothing more can happen at that time. It waits for actions that run, but not longer
        than 0.2 seconds of real time in which none begins or ends; so it also lets the timeout of an action come that does
        not end. In an async test, where the loop runs already, it moves the clock at once and runs what needs no action."""
        number = in_seconds(seconds)
        if not 0 <= number < float("inf"):
            raise ValueError(f"the clock goes forward by a number of seconds, not {number}")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.wait(self._advance(number))
        else:
            self.store._runtime.advance(number)
            self.store._runtime.settle()

    async def _advance(self, seconds: float) -> None:
        runtime, driver = self.store._runtime, self.store._driver_()
        driver.attach()
        driver.hold(True)
        try:
            await self._rest()
            while seconds > 0:
                due = runtime.due()
                step = seconds if due is None else min(seconds, due)
                runtime.advance(step)
                seconds -= step
                await self._rest()
        finally:
            driver.hold(False)

    async def _rest(self) -> None:
        """Until nothing more can happen before the clock moves. Something is given up that brings no news for a while: an
        action after LOOK_SECONDS * STILL_LOOKS, a commit later."""
        runtime, driver = self.store._runtime, self.store._driver_()
        rounds, since, news = 0, time.monotonic(), None
        while rounds < REST_ROUNDS:
            await asyncio.sleep(0 if rounds else 0.001)
            busy, due = driver.is_busy(), runtime.due()
            # A node that waits for a time is not idle, and nothing but the clock can help it; an async function goes on by itself.
            still = runtime.idle() or (due is not None and not driver.tasks)
            if not busy and not driver.has_pending() and still and due != 0:
                rounds += 1
                continue
            rounds = 0
            latest = (len(self.calls), runtime.stats()["commits"])
            if latest != news:
                since, news = time.monotonic(), latest
            elif time.monotonic() - since > LOOK_SECONDS * STILL_LOOKS * (1 if busy else 10):
                return

    @property
    def now(self) -> float:
        """The lab's clock: seconds since 1970."""
        return self.store._runtime.now()
