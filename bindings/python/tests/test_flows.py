"""Workflows through the store: actions, results, exceptions, keys, signals, time, several programs."""
from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import datetime
import decimal
import enum
import gc
import os
import sys
import threading
import time
import traceback
from typing import Optional, Union
from xml.etree import ElementTree

import pytest

import heddle
from heddle import WorkflowCancelled, progress
from heddle.store import Store
from heddle.testing.lab import CLOCK
import twin
from flow import Flow, call, chain, give, sleep, step


class Broke(Exception):
    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def run(workflow, *args, store=None, **inputs):
    async def main():
        async with heddle.open() as store:
            return await store.run(workflow, *args, **inputs)

    return asyncio.run(main())


# ---- Actions


def test_async_and_sync_actions():
    async def soft(x):
        await asyncio.sleep(0)
        return x + 1, asyncio.get_running_loop() is not None, threading.current_thread() is threading.main_thread()

    def hard(x):
        return x + 1, threading.current_thread() is threading.main_thread()

    assert run(call(soft), 1) == (2, True, True)
    assert run(call(hard), 1) == (2, False)


def test_an_attempt_that_is_cancelled_before_it_begins_is_forgotten():
    """The limit is over before the loop has given the action its first turn: virtual time must pass afterwards."""
    async def act(x):
        return x

    async def main():
        async with Store(clock=CLOCK) as store:
            flows = store._flows_()
            handle = await store.start(call(act), 1)
            flows.actions.running.clear()
            flows.actions.begin(99, "act", "id", 1, 0, {"x": 1})
            flows.actions.revoke(99, "gone")
            await asyncio.sleep(0)
            assert not flows.actions.running
            await handle.cancel()

    asyncio.run(main())


def test_values_cross_by_value():
    seen = []

    async def act(x):
        seen.append(x)
        x["b"].append(5)
        return {"z": (1, {2}), "a": datetime.date(2026, 1, 1), **x}

    given = {"b": [1], "a": 2}
    assert run(call(act), given) == {"z": (1, {2}), "a": 2, "b": [1, 5]}
    assert given == {"b": [1], "a": 2} and list(seen[0]) == ["b", "a"]


def test_an_exception_is_the_workflows_own():
    async def act(x):
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise FileNotFoundError(2, "gone", "a.txt") from inner

    with pytest.raises(FileNotFoundError) as caught:
        run(call(act), 1)
    assert caught.value.filename == "a.txt" and type(caught.value.__cause__) is KeyError
    assert "raise FileNotFoundError" in caught.value.__traceback_text__


def test_a_class_of_the_program_is_caught_by_its_base_and_comes_back_whole():
    def act(x):
        raise Broke("no", 7)

    with pytest.raises(Broke) as caught:
        run(call(act), 1)
    assert caught.value.code == 7 and caught.value.args == ("no",)


def test_an_exception_that_is_too_long_keeps_its_class():
    """Its text crosses three times: as argument, as message, and at the end of the traceback."""
    def act(x):
        raise Broke("x" * x, 7)

    with pytest.raises(Broke) as caught:
        run(call(act), 5 << 20)
    assert len(str(caught.value)) == 5 << 20
    with pytest.raises(Broke, match="^the exception of act is longer than 16777216 bytes: its arguments and attributes were dropped$"):
        run(call(act), 6 << 20)


Wide = type("W" * (17 << 20), (Exception,), {})


class BelowWide(Wide):
    pass


@pytest.mark.parametrize("make", [lambda: ExceptionGroup("x" * (9 << 20), [KeyError()]), BelowWide])
def test_an_exception_that_is_too_long_and_cannot_be_made_of_a_message_is_a_value_error(make):
    def act(x):
        raise make()

    with pytest.raises(ValueError, match="^the exception of act is longer than 16777216 bytes: its arguments"):
        run(call(act), 1)


