"""Cancellation at every await of a program, closed loops, and interrupts: the store goes on, and nothing is left behind."""
from __future__ import annotations

import asyncio
import gc
import sys
import subprocess
import os

import pytest

import heddle
from flow import call
from heddle import running
from heddle import Workflow, action, workflow


@action
async def double(x: int) -> int:
    await asyncio.sleep(0)
    return x * 2


@action
def half(x: int) -> float:
    return x / 2


@workflow
class Both(Workflow):
    async def run(self, x: int) -> float:
        x = await double(x)
        y = await half(x)
        await heddle.signal("on", timeout=1000)
        return y


_done: list[str] = []


@action
async def done(what: str) -> str:
    _done.append(what)
    await asyncio.sleep(0)
    return what


@workflow
class Undo(Workflow):
    async def run(self, what: str) -> str:
        await done(f"undo {what}")
        return what


@workflow
class CleansUp(Workflow):
    """Its clean-up waits with a limit, which expires, and for a child."""

    async def run(self) -> None:
        try:
            await heddle.signal("never")
        finally:
            x = await asyncio.wait_for(done("release"), 5)
            try:
                await asyncio.wait_for(asyncio.sleep(5), 0.001)
            except TimeoutError:
                x += " late"
            await done(await Undo().run(x))


@workflow
class Outer(Workflow):
    """Cancels another one, in the three ways that a workflow has."""

    async def run(self, how: str) -> str:
        try:
            if how == "group":
                async with asyncio.TaskGroup() as group:
                    group.create_task(CleansUp().run())
                    group.create_task(self.fail())
            elif how == "wait_for":
                await asyncio.wait_for(CleansUp().run(), 0.001)
            else:
                async with asyncio.timeout(0.001):
                    await CleansUp().run()
        except (TimeoutError, ExceptionGroup) as error:
            return repr(error)
        return "in time"

    async def fail(self) -> None:
        await asyncio.sleep(0.001)
        raise ValueError("no")


CLEANED_UP = ["release", "undo release late", "release late"]


class Cancelled:
    """Awaits a coroutine, and cancels its task at the nth time it waits."""

    def __init__(self, coroutine, at):
        self.coroutine, self.at, self.waits = coroutine, at, 0

    def __await__(self):
        inner = self.coroutine.__await__()
        error = None
        while True:
            try:
                future = inner.send(None) if error is None else inner.throw(error)
            except StopIteration as over:
                return over.value
            self.waits += 1
            if self.waits == self.at:
                asyncio.current_task().cancel()
            error = None
            try:
                yield future
            except BaseException as raised:
                error = raised


async def use(store, key):
    """Everything that a program awaits."""
    cell = store.cell("main/x")
    handle = await store.options(key=key).start(Both, 3)
    await store.transact_async(lambda: cell.set(1))
    async for value in cell:
        if value == 1:
            break
    await store.stored()
    await store.handled("main/events", 5)
    await handle.status()
    await handle.pause()
    await handle.resume()
    await handle.signal("on")
    assert await handle.result() == 3.0
    await handle.remove()


async def cancelled_at(path, at):
    """False: it was over before."""
    async with heddle.open(path) as store:
        @store.on("main/events")
        def event(event):
            return None

        scenario = Cancelled(use(store, f"k{at}"), at)

        async def run():
            await scenario

        outcome, = await asyncio.gather(asyncio.ensure_future(run()), return_exceptions=True)
        if scenario.waits < at:
            assert outcome is None
            return False
        assert isinstance(outcome, asyncio.CancelledError)
        # The store is as good as before.
        await asyncio.wait_for(use(store, f"again{at}"), 60)
        handle = store.handle(f"Both/k{at}")
        state = dict(store.instances(Both)).get(handle.id)
        if state == "paused":
            await handle.resume()
        if state is not None and state != "done":
            await handle.signal("on")
            assert await asyncio.wait_for(handle.result(), 60) == 3.0
        assert not store._flows_().actions.running
    return True


def test_cancelled_at_every_await(tmp_path):
    at = 1
    while asyncio.run(cancelled_at(str(tmp_path / f"{at}.db"), at)):
        at += 1
    assert at >= 8


