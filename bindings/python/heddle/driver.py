"""Drives a runtime from an asyncio loop: its descriptor is a reader, its deadline a timer. No thread is needed."""
from __future__ import annotations

import asyncio
import contextvars
import logging
from typing import Any, AsyncGenerator, Callable, Optional

from ._heddle import Runtime, UsageError

VERDICT_SECONDS = 0.5
"""Real time that a commit gets before virtual time passes although the commit has no verdict."""
AGAIN_SECONDS = 0.05
"""What was cut short is not run again at once: a loop that is about to be closed is given the time for that."""


class Driver:
    """Pumps a runtime from an asyncio loop: the loop of the first task that awaits something of the store."""

    def __init__(self, runtime: Runtime, check: Callable[[], None]) -> None:
        self.runtime = runtime
        self.check = check
        """Raises an exception where the running task may not await anything of the store."""
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.busy: list[Callable[[], bool]] = []
        """Whether actions run."""
        self.moved: list[Callable[[asyncio.AbstractEventLoop], None]] = []
        """Told when another loop than before drives the runtime."""
        self.ended: list[Callable[[asyncio.AbstractEventLoop], None]] = []
        """Told when the loop is about to be closed."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Runs of async functions."""
        self.closing = False
        self._told_waiting = False
        self._soon: Optional[asyncio.Handle] = None
        self._timer: Optional[asyncio.TimerHandle] = None
        self.holds = False
        """Virtual time does not pass by itself: Lab.advance moves it."""
        self._quiet = 0
        self._end: Optional[AsyncGenerator[None, None]] = None
        self._context = contextvars.copy_context()
        """Pumps begin actions, which must not see the context variables of the task that happened to wake the driver."""

    def attach(self) -> asyncio.AbstractEventLoop:
        """Pump from the loop that runs now. A loop that was closed is left behind."""
        loop = asyncio.get_running_loop()
        if self.runtime.guard is not None:
            self.check()
        if loop is not self.loop:
            if self.runtime.at_work:  # then it cannot be pumped, and what is awaited would never come
                raise UsageError("a function that the store calls cannot wait for the store in a loop of its own: let it make a "
                                 "task, or write into a cell what an async effect or a workflow is to do")
            self.detach()
            self._context.run(loop.add_reader, self.runtime.fd(), self._pump)
            self.loop = loop
            self._watch_end(loop)
            self.runtime.on_work = self._wake
            self.runtime.unpark()
            self._wake()
            for tell in self.moved:
                tell(loop)
        return loop

    def attach_outside(self, call: str) -> asyncio.AbstractEventLoop:
        """The same for what waits until the caller's own commit is stored. UsageError: a run calls, which commits when it ends."""
        loop = self.attach()
        if self.runtime.in_transaction:
            raise UsageError(f"inside a computation or an effect, {call} would wait for its end: what it starts, sends and writes "
                             f"is stored then. Await a task of its own: await asyncio.create_task({call})")
        return loop

    def _watch_end(self, loop: asyncio.AbstractEventLoop) -> None:
        """asyncio.run closes the loop's generators before the loop itself: from then on nothing may begin on it."""
        async def until_the_end() -> AsyncGenerator[None, None]:
            try:
                yield
            finally:
                if self.loop is loop:
                    self._end = None
                    self.detach()
                    self.cancel_tasks("the loop ends")
                    for tell in self.ended:
                        tell(loop)
        self._end = until_the_end()
        _step(self._end.__anext__())

    def detach(self) -> None:
        loop, self.loop = self.loop, None
        end, self._end = self._end, None
        if end is not None:
            _step(end.aclose())
        if loop is None:
            return
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._soon = self._timer = None
        if not self.runtime.closed:
            self.runtime.on_work = None
            if not loop.is_closed():
                loop.remove_reader(self.runtime.fd())

    def close(self) -> None:
        """From now on nothing goes on."""
        self.closing = True
        self.cancel_tasks("the store is closed")
        self.detach()

    # ---- Runs of async functions

    def running(self) -> Optional[asyncio.AbstractEventLoop]:
        """The loop, if it runs. If it stands still, what waits for it goes on when it runs again."""
        if self.loop is None or self.loop.is_closed():
            return None
        if self.loop.is_running():
            return self.loop
        self.loop.call_soon(self._unpark)
        return None

    def cancel_tasks(self, why: str) -> None:
        for task in list(self.tasks):
            if not task.get_loop().is_closed():
                task.cancel(why)

    def unpark_later(self) -> None:
        """A run was cut short, and the loop may go on. If it ends, the next one that drives the store runs it again."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_later(AGAIN_SECONDS, self._unpark)

    def _unpark(self) -> None:
        if not self.runtime.closed:
            self.runtime.unpark()

    def tell_waiting(self, name: str) -> None:
        if not self._told_waiting and not self.closing:
            self._told_waiting = True
            logging.getLogger("heddle").warning("%s is async: it waits until an asyncio program drives the store "
                                                "(async with heddle.open(...) as store)", name)

    def is_busy(self) -> bool:
        """Whether actions run."""
        return any(busy() for busy in self.busy)

    def has_pending(self) -> bool:
        """Whether the store has not decided about every commit yet."""
        pending: int = self.runtime.stats()["pending"]
        return pending > 0

    def hold(self, on: bool) -> None:
        """Keeps virtual time from passing by itself, or ends that."""
        self.holds = on
        self._wake()

    def reset_quiet(self) -> None:
        """Virtual time does not pass before the loop has gone round some times more."""
        self._quiet = 0

    def _wake(self) -> None:
        self._quiet = 0
        if self._soon is None and self.loop is not None and not self.loop.is_closed():
            self._soon = self.loop.call_soon(self._pump, context=self._context)

    def _pump(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self.runtime.closed:
            self.detach()
            return
        if self._timer is not None and self.runtime.virtual:  # _jump sets it again, if virtual time still keeps pace
            self._timer.cancel()
            self._timer = None
        try:
            due = self._pump_once()
            if due == 0:  # a verdict has come: what waited for it goes on now, not in the next turn of the loop
                due = self._pump_once()
        except (KeyboardInterrupt, SystemExit):
            self.unpark_later()
            self._wake()
            raise
        if due is not None:
            self._wait(due)

    def _pump_once(self) -> Optional[float]:
        """Seconds until the next one; None: something wakes the driver."""
        more = self.runtime.pump()
        if self.runtime.closed or self.loop is None:
            return None
        return 0.0 if more else self.runtime.due()

    def _wait(self, due: float) -> None:
        assert self.loop is not None
        if due <= 0:
            if self._soon is None:
                self._soon = self.loop.call_soon(self._pump, context=self._context)
        elif self.runtime.virtual:
            self._jump(due)
        else:
            self._set_timer(self.loop.time() + due)

    def _set_timer(self, when: float) -> None:
        """A timer that fires too early pumps once for nothing: it is left alone."""
        assert self.loop is not None
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self.loop.call_at(when, self._fire, context=self._context)

    def _fire(self) -> None:
        self._timer = None
        self._pump()

    def _jump(self, due: float) -> None:
        """Virtual time passes when nothing else happens: no action runs, the store has decided about every commit, and the
        loop has gone round without news. While a commit has no verdict, it passes no faster than real time, and not before the
        disk has had VERDICT_SECONDS: a limit of milliseconds is not over because the disk is slow."""
        assert self.loop is not None
        self._quiet += 1
        if self.holds or self.is_busy():
            return
        if self.has_pending():  # time does not stand still: a server that is away is looked for again when `due` has passed
            self._quiet = 0
            self._timer = self.loop.call_later(max(due, VERDICT_SECONDS), self._pass, due, context=self._context)
            return
        if self._quiet > 3:
            self._quiet = 0
            self.runtime.advance(due)
        if self._soon is None:
            self._soon = self.loop.call_soon(self._pump, context=self._context)

    def _pass(self, seconds: float) -> None:
        self.runtime.advance(seconds)
        self._fire()


def _step(awaitable: Any) -> None:
    """Runs what does not wait."""
    try:
        awaitable.send(None)
    except (StopIteration, StopAsyncIteration):
        pass