def test_a_result_that_cannot_cross_is_a_type_error():
    calls = []

    async def act(x):
        calls.append(1)
        return {"f": [object()]}

    with pytest.raises(TypeError, match=r"object cannot cross into a workflow at value\['f'\]\[0\], in what the action act returned"):
        run(call(act, retry={"attempts": 3}), 1)
    assert len(calls) == 1


class Unseen(enum.Enum):
    A = 1


def test_a_key_whose_class_the_workflow_does_not_know_is_named():
    async def act(x):
        return {"f": [{Unseen.A: 1}]} if x else {(decimal.Decimal(1), 2)}

    with pytest.raises(TypeError, match="^the result of act cannot be used: a key of a dict or an element of a set is a 'Unseen', which "
                                        "the workflow cannot compare: if its class is an enum, annotate the action or input with it$"):
        run(call(act), 1)
    with pytest.raises(TypeError, match="a key of a dict or an element of a set is a 'tuple', which the workflow cannot compare"):
        run(call(act), 0)


LATE = """
try:
    async with asyncio.timeout(0.01):
        await asyncio.sleep(100)
except TimeoutError as e:
    return repr(e.__cause__), e.args
"""


def test_the_timeout_error_of_a_block_has_the_cancelled_error_as_its_cause():
    """As in later releases of CPython 3.11; 3.11.2 leaves it out."""
    async def main():
        async with Store(clock=CLOCK) as store:
            return (await twin.run_compiled(store, twin.flow(LATE))).value

    assert asyncio.run(main()) == ("CancelledError()", ())


@pytest.mark.parametrize("body", [
    "return [(k, d.pop(1, 0), d.setdefault(11, k)) for k in d]",
    "for k in d:\n    d.pop(1, 0)\n    d.setdefault(11, k)",
    "for k in d:\n    d[k] = d.pop(k)",
    "for k in d:\n    value = d.pop(k)\n    await echo(k)\n    d[k] = value",
    "for k in d:\n    if k == 1:\n        del d[k]\n        d[k] = 5",
    "s = {*d}\nfor k in s:\n    s.remove(k)\n    s.add(k)"])
def test_a_loop_whose_dict_gets_other_keys_or_another_order_is_refused(body):
    """What CPython does depends on when it last rebuilt the dict."""
    async def main():
        async with heddle.open() as store:
            return (await twin.run_compiled(store, twin.flow("d = {1: 1, 2: 2}\n" + body))).error

    error = asyncio.run(main())
    assert type(error) is heddle.Unsupported and str(error) == "keys that a loop replaces by others while it runs"


def test_a_result_that_contains_itself_is_a_type_error():
    async def act(x):
        circle = {"a": []}
        circle["a"].append(circle)
        return circle

    with pytest.raises(TypeError, match=r"(dict|list) contains itself at value\['a'\]\[0\].*, in what the action act returned"):
        run(call(act), 1)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_that_is_too_deep_is_a_type_error(is_async):
    def act(x):
        deep = []
        for _ in range(600):
            deep = [deep]
        return deep

    async def act_async(x):
        return act(x)

    with pytest.raises(TypeError, match="too deep or too large, in what the action act"):
        run(call(act_async if is_async else act), 1)


def test_retries_and_what_the_attempt_knows():
    seen = []

    async def act(x):
        attempt = heddle.attempt()
        seen.append((attempt.number, attempt.id, attempt.action))
        if attempt.number < 3:
            raise ConnectionError("away")
        return x

    assert run(call(act, retry={"attempts": 3, "on": ["ConnectionError"]}), 5) == 5
    assert [n for n, _, _ in seen] == [1, 2, 3] and len({id for _, id, _ in seen}) == 1 and seen[0][2] == "act"
    with pytest.raises(RuntimeError):
        heddle.attempt()


def test_a_timeout_cancels_the_task():
    ended = []

    async def act(x):
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(1)

    with pytest.raises(TimeoutError):
        run(call(act, timeout=0.05), 1)
    assert ended == [1]