def test_clean_up_of_a_cancelled_workflow_waits_for_whatever_it_wants(path):
    async def main():
        async with heddle.open(path) as store:
            handle = await store.start(CleansUp)
            await handle.cancel()
            with pytest.raises(heddle.WorkflowCancelled):
                await handle.result()

    _done.clear()
    asyncio.run(main())
    assert _done == CLEANED_UP


@pytest.mark.parametrize("how, outcome", [("group", "ExceptionGroup('unhandled errors in a TaskGroup', [ValueError('no')])"),
                                          ("wait_for", "TimeoutError()"), ("timeout", "TimeoutError()")])
def test_clean_up_of_a_child_waits_for_whatever_it_wants(path, how, outcome):
    async def main():
        async with heddle.open(path) as store:
            return await asyncio.wait_for(store.run(Outer, how), 60)

    _done.clear()
    assert asyncio.run(main()) == outcome
    assert _done == CLEANED_UP


def test_an_action_has_begun_when_its_time_limit_is_over(path):
    @workflow
    class Late(Workflow):
        async def run(self) -> str:
            try:
                async with asyncio.timeout(0):
                    return await done("begun")
            except TimeoutError:
                return await done("late")

    async def main():
        async with heddle.open(path) as store:
            return await asyncio.wait_for(store.run(Late), 60)

    _done.clear()
    assert asyncio.run(main()) == "late"
    assert _done == ["begun", "late"]


def test_a_loop_that_is_closed_is_left_behind(path):
    with heddle.open(path) as store:
        async def begin():
            return await store.options(key="k").start(Both, 5)

        handle = asyncio.run(begin())

        async def end():
            await handle.signal("on")
            return await handle.result()

        assert asyncio.run(end()) == 5.0


def test_an_action_that_runs_when_its_loop_ends_is_begun_again(path):
    begun = []

    async def act(x):
        begun.append(x)
        if len(begun) == 1:
            await asyncio.Event().wait()
        return x + 1

    with heddle.open(path) as store:
        async def begin():
            handle = await store.start(call(act), 1)
            while not begun:
                await asyncio.sleep(0)
            return handle

        handle = asyncio.run(begin())
        assert asyncio.run(asyncio.wait_for(handle.result(), 60)) == 2 and begun == [1, 1]


def test_an_action_whose_task_the_program_cancels_is_begun_again(path):
    begun = []

    async def act(x):
        begun.append(asyncio.current_task())
        if len(begun) == 1:
            await asyncio.Event().wait()
        return x + 1

    async def main():
        async with heddle.open(path) as store:
            handle = await store.start(call(act), 1)
            while not begun:
                await asyncio.sleep(0)
            begun[0].cancel()
            return await asyncio.wait_for(handle.result(), 60)

    assert asyncio.run(main()) == 2 and len(begun) == 2


def test_a_result_that_is_awaited_when_the_store_is_closed_says_so(path):
    async def main():
        store = heddle.open(path)
        async with store:
            handle = await store.start(Both, 5)
            waits = asyncio.ensure_future(handle.result())
            await asyncio.sleep(0)
        with pytest.raises(heddle.FailedError, match="the store was closed"):
            await asyncio.wait_for(waits, 60)

    asyncio.run(main())


def test_what_is_awaited_in_a_closed_store_says_so(path):
    async def main():
        async with heddle.open(path) as store:
            handle = await store.start(Both, 5)
        for call in (handle.status, handle.result, handle.cancel, lambda: store.run(Both, 1), lambda: store.transact_async(lambda: None)):
            with pytest.raises(heddle.Error, match="closed"):
                await call()

    asyncio.run(main())


def test_an_interrupt_in_a_sink_is_raised_by_what_drives_the_store():
    with heddle.open() as store:
        x = store.cell("main/x")

        def shown(value):
            if value == 2:
                raise KeyboardInterrupt

        x.sink(shown)
        x.set(1)
        store.settle()
        x.set(2)
        with pytest.raises(KeyboardInterrupt):
            store.settle()
        x.set(3)
        store.settle()
        assert x() == 3


CLOSED_BY_A_SIGNAL = """
import signal
import heddle
signal.signal(signal.SIGALRM, lambda *_: store.close())
for _ in range(5):
    store = heddle.open()
    cell = store.cell("main/x")
    store.effect(lambda: cell())
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        for i in range(10_000_000):
            store._runtime.settle()
    except heddle.Error as error:
        print(error)
"""


