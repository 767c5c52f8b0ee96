"""Async computations: the coroutine is a task of the loop; whenever it runs, reads and writes go through its run."""
from __future__ import annotations

import asyncio
import functools
import types
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Generator

from . import _heddle

if TYPE_CHECKING:
    from .store import Store


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
    """Starts a run. Without a loop it is refused: use ``async with store``, or await something of it."""
    driver = store._driver_()
    if driver.loop is None or driver.loop.is_closed():
        raise _heddle.UsageError(f"{getattr(fn, '__name__', 'an async function')} is async: it runs in an asyncio program "
                                 "(async with heddle.open(...) as store)")
    task = driver.loop.create_task(_finish(store, fn, run))
    cancel = functools.partial(task.cancel, "the store is closed")
    store._at_close.add(cancel)
    task.add_done_callback(lambda _: store._at_close.discard(cancel))


async def _finish(store: Store, fn: Callable[[], Coroutine[Any, Any, Any]], run: _heddle.Run) -> None:
    try:
        result = await _inside(store, run, fn())
    except asyncio.CancelledError as error:
        if not store.closed:
            run.fail(_heddle.FailedError(f"the run was cancelled: {error}"))
        raise
    except Exception as error:
        if not store.closed:
            run.fail(error)
    else:
        if not store.closed:
            run.finish(result)