def test_a_timeout_tells_a_thread():
    ended = threading.Event()

    def act(x):
        while not heddle.attempt().revoked:
            time.sleep(0.001)
        ended.set()

    with pytest.raises(TimeoutError):
        run(call(act, timeout=0.05), 1)
    assert ended.wait(5)


def test_async_actions_beat_by_themselves():
    async def act(x):
        await asyncio.sleep(0.5)
        return heddle.attempt().number

    assert run(call(act, heartbeat=0.1), 1) == 1


def test_a_sync_action_beats_when_it_says_so():
    def act(x):
        for _ in range(10):
            time.sleep(0.03)
            heddle.attempt().heartbeat()
        return "done"

    assert run(call(act, heartbeat=0.15), 1) == "done"


def test_context_variables_of_an_action_are_its_own():
    variable = contextvars.ContextVar("v", default=0)

    async def act(x):
        variable.set(variable.get() + 1)
        return variable.get()

    assert run(chain(1, act), 0) == 1 == run(chain(3, act), 0)


# ---- Instances


def test_one_key_is_one_instance(path):
    calls = []

    async def act(x):
        calls.append(x)
        return x

    async def main():
        async with heddle.open(path) as store:
            first = await store.options(key="k").start(call(act), 1)
            second = await store.options(key="k").start(call(act), 2)
            assert first.id == second.id == "w/k"
            assert await first.result() == 1 == await second.result()
            assert await first.status() == "done" and calls == [1]
            assert (await first.state())["result"] == 1
            assert store.instances("w") == [("w/k", "done")] and store.instances(status="running") == []

    asyncio.run(main())


def test_inputs_are_checked_at_start():
    async def act(x):
        return x

    for args, inputs in (((), {}), ((1, 2), {}), ((), {"y": 1})):
        with pytest.raises(TypeError):
            run(call(act), *args, **inputs)
    with pytest.raises(TypeError, match="int is no workflow: give a class"):
        run(int, 1)


def test_cancel_and_signal():
    waits = Flow("waits", [], [{"id": "w", "kind": "WAIT", "signal": "paid", "into": ["name", "r"]}, give()])

    async def main():
        async with heddle.open() as store:
            handle = await store.start(waits)
            with pytest.raises(heddle.UsageError):
                await handle.signal("other", 1)
            await handle.signal("paid", {"how": (1, 2)})
            assert await handle.result() == {"how": (1, 2)}
            handle = await store.start(waits)
            await handle.cancel()
            with pytest.raises(WorkflowCancelled, match=handle.id):
                await handle.result()
            assert await handle.status() == "cancelled"
            with pytest.raises(heddle.InputError):
                await store.handle("waits/none").status()
            with pytest.raises(heddle.Error):
                await store.handle("waits/none").result()

    asyncio.run(main())


def test_pause_and_rerun():
    failing = [True]

    async def act(x):
        if failing:
            raise ValueError("no")
        return x

    async def main():
        async with heddle.open() as store:
            handle = await store.start(call(act), 5)
            with pytest.raises(ValueError):
                await handle.result()
            failing.clear()
            await handle.rerun("a")
            assert await handle.result() == 5
            slow = Flow("slow", [], [sleep("s", 1000), give("nothing")],
                        edges=[["in", "s"], ["s", "out"]])
            slow.ir["functions"][0]["nodes"][2]["value"] = 7
            handle = await store.start(slow)
            await handle.pause()
            assert await handle.status() == "paused"
            await handle.resume()
            assert await handle.status() == "running"

    asyncio.run(main())


