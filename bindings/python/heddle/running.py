"""Running actions in this process: async ones as tasks of the loop, sync ones in threads. The engine of a store and the
worker process use it; what becomes of an attempt goes to their ``Ends``."""
from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import inspect
from typing import Any, Callable, Mapping, Optional, Protocol

from . import values
from .attempts import Attempt, _current

THREADS = 32
"""So many sync actions run at once in this process."""


AGAIN_SECONDS = 0.05


class Ends(Protocol):
    """Where attempts end. Called on the thread of the loop, except ``post``."""

    @property
    def closed(self) -> bool: ...
    @property
    def loop(self) -> Optional[asyncio.AbstractEventLoop]: ...
    def complete(self, token: Any, result: Any) -> None: ...
    def fail(self, token: Any, error: Any) -> None:
        """``error``: an exception, or one that :mod:`values` has encoded."""
    def heartbeat(self, token: Any) -> None: ...
    def give_back(self, token: Any) -> None: ...
    def post(self, fn: Callable[[], None]) -> None:
        """From any thread: calls fn on the thread of the loop."""


class Served(Protocol):
    """An action: its name, and the function that does it."""

    @property
    def name(self) -> str: ...
    @property
    def is_async(self) -> bool: ...
    def invoke(self, args: Any) -> Any: ...