def test_an_interrupt_of_an_error_handler_is_raised_by_what_drives_the_store():
    with heddle.open() as store:
        @store.on_error
        def interrupt(name, error):
            raise KeyboardInterrupt(name)

        @store.effect
        def fails():
            raise ValueError

        with pytest.raises(KeyboardInterrupt, match="fails"):
            store.settle()


@pytest.mark.parametrize("confirmed", [False, True])
def test_a_function_that_the_store_calls_waits_for_nothing_of_it(confirmed):
    with heddle.open() as store:
        cell, said = store.cell("main/x"), []

        def sink(value):
            for wait in (lambda: asyncio.run(store.stored()), lambda: asyncio.run(store.run(Both, 1)), store.run_forever):
                with pytest.raises(heddle.UsageError) as refused:
                    wait()
                said.append(str(refused.value))

        cell.set(1)
        cell.sink(sink, confirmed=confirmed)
        store.settle()
        store.sync()
        assert len(said) == 3 and all("a function that the store calls" in text for text in said)


def test_a_signal_handler_that_closes_the_store_ends_settle():
    out = subprocess.run([sys.executable, "-c", CLOSED_BY_A_SIGNAL], capture_output=True, text=True, timeout=100, check=True)
    assert set(out.stdout.splitlines()) <= {"the store is closed", ""} and out.stdout


def test_ctrl_c_while_a_step_begins_fails_no_step(path, monkeypatch):
    begin, calls = running.Actions.begin, []

    def interrupted(self, *attempt):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        begin(self, *attempt)

    async def main():
        async with heddle.open(path) as store:
            return await store.options(key="k").run(call(double), 5)

    monkeypatch.setattr(running.Actions, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert asyncio.run(main()) == 10 and len(calls) >= 2


@pytest.mark.parametrize("line", range(1, 12))
def test_ctrl_c_at_any_line_of_a_beginning_fails_no_step(line):
    code, left = {running.Actions.begin.__code__, running.Actions._begin.__code__}, [line]

    def trace(frame, event, _):
        if frame.f_code not in code:
            return None
        left[0] -= event == "line"
        if left[0] == 0:
            left[0] = -1
            raise KeyboardInterrupt
        return trace

    loop = asyncio.new_event_loop()
    with heddle.open() as store:
        sys.settrace(trace)
        try:
            loop.run_until_complete(store.options(key="k").run(call(double), 5))
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert loop.run_until_complete(asyncio.wait_for(store.handle("w/k").result(), 10)) == 10
        assert not store._own._flows.actions.running
    loop.close()


def test_cancelled_waits_leave_no_objects(path):
    async def main():
        async with heddle.open(path) as store:
            handle = await store.start(Both, 5)
            for _ in range(3):
                await give_up(handle)
            gc.collect()
            before = len(gc.get_objects())
            for _ in range(200):
                await give_up(handle)
            gc.collect()
            grown = len(gc.get_objects()) - before
            await handle.signal("on")
            await handle.result()
            return grown

    async def give_up(handle):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(handle.result(), 0)

    assert asyncio.run(main()) < 100


def test_nothing_begins_on_a_loop_that_ends(tmp_path):
    """Programs that call asyncio.run several times: while a loop ends, the engine begins no action on it."""
    program = tmp_path / "program.py"
    program.write_text("""
import asyncio, gc, heddle
from heddle import Workflow, action, workflow

@action
async def pay(x: int) -> int:
    await asyncio.sleep(0.001)
    return x

@workflow
class Pays(Workflow):
    async def run(self) -> int:
        given = await heddle.signal("go")
        for _ in range(5):
            await pay(5)
        return given

async def other():
    try:
        await asyncio.sleep(10)
    finally:
        await asyncio.sleep(0.01)

async def signal(handle):
    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    await handle.signal("go", 4)

store = heddle.open()
for i in range(30):
    handle = asyncio.run(store.start(Pays))
    asyncio.run(signal(handle) if i % 2 else handle.signal("go", 4))
    if i % 3 == 0:
        print(asyncio.run(handle.result()))
gc.collect()
store.close()
""")
    out = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120,
                         env=dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(os.path.abspath(heddle.__file__)))))
    assert (out.stdout, out.stderr) == ("4\n" * 10, "")