def test_the_journal():
    async def act(x):
        return x

    async def main():
        async with heddle.open() as store:
            flow = call(act)
            flow.ir["journal"] = "steps"
            handle = await store.start(flow, 1)
            await handle.result()
            assert [entry["what"] for entry in await handle.journal()] == ["start", "done", "end"]
            timeline = await handle.timeline()
            assert [what for _, what, _ in timeline.entries] == ["start", "done", "end"]
            assert str(timeline).startswith(handle.id) and " done     a" in str(timeline)
            ElementTree.fromstring(timeline._repr_svg_())
            plain = await store.start(call(act, name="plain"), 1)
            await plain.result()
            assert [what for _, what, _ in (await plain.timeline()).entries] == ["start", "end"]

    asyncio.run(main())


def test_hundreds_at_once():
    async def act(x):
        await asyncio.sleep(0)
        return x + 1

    async def main():
        async with heddle.open() as store:
            flow = chain(5, act)
            assert await asyncio.gather(*(store.run(flow, i) for i in range(300))) == [i + 5 for i in range(300)]

    asyncio.run(main())


def test_an_action_may_use_the_store():
    async def main():
        async with heddle.open() as store:
            async def act(x):
                store.cell("main/seen").set(x)
                return store.cell("main/seen")()

            assert await store.run(call(act), 5) == 5

    asyncio.run(main())


def test_an_instance_is_a_cell():
    async def act(x):
        return x

    async def main():
        async with heddle.open() as store:
            handle = await store.options(key="k").start(call(act), 1)
            status = store.cell("main/workflow/w/k#/status")
            async for value in status:
                if value == "done":
                    break
            assert await handle.result() == 1

    asyncio.run(main())


class Kind(enum.Enum):
    GIFT = "gift"


@dataclasses.dataclass
class Booking:
    name: str
    price: decimal.Decimal
    at: datetime.datetime
    kind: Kind
    seats: tuple[int, ...]


BOOKED = Booking("Ada", decimal.Decimal("7.50"), datetime.datetime(2026, 5, 4, 12, 30), Kind.GIFT, (3, 4))


def result_cell(value, type):
    """What a cell of this type reads where an instance has left the value, and what handle.result() has."""
    async def act(x):
        return value

    async def main():
        async with heddle.open() as store:
            handle = await store.options(key="k").start(call(act), 1)
            result = await handle.result()
            return store.cell("main/workflow/w/k#/result", type)(), result

    return asyncio.run(main())


@pytest.mark.parametrize("value, type", [
    (BOOKED, Booking), ([BOOKED, BOOKED], list[Booking]), ({"one": BOOKED}, dict[str, Booking]), (BOOKED.price, decimal.Decimal),
    (BOOKED.at, datetime.datetime), (Kind.GIFT, Kind), ((1, (2,)), tuple), ({1, 2}, set), ({1: "a"}, dict), ({"$a": 1, "$$b": {}}, dict),
    ({"z": 1, "a": (2,)}, object), (b"bytes", bytes), (None, Booking)])
def test_a_typed_cell_reads_a_result_as_the_handle_does(value, type):
    read, result = result_cell(value, type)
    assert read == result == value
    assert not isinstance(value, dict) or list(read) == list(value)


def test_a_typed_cell_reads_an_object_of_a_union():
    for type in (Union[Booking, int], list[Union[Booking, str]], Optional[Booking]):
        value = [BOOKED] if type == list[Union[Booking, str]] else BOOKED
        assert result_cell(value, type)[0] == value


def test_a_typed_cell_makes_plain_results_objects_too():
    assert result_cell({"name": "Ada", "code": 3}, Plain)[0] == Plain("Ada", 3)
    assert isinstance(result_cell(BOOKED, None)[0], dict)  # without a type: as it is stored


def test_a_typed_cell_reads_a_result_of_a_class_that_is_not_here():
    @dataclasses.dataclass
    class Gone:
        name: str
        code: int

    heddle.values.remember_class(Gone)
    read = []

    async def act(x):
        return Gone("Ada", 3)

    async def main():
        async with heddle.open() as store:
            await (await store.options(key="k").start(call(act), 1)).result()
            heddle.values._found.pop(heddle.values.class_name(Gone))
            read.append(store.cell("main/workflow/w/k#/result", Plain)())

    asyncio.run(main())
    assert read == [Plain("Ada", 3)]