class Plain:
    """A plain function as an action."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)

    def invoke(self, args: Any) -> Any:
        return self.function(**args) if isinstance(args, dict) else self.function(*args)


def served(name: str, given: Any) -> Served:
    if not hasattr(given, "invoke"):
        return Plain(name, given)
    action: Served = given
    return action


def _is_running(task: Optional[asyncio.Task[None]]) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop runs
        return False


def _uncrossed(action: str, refused: Exception) -> Any:
    """The failure of a step whose result cannot cross. What Python does for the workflow itself is no action of the program:
    there CPython raises nothing, and no `except TypeError` may catch it."""
    if action.startswith("heddle."):
        return values.final_error(f"{refused}: do it in an action that returns what you need of it", "Unsupported")
    return values.final_error(f"{refused}, in what the action {action} returned")


def _unusable(error: BaseException, refused: Exception) -> str:
    """Why the exception cannot be encoded: ``refused`` was raised then."""
    try:
        why = str(refused)
    except Exception:
        why = "its text cannot be made"
    return f"the exception {type(error).__name__} cannot be used: {type(refused).__name__}: {why}"


class Actions:
    """The actions that this process does, and the attempts at them that are under way."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self.by_name: dict[str, Served] = {}
        self.running: dict[Any, Attempt] = {}
        self.threads: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self.in_threads: dict[tuple[str, int], Optional[Callable[[], None]]] = {}
        """The calls in threads, by step and number of the attempt. An attempt that was lost, and came back while its call still
        runs, begins when that has ended."""
        self.closing = False
        """The store is being closed: it begins no more attempts, and the next program does."""
        self.intercept: Optional[Callable[[Attempt, Served, Any], Optional[tuple[Any]]]] = None
        """For tests: called before an action. What it raises the action raises; a tuple has the result."""
        self.wrap: Callable[[Served], Served] = lambda action: action
        """For tests: what stands for an action."""

    def add(self, name: str, given: Any) -> bool:
        """True: it is new."""
        new = name not in self.by_name
        self.by_name[name] = self.wrap(served(name, given))
        return new

    def begin(self, token: Any, name: str, id: str, number: int, heartbeat_ms: int, args: Any) -> None:
        if self.closing:
            return
        try:
            self._begin(token, self.by_name[name], Attempt(id, number, name, token, self._beat_from_anywhere), heartbeat_ms, args)
        except (KeyboardInterrupt, SystemExit):  # the engine takes the attempt back
            self.revoke(token, "the program was interrupted")
            raise

    def _begin(self, token: Any, action: Served, attempt: Attempt, heartbeat_ms: int, args: Any) -> None:
        self.running[token] = attempt
        loop = self.ends.loop
        if action.is_async and loop is not None:
            attempt._task = loop.create_task(self._run_async(token, action, attempt, args))
            if heartbeat_ms:
                self._keep_beating(token, attempt, heartbeat_ms / 3000)
        else:
            self._submit(token, action, attempt, args)

    async def _run_async(self, token: Any, action: Served, attempt: Attempt, args: Any) -> None:
        _current.set(attempt)
        try:
            replaced = self.intercept(attempt, action, args) if self.intercept else None
            result = await action.invoke(args) if replaced is None else replaced[0]
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if attempt.revoked or self.ends.closed:
                self._ended(token)
            elif task is not None and task.cancelling():
                task.get_loop().call_later(AGAIN_SECONDS, self._give_back, token)
            else:
                self._finish(token, None, error)
        except (KeyboardInterrupt, SystemExit):  # of the program: the step is begun again by the next one
            raise
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not _is_running(attempt._task):
                raise  # the loop is gone, and the coroutine with it
            self._finish(token, None, error)
        else:
            self._finish(token, result, None)

    def _submit(self, token: Any, action: Served, attempt: Attempt, args: Any) -> None:
        call = attempt.id, attempt.number
        if token not in self.running:  # it was revoked while it waited for the call before
            return
        if call in self.in_threads:
            self.in_threads[call] = functools.partial(self._submit, token, action, attempt, args)
            return
        self.in_threads[call] = None
        if self.threads is None:
            self.threads = concurrent.futures.ThreadPoolExecutor(THREADS, "heddle-action")
        context = contextvars.copy_context()
        self.threads.submit(lambda: context.run(self._run_in_thread, token, action, attempt, args))

    def _run_in_thread(self, token: Any, action: Served, attempt: Attempt, args: Any) -> None:
        _current.set(attempt)
        result: Any = None
        failure: Optional[BaseException] = None
        try:
            replaced = self.intercept(attempt, action, args) if self.intercept else None
            result = action.invoke(args) if replaced is None else replaced[0]
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
        except BaseException as error:
            failure = error
        self.ends.post(functools.partial(self._thread_ended, token, attempt, result, failure))

    def _thread_ended(self, token: Any, attempt: Attempt, result: Any, error: Optional[BaseException]) -> None:
        begin_again = self.in_threads.pop((attempt.id, attempt.number))
        self._finish(token, result, error)
        if begin_again is not None and not self.closing:
            begin_again()

    def _ended(self, token: Any) -> Optional[Attempt]:
        """The attempt, if the engine still waits for it."""
        attempt = self.running.pop(token, None)
        if attempt is not None and attempt._timer is not None:
            attempt._timer.cancel()
        return None if self.ends.closed else attempt

    def _finish(self, token: Any, result: Any, error: Optional[BaseException]) -> None:
        attempt = self._ended(token)
        if attempt is None:
            return
        if error is None:
            try:
                self.ends.complete(token, result)
            except Exception as refused:  # it cannot cross, and another attempt would do the work again for the same end
                self.ends.fail(token, _uncrossed(attempt.action, refused))
            return
        try:
            self.ends.fail(token, error)
        except Exception as refused:  # code of the exception's class, such as its __str__, has raised this
            self.ends.fail(token, TypeError(_unusable(error, refused)))

    # ---- Loops that end

    def _give_back(self, token: Any) -> None:
        """The action's task was cancelled, not by the engine: the step is begun again. Not at once, because code that
        cancels all tasks is about to close the loop; then the next loop does it."""
        if self._ended(token) is not None:
            self.ends.give_back(token)

    def moved(self, loop: asyncio.AbstractEventLoop) -> None:
        """The store is driven by this loop now: the tasks of another one are over."""
        for token, attempt in list(self.running.items()):
            if attempt._task is not None and attempt._task.get_loop() is not loop:
                self._give_back(token)

    def ended(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop is about to be closed: what was begun on it since its tasks were cancelled is cancelled too."""
        for attempt in self.running.values():
            if attempt._task is not None and attempt._task.get_loop() is loop:
                attempt._task.cancel("the loop ends")

    # ---- Heartbeats, and attempts that are taken back

    def _keep_beating(self, token: Any, attempt: Attempt, seconds: float) -> None:
        loop = self.ends.loop
        if token not in self.running or loop is None or self.ends.closed:
            return
        self.ends.heartbeat(token)
        attempt._timer = loop.call_later(seconds, self._keep_beating, token, attempt, seconds)

    def _beat_from_anywhere(self, token: Any) -> None:
        self.ends.post(lambda: None if self.ends.closed else self.ends.heartbeat(token))

    def revoke(self, token: Any, why: str) -> None:
        """The engine does not wait for the attempt any more."""
        attempt = self.running.get(token)
        if attempt is None:
            return
        attempt.revoked = True
        self._ended(token)  # now: a task that has been cancelled might not say so
        task = attempt._task
        if task is not None and not task.get_loop().is_closed():
            task.get_loop().call_soon(task.cancel, why)  # after its first step: in CPython a call has begun when it is cancelled

    def close(self) -> None:
        self.closing = True
        for attempt in list(self.running.values()):
            attempt.revoked = True
            if attempt._task is not None and not attempt._task.get_loop().is_closed():
                attempt._task.cancel("the store is closed")
            if attempt._timer is not None:
                attempt._timer.cancel()
        if self.threads is not None:
            self.threads.shutdown(wait=False, cancel_futures=True)
