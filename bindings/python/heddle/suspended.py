"""Async computations: the coroutine is a task of the loop; whenever it runs, reads and writes go through its run."""
from __future__ import annotations

import asyncio
import contextvars
import types
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Generator, Optional

from . import _heddle

if TYPE_CHECKING:
    from .store import Store

_current: contextvars.ContextVar[Optional[_heddle.Run]] = contextvars.ContextVar("heddle run", default=None)
"""Tasks that a run begins (gather, wait_for, a TaskGroup) inherit it: cells are read and written in the run until it ends."""


@types.coroutine
def _inside(store: Store, run: _heddle.Run, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The coroutine, with the run entered around each of its steps, until the store is closed."""
    step: Callable[[], Any] = lambda: coroutine.send(None)
    try:
        while True:
            entered = not store.closed
            if entered:
                run.enter()
            try:
                waited_for = step()
            except StopIteration as end:
                return end.value
            finally:
                if entered:
                    run.leave()
            try:
                sent = yield waited_for
            except BaseException as error:
                raised = error
                step = lambda: coroutine.throw(raised)
            else:
                value = sent
                step = lambda: coroutine.send(value)
    finally:
        coroutine.close()  # the run was over before, or the task has ended


def begin(store: Store, fn: Callable[[], Coroutine[Any, Any, Any]], run: _heddle.Run) -> None:
    """Starts a run. If no loop can go on with it, it waits until one drives the store."""
    driver = store._driver_()
    loop = driver.running()
    if loop is None:
        run.park()
        driver.tell_waiting(getattr(fn, "__name__", "an async function"))
        return
    store._runtime.inside = _current.get
    task = loop.create_task(_finish(store, fn, run))
    driver.tasks.add(task)
    task.add_done_callback(driver.tasks.discard)


async def _finish(store: Store, fn: Callable[[], Coroutine[Any, Any, Any]], run: _heddle.Run) -> None:
    _current.set(run)
    try:
        result = await _inside(store, run, fn())
    except asyncio.CancelledError as error:
        if store.closed:
            raise
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the loop ends, say: the function has not failed
            run.park()
            store._driver_().unpark_later()
            raise
        run.fail(_heddle.FailedError(f"the run was cancelled: {error}" if str(error) else "the run was cancelled"))
    except (KeyboardInterrupt, SystemExit):
        if not store.closed:
            run.park()
            store._driver_().unpark_later()
        raise
    except Exception as error:
        if not store.closed:
            run.fail(error)
    else:
        if not store.closed:
            run.finish(result)