def test_a_sink_of_a_typed_cell_is_shown_the_object():
    async def act(x):
        return BOOKED

    async def main():
        async with heddle.open() as store:
            handle = await store.options(key="k").start(call(act), 1)
            async for value in store.cell("main/workflow/w/k#/result", Booking):
                if value is not None:
                    return value, await handle.result()

    assert asyncio.run(main()) == (BOOKED, BOOKED)


def test_the_variables_of_an_instance_that_waits_can_be_read_with_a_type():
    """The engine's references to its objects are no values of a workflow: they stay as they are."""
    wait = Flow("w", ["x"], [{"id": "wait", "kind": "WAIT", "signal": "go", "into": ["name", "r"]}, give()])

    async def main():
        async with heddle.open() as store:
            await store.options(key="k").start(wait, [BOOKED])
            store.settle()
            return store.cell("main/workflow/w/k", dict)()

    found = asyncio.run(main())
    assert found["status"] == "running" and found["input"]["x"] == [BOOKED]


@dataclasses.dataclass
class Plain:
    name: str
    code: int


# ---- Where a workflow has failed


@heddle.action
async def divide(x: int) -> float:
    return 1 / x


@heddle.workflow
class Raises(heddle.Workflow):
    async def run(self, x: int) -> float:
        if x:
            return {"a": 1.0}["b"]
        return await divide(x)


def line_in_this_file(text):
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.strip() == text)


def test_an_exception_of_a_workflow_says_where_it_was_raised():
    with pytest.raises(KeyError) as raised:
        run(Raises, 1)
    line = line_in_this_file('return {"a": 1.0}["b"]')
    assert raised.value.__notes__ == [f"in workflow Raises, test_flows.py:{line}:13"]


def test_an_exception_of_an_action_has_the_traceback_of_the_action():
    with pytest.raises(ZeroDivisionError) as raised:
        run(Raises, 0)
    place, action = raised.value.__notes__
    assert place.startswith("in workflow Raises, test_flows.py:")
    assert action.startswith("the action's own traceback:\n") and "in divide\n    return 1 / x" in action
    assert "in divide" in "".join(traceback.format_exception(raised.value))


def test_a_start_inside_a_transaction_is_part_of_it():
    async def act(x):
        return x

    async def main():
        async with heddle.open() as store:
            flow = call(act)
            store.register(flow)
            with pytest.raises(ZeroDivisionError):
                with store.transaction():
                    store._flows_().engine.start("w", {"x": 1}, key="no")
                    1 / 0
            with store.transaction():
                store._flows_().engine.start("w", {"x": 1}, key="yes")
            assert await store.handle("w/yes").result() == 1
            assert store.instances("w") == [("w/yes", "done")]

    asyncio.run(main())


def test_ctrl_c_in_an_action_ends_the_program_and_the_step_runs_again(path):
    calls = []

    async def act(x):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return x

    async def main():
        async with heddle.open(path) as store:
            return await store.options(key="k").run(call(act), 5)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert asyncio.run(main()) == 5 and len(calls) == 2


@heddle.action(name="leave in a thread")
def leave(code: int) -> None:
    sys.exit(code)


@heddle.workflow
class Leaves(heddle.Workflow):
    async def run(self, code: int) -> int:
        try:
            await leave(code)
        except SystemExit as left:
            if left.code == 3:
                raise
        return 0


def test_sys_exit_in_a_thread_is_what_the_call_raises_as_with_to_thread():
    """No signal handler runs in a thread, so it is the action's own."""
    async def main(code):
        async with heddle.open() as store:
            return await store.run(Leaves, code)

    assert asyncio.run(main(1)) == 0
    with pytest.raises(SystemExit) as left:
        asyncio.run(main(3))
    assert left.value.code == 3


def test_sys_exit_in_an_async_action_ends_the_program_and_the_step_runs_again(path):
    """A signal handler that calls sys.exit raises it in whatever code of the loop's thread runs."""
    calls = []

    async def act(x):
        calls.append(1)
        if len(calls) == 1:
            sys.exit(4)
        return x

    async def main():
        async with heddle.open(path) as store:
            return await store.options(key="k").run(call(act), 5)

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert asyncio.run(main()) == 5 and len(calls) == 2


def test_closing_cancels_actions_and_the_next_program_goes_on(path):
    events = []

    async def act(x):
        events.append("begun")
        if len(events) > 2:
            return x
        try:
            await asyncio.sleep(3600)
        finally:
            events.append("cancelled")

    async def first():
        async with heddle.open(path) as store:
            await store.options(key="k").start(call(act), 5)
            while not events:
                await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def second():
        async with heddle.open(path) as store:
            return await store.options(key="k").run(call(act), 5)

    asyncio.run(first())
    assert events == ["begun", "cancelled"]
    assert asyncio.run(second()) == 5


def test_a_waiter_that_leaves_leaves_the_instance_alone():
    async def act(x):
        await asyncio.sleep(0.02)
        return x

    async def main():
        async with heddle.open() as store:
            handle = await store.start(call(act), 5)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(handle.result(), 0.001)
            assert await handle.result() == 5

    asyncio.run(main())


def test_a_program_that_only_watches(path):
    calls = []

    async def act(x):
        calls.append(x)
        return x

    async def main():
        async with heddle.open(path, worker=False) as watcher:
            handle = await watcher.options(key="k").start(call(act), 3)
            assert await handle.status() == "queued"
            async with heddle.open(path) as worker:
                worker.register(call(act))
                assert await handle.result() == 3 and calls == [3]

    asyncio.run(main())


def test_actions_run_without_asyncio_too(path):
    done = []

    async def act(x):
        return x + 1

    with heddle.open(path) as store:
        flow = chain(3, act)
        flows = store._flows_()
        flows.register(flow)
        id, new = flows.engine.start("chain", {"x": 1}, key="k")
        flows.engine.then(id, lambda state, value: done.append((state, value)))
        while not done:
            store._runtime.turn(1.0)
    assert done == [("done", 4)] and new


def test_progress_tells_what_it_does(capsys):
    async def act(x):
        await asyncio.sleep(0.15)
        return x

    async def main():
        async with heddle.open() as store:
            return await store.options(key="k", progress=True).run(call(act), 5)

    assert asyncio.run(main()) == 5
    err = capsys.readouterr().err
    assert "w/k: act (running)" in err and err.endswith("w/k: done\n")


def test_progress_of_an_instance_that_is_over_is_one_line(capsys):
    async def act(x):
        return x

    async def main():
        async with heddle.open() as store:
            await store.options(key="k").run(call(act), 5)
            capsys.readouterr()
            await store.options(key="k", progress=True).run(call(act), 5)

    asyncio.run(main())
    assert capsys.readouterr().err == "w/k: done\n"


def test_progress_that_is_interrupted_leaves_no_task_behind():
    told = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        async with heddle.open() as store:
            waits = Flow("w", [], [{"id": "wait", "kind": "WAIT", "signal": "go", "into": ["name", "r"]}, give()])
            task = asyncio.ensure_future(store.options(key="k", progress=True).run(waits))
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() and len(asyncio.all_tasks()) <= 2
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(main())
    gc.collect()
    assert told == []


def test_progress_is_told_in_words_of_the_program():
    steps = [{"kind": "FAN_HEAD", "state": "branches", "fan": {"done": 3, "total": 10}}, {"kind": "FAN_HEAD", "state": "branches"},
             {"kind": "CHILD", "state": "child", "workflow": "Refund"}, {"kind": "ACTION", "action": "ship", "state": "retrying", "attempt": 2}]
    assert progress.line_of({"id": "w/k", "steps": steps}) == (
        "w/k: 3 of 10 branches, branches, Refund (child), ship (retrying, attempt 2)")


def read_all(terminal):
    """What was written to the other side of a terminal, which is closed. One read may return a part of it."""
    parts = []
    with contextlib.suppress(OSError):  # EIO: that was all
        while part := os.read(terminal, 100):
            parts.append(part)
    return b"".join(parts)


def test_progress_on_a_terminal_is_cut_to_its_width(monkeypatch):
    assert progress.cut("abcdef", 6) == "abcdef" and progress.cut("abcdefg", 6) == "abc..."
    terminal, other = os.openpty()
    with os.fdopen(other, "w") as to:
        monkeypatch.setattr(os, "get_terminal_size", lambda fd: os.terminal_size((21, 5)))
        line = progress._Line(to)
        line.draw("w", "x" * 30)
        line.end()
    assert read_all(terminal).replace(b"\r\n", b"\n") == b"\r\x1b[Kw: " + b"x" * 14 + b"...\n"
    os.close(terminal)


def test_progress_shortens_a_long_id_before_what_the_instance_does():
    id = "Checkout/" + "0123456789" * 9
    line = progress.fit(id, "charge (running)", 60)
    assert len(line) == 60
    assert line.startswith("Checkout/0123") and line.endswith("6789: charge (running)") and "..." in line
    assert progress.fit("w/k", "charge (running)", 60) == "w/k: charge (running)"
    assert progress.fit(id, "x" * 90, 60) == progress.fit(id, "x" * 99, 60)


def test_a_result_that_an_effect_cannot_wait_for_says_why():
    raised = []

    async def main():
        async with heddle.open() as store:
            @store.effect
            async def begin():
                handle = await store.start(call(one), 1)
                try:
                    await handle.result()
                except heddle.UsageError as error:
                    raised.append(str(error))
            while not raised:
                await asyncio.sleep(0.01)
            while not store.instances(status="done"):  # it has begun all the same
                await asyncio.sleep(0.01)

    async def one(x):
        return x

    asyncio.run(main())
    assert "begins when it ends" in raised[0]


class Abrupt(BaseException):
    pass


@pytest.mark.parametrize("error", [Abrupt("no"), GeneratorExit("end"), asyncio.CancelledError("of its own")])
def test_an_async_action_that_raises_no_exception_fails_its_step(error):
    async def act(x):
        raise error

    async def main():
        async with heddle.open() as store:
            with pytest.raises(type(error)):
                await asyncio.wait_for(store.run(call(act), 1), 60)
    asyncio.run(main())


def test_the_result_of_an_instance_that_is_not_there():
    async def main():
        async with heddle.open() as store:
            with pytest.raises(heddle.FailedError, match="there is no instance nope/1"):
                await store.handle("nope/1").result()
    asyncio.run(main())


def test_a_payload_that_cannot_cross_is_refused_and_the_store_goes_on():
    wait = Flow("w", [], [{"id": "wait", "kind": "WAIT", "signal": "go", "into": ["name", "r"]}, give()])

    async def main():
        async with heddle.open() as store:
            handle = await store.start(wait)
            for bad in (object(), {"a": [object()]}, 2**70):
                with pytest.raises(TypeError, match="cannot cross"):
                    await handle.signal("go", bad)
            await handle.signal("go", {1: (2,)})
            return await asyncio.wait_for(handle.result(), 60)

    assert asyncio.run(main()) == {1: (2,)}


def test_an_action_that_raises_an_exception_whose_text_cannot_be_made_fails_its_step():
    class Wordless(Exception):
        def __str__(self):
            raise ZeroDivisionError("no text")

    async def act(x):
        raise Wordless

    async def main():
        async with heddle.open() as store:
            with pytest.raises(TypeError, match="exception Wordless cannot be used: ZeroDivisionError: no text"):
                await asyncio.wait_for(store.run(call(act), 1), 20)
    asyncio.run(main())


def test_an_instance_starts_with_its_transaction(path):
    """Of a handler, an effect and the program: it starts if that commits, and only then, once."""
    job = call(lambda x: x + 1, name="job")

    async def use():
        async with heddle.open(path) as store:
            log = store.cell("main/log")
            with store.transaction(), pytest.raises(heddle.UsageError, match=r"call store.register\(job\) before"):
                store.start_within(job, 1)
            store.register(job)
            with pytest.raises(heddle.UsageError, match=r"elsewhere await store.start"):
                store.start_within(job, 1)

            @store.on("main/orders", reads=[log])
            def order(event):
                log.set([*(log() or []), event.payload])
                handle = store.options(key=f"order-{event.payload}").start_within(job, event.payload)
                assert handle.id == store.options(key=f"order-{event.payload}").start_within(job, event.payload).id
                if event.payload == 2:
                    raise ValueError("sold out")

            @store.effect
            def count():
                if len(log() or []) == 2:
                    store.options(key="two").start_within(job, 20)

            store.on_error(lambda name, error: None)
            for number in (1, 1, 2, 3):
                with contextlib.suppress(heddle.FailedError, heddle.RefusedError):
                    await store.handled("main/orders", number, id=f"event-{number}")
            with store.transaction():
                store.cell("main/x").set(1)
                store.options(key="own").start_within(job, 10)
            with contextlib.suppress(KeyError), store.transaction():
                store.options(key="none").start_within(job, 10)
                raise KeyError
            results = [await store.handle(f"job/{key}").result() for key in ("order-1", "order-3", "own", "two")]
            assert results == [2, 4, 11, 21] and len(store.instances(job)) == 4

    asyncio.run(use())


def test_a_status_that_there_is_not_is_refused():
    async def use():
        async with heddle.open() as store:
            with pytest.raises(ValueError, match="status is one of queued, .*, not 'runing'"):
                store.instances(status="runing")

    asyncio.run(use())


def test_two_workflows_mean_one_function_by_a_name():
    """A workflow never calls the function of another module that happens to have the name of its own. A function that is
    defined again, as in a notebook, is the same one."""

    def define(module, text):
        @heddle.action
        async def send(x):
            return text

        send.__module__, send.__qualname__ = module, "send"
        send.function.__code__ = send.function.__code__.replace(co_filename=f"{module}.py")
        return call(send, name=module)

    async def use():
        async with heddle.open() as store:
            assert await store.run(define("letters", "a letter"), None) == "a letter"
            assert await store.run(define("letters", "a new letter"), None) == "a new letter"
            with pytest.raises(heddle.UsageError, match="two actions have the name act: letters.send and parcels.send"):
                await store.run(define("parcels", "a parcel"), None)

            def logged(function):
                async def wrapper(x):
                    return await function(x)

                return heddle.action(wrapper)

            async def one(x):
                return 1

            async def two(x):
                return 2

            first, second = (Flow(name, ["x"], [step("a", "wrapper", args={"x": ["name", "x"]}), give()], actions={"wrapper": logged(fn)})
                             for name, fn in (("first", one), ("second", two)))
            assert await store.run(first, 0) == 1
            with pytest.raises(heddle.UsageError, match="two actions have the name wrapper"):
                await store.run(second, 0)

    asyncio.run(use())


def test_a_workflow_whose_child_is_refused_is_not_registered():
    """Each try says so: the engine has no such workflow."""
    bad = Flow("bad", [], [{"id": "a", "kind": "NONE"}])
    parent = Flow("parent", ["x"], [give("x")], children=[bad])
    with heddle.open() as store:
        for _ in range(2):
            with pytest.raises(heddle.InputError, match="NONE"):
                store.register(parent)
        parent.children.clear()
        assert asyncio.run(store.run(parent, 5)) == 5
