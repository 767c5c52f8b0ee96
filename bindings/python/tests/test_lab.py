"""heddle.testing: virtual time, scripted failures, killing at every step, recordings."""
from __future__ import annotations

import asyncio
import concurrent.futures
import datetime
import functools
import gc
import os
import sys
import threading
import time
import warnings

import pytest

import heddle
from heddle.testing import Lab, Recording, resume_everywhere
from flow import Flow, call, chain, give, sleep, step


async def plus_one(x):
    return x + 1


def plus_one_in_a_thread(x):
    return x + 1


@heddle.action
async def work(x: int) -> int:
    return x


@heddle.workflow
class Punctual(heddle.Workflow):
    async def run(self, x: int) -> bool:
        began = heddle.now()
        await asyncio.sleep(86400)
        async with asyncio.timeout(0.5):
            await work(x)
        return heddle.now() - began >= 86400


def test_a_month_takes_no_time(heddle_lab):
    flow = Flow("slow", ["x"], [sleep("s", 30 * 86400), step("a", "act", args={"x": ["name", "x"]}), give()],
                actions={"act": plus_one})
    began, clock = time.monotonic(), heddle_lab.now
    assert heddle_lab.run(flow, 1) == 2
    assert time.monotonic() - began < 5 and heddle_lab.now - clock >= 30 * 86400


def test_a_sleep_of_thousands_of_years_does_not_end(heddle_lab):
    """As nanoseconds it needs more than 64 bits: the clock once went round and round."""
    flow = Flow("slow", ["r"], [sleep("s", 1e11), give()])
    with pytest.raises(RuntimeError, match="nothing can happen any more, and slow/.* .sleeping."):
        heddle_lab.run(flow, 1)


@heddle.workflow
class Within(heddle.Workflow):
    """Its timeout is the only time that something waits for while commits have no verdict."""

    async def run(self) -> int:
        async with asyncio.timeout(30 * 86400):
            await work(1)
            await asyncio.sleep(3600)
            await work(2)
            return await work(3)


def test_the_clock_waits_for_verdicts(tmp_path):
    for i in range(5):
        with Lab(tmp_path / f"{i}.db") as lab:
            began = lab.now
            assert lab.run(Within) == 3
            assert lab.now - began < 3700
    assert resume_everywhere(Within) == 6


@heddle.workflow
class Naps(heddle.Workflow):
    async def run(self) -> None:
        await asyncio.sleep(0.01)


def test_a_slow_disk_lets_no_short_limit_come(monkeypatch):
    with Lab() as lab:
        monkeypatch.setattr(lab.store._driver_(), "has_pending", lambda: True)
        began = time.monotonic()
        lab.run(Naps)
        assert 0.5 <= time.monotonic() - began < 5


@heddle.workflow
class Asks(heddle.Workflow):
    async def run(self) -> int:
        await asyncio.sleep(5)
        answer: int = await heddle.signal("answer")
        return answer


@heddle.workflow
class AsksBelow(heddle.Workflow):
    async def run(self) -> int:
        return await Asks().run()


@pytest.mark.parametrize("workflow, given", [(Asks, "lab.wait(handle.signal('answer', value))"),
                                             (AsksBelow, "lab.wait(lab.store.handle('Asks/AsksBelow:")])
def test_a_signal_that_cannot_come_is_an_error_and_not_a_wait(heddle_lab, workflow, given):
    with pytest.raises(RuntimeError, match="nothing can happen any more, and Asks/.* waits for the signal 'answer'") as raised:
        heddle_lab.run(workflow)
    assert given in str(raised.value) and "test_lab.py:" in str(raised.value)
    assert heddle_lab.run(Punctual, 1)                    # the lab goes on


def test_a_signal_that_something_else_may_give_is_waited_for(heddle_lab):
    store = heddle_lab.store
    status = store.cell("main/answered")

    @store.effect
    async def answers():
        if status() == "asked":
            await asyncio.sleep(0.5)                      # longer than the lab looks for
            for id, _ in store.instances(Asks, status="running"):
                await store.handle(id).signal("answer", 7)

    @store.effect
    def asked():
        status.set("asked")

    assert heddle_lab.run(Asks) == 7


def answer_late(store, loop):
    """For a thread: answers all questions after longer than the lab looks if there is no thread."""
    async def answer():
        for id, _ in store.instances(Asks, status="running"):
            await store.handle(id).signal("answer", 7)

    time.sleep(0.5)
    asyncio.run_coroutine_threadsafe(answer(), loop)


@pytest.mark.parametrize("daemon", [False, True])
def test_a_signal_that_a_thread_may_give_is_waited_for(heddle_lab, daemon):
    store, threads = heddle_lab.store, []

    @store.effect
    async def asks():
        threads.append(threading.Thread(target=answer_late, args=[store, asyncio.get_running_loop()], daemon=daemon))
        threads[0].start()

    assert heddle_lab.run(Asks) == 7
    threads[0].join()
    with pytest.raises(RuntimeError, match="nothing can happen any more"):   # no thread is left
        heddle_lab.run(Asks)


@pytest.mark.parametrize("prefix", ["", "mine"])
def test_a_signal_of_a_pool_is_waited_for_and_its_idle_threads_are_not(heddle_lab, prefix, monkeypatch):
    store = heddle_lab.store
    with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix=prefix) as pool:
        @store.effect
        async def asks():
            pool.submit(answer_late, store, asyncio.get_running_loop())

        assert heddle_lab.run(Asks) == 7
        monkeypatch.setattr("heddle.testing.lab.THREAD_LOOKS", 1 << 30)
        with pytest.raises(RuntimeError, match="nothing can happen any more"):
            heddle_lab.run(Asks)


@pytest.mark.parametrize("daemon", [False, True])
def test_a_thread_that_goes_on_is_not_waited_for_for_ever(heddle_lab, daemon, monkeypatch):
    monkeypatch.setattr("heddle.testing.lab.THREAD_LOOKS", 20)
    over = threading.Event()
    threading.Thread(target=over.wait, daemon=daemon).start()
    try:
        with pytest.raises(RuntimeError, match="nothing can happen any more"):
            heddle_lab.run(Asks)
    finally:
        over.set()


def test_a_workflow_whose_action_nothing_does_is_an_error(heddle_lab):
    flow = Flow("w", ["x"], [step("a", "gone", args={"x": ["name", "x"]}), give()])
    with pytest.raises(RuntimeError, match=r"nothing can happen any more, and w/.*: gone \(no worker\)"):
        heddle_lab.run(flow, 1)


def test_an_action_that_is_under_way_goes_on_in_the_next_wait():
    """With warnings as errors: a loop that ended in between left a coroutine that was never awaited."""
    flow = Flow("asked", ["x"], [{"id": "w", "kind": "WAIT", "signal": "go", "into": ["name", "g"]}, sleep("s", 60),
                                 step("a", "act", args={"x": ["name", "x"]}), give()], actions={"act": plus_one})
    with warnings.catch_warnings(), Lab() as lab:
        warnings.simplefilter("error")
        clock = lab.now
        handle = lab.start(flow, 1)
        assert lab.now == clock
        lab.wait(handle.signal("go"))
        lab.advance(60)
        assert lab.wait(handle.result()) == 2
        gc.collect()
        assert lab.count("act") == 1


@heddle.workflow
class Daily(heddle.Workflow):
    async def run(self) -> float:
        await asyncio.sleep(3600)
        await in_a_thread(1)
        return heddle.now()


@heddle.action
def in_a_thread(x: int) -> int:
    time.sleep(0.02)
    return x


@pytest.mark.parametrize("steps", [[86400] * 3, [3 * 86400], [3 * 86400 - 1, 1]])
def test_advance_runs_all_that_is_due_by_then(steps):
    """An instance of each day has run to its end, the last one has begun; the clock shows what was asked for."""
    with Lab() as lab:
        clock = lab.now
        lab.wait(lab.store.schedule("daily", every=86400).start(Daily))
        for seconds in steps:
            lab.advance(seconds)
        assert lab.now == clock + 3 * 86400
        assert sorted(status for _, status in lab.store.instances(Daily)) == ["done", "done", "running"]
        for _ in range(5):
            lab.wait(asyncio.sleep(0))
        assert lab.now == clock + 3 * 86400
        lab.advance(3600)
        assert {status for _, status in lab.store.instances(Daily)} == {"done"} and lab.count("in_a_thread") == 3


def test_advance_does_not_wait_in_real_time_for_what_is_debounced():
    seen = []
    with Lab() as lab:
        cell = lab.store.cell("main/a")

        @lab.store.effect(debounce=60)
        def show():
            seen.append(cell())

        began = time.monotonic()
        for seconds in (1, 1, 10, 40, 7):
            lab.advance(seconds)
        assert seen == []
        lab.advance(2)
        assert seen == [None] and time.monotonic() - began < 2


@heddle.action(timeout=30)
async def hangs() -> None:
    await asyncio.Event().wait()


@heddle.workflow
class Hung(heddle.Workflow):
    async def run(self) -> str:
        try:
            await hangs()
        except TimeoutError:
            return "too late"
        return "done"


def test_a_timeout_of_an_action_comes_when_the_test_moves_the_clock(heddle_lab):
    handle = heddle_lab.start(Hung)
    heddle_lab.advance(29)
    assert heddle_lab.wait(handle.status()) == "running"
    heddle_lab.advance(1)
    assert heddle_lab.wait(handle.result()) == "too late"


@heddle.action(queue="gpu")
async def on_a_card(x: int) -> int:
    return x


@heddle.workflow
class Elsewhere(heddle.Workflow):
    async def run(self) -> int:
        return await on_a_card(1)


def test_a_result_that_waits_for_a_worker_says_so_once(caplog, monkeypatch):
    monkeypatch.setattr("heddle.flows.UNSERVED_SECONDS", 0.05)

    async def main() -> None:
        async with heddle.open(queues=[""]) as store:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(store.options(key="1").run(Elsewhere), 0.3)

    asyncio.run(main())
    assert [record.getMessage() for record in caplog.records if record.name == "heddle"] == \
        ["Elsewhere/1 waits: no worker serves the action on_a_card of the queue gpu"]


def test_scripted_failures(heddle_lab):
    flow = call(plus_one, retry={"attempts": 5, "backoff": 60})
    heddle_lab.fail("act", ConnectionError("away"), times=2)
    assert heddle_lab.run(flow, 1) == 2
    assert heddle_lab.count("act") == 3 and [c.attempt for c in heddle_lab.calls] == [1, 2, 3]
    heddle_lab.fail("act", ValueError("no"), times=9, after=1)
    assert heddle_lab.run(call(plus_one, name="once"), 1) == 2
    with pytest.raises(ValueError):
        heddle_lab.run(call(plus_one, name="once"), 1)


def test_given_results_and_replaced_actions(heddle_lab):
    heddle_lab.give("act", 10, 20)
    flow = chain(3, plus_one)
    assert heddle_lab.run(flow, 0) == 21
    heddle_lab.replace("act", lambda x: x * 2)
    assert heddle_lab.run(flow, 1) == 8
    assert heddle_lab.calls[0].args == {"x": 0}


def test_an_async_function_replaces_nothing(heddle_lab):
    with pytest.raises(TypeError, match="lab.replace takes a plain function, and plus_one is async"):
        heddle_lab.replace("work", plus_one)
    with pytest.raises(TypeError, match="lab.replace takes a plain function, and this one is async"):
        heddle_lab.replace("work", functools.partial(plus_one, 1))


def test_killed_everywhere_it_ends_in_the_same_way():
    assert resume_everywhere(chain(3, plus_one), 0) == 6
    assert resume_everywhere(chain(2, plus_one_in_a_thread), 0) == 4


@heddle.action
async def keep(x: list) -> list:
    return x


@heddle.workflow
class Views(heddle.Workflow):
    async def run(self) -> list:
        d = {"a": [1], "b": [2]}
        keys, out = d.keys(), []
        for key, value in d.items():
            d["b"] = await keep(value)
            out.append([key, value, [*keys]])
        return [*out, [await keep(value) for value in d.values()]]


def test_views_of_a_dict_survive():
    assert asyncio.run(Views().run()) == [["a", [1], ["a", "b"]], ["b", [1], ["a", "b"]], [[1], [1]]]
    assert resume_everywhere(Views) == 8


def test_no_time_passes_while_it_is_killed():
    assert resume_everywhere(Punctual, 1) == 2


def test_killed_everywhere_with_an_exception():
    async def bad(x):
        raise ValueError("no")

    assert resume_everywhere(call(bad), 0) == 2


class Gone(BaseException):
    pass


@heddle.action
def exits(kind: str) -> None:
    if kind == "exit":
        sys.exit(3)
    raise Gone(kind) if kind == "gone" else asyncio.CancelledError(kind)


@heddle.workflow
class Exits(heddle.Workflow):
    async def run(self, kind: str) -> None:
        await work(1)
        if kind:
            await exits(kind)
        raise SystemExit(4)


def test_what_no_except_exception_catches_is_an_end_too():
    assert [resume_everywhere(Exits, kind) for kind in ("exit", "gone", "cancelled", "")] == [4, 4, 4, 2]


@heddle.action
async def fails(x: int) -> None:
    raise KeyError(x)


@heddle.workflow
class Collects(heddle.Workflow):
    async def run(self) -> list:
        got = await asyncio.gather(fails(1), keep([2]), return_exceptions=True)
        return [*got, ValueError(3), {"a": (await asyncio.gather(fails(4), return_exceptions=True))[0]}]


def test_equal_exceptions_in_a_result_are_the_same_end():
    assert resume_everywhere(Collects) == 6


def test_other_exceptions_in_a_result_are_another_end():
    runs = []

    async def unsteady(x):
        runs.append(1)
        return KeyError(len(runs))

    with pytest.raises(AssertionError, match=r"killed (before|after) step 1 it ended with KeyError\(\d\), not with KeyError\(1\)"):
        resume_everywhere(call(unsteady, name="another"), 0)


def test_a_workflow_that_does_not_survive_is_found_out():
    runs = []

    async def unsteady(x):
        runs.append(1)
        return len(runs)

    with pytest.raises(AssertionError, match="killed (before|after) step 1"):
        resume_everywhere(call(unsteady), 0)
    assert resume_everywhere(chain(2, plus_one, name="steady"), 0, setup=runs.clear) == 4


def test_a_recording_answers_for_the_actions(tmp_path):
    calls = []

    async def act(x):
        calls.append(x)
        if x == 2:
            raise ValueError("two")
        return {"x": (x,)}

    for _ in range(2):
        with Recording("one", str(tmp_path)) as lab:
            assert lab.run(call(act), 1) == {"x": (1,)}
            with pytest.raises(ValueError, match="two"):
                lab.run(call(act), 2)
            assert lab.count("act") == 2
    assert calls == [1, 2] and os.listdir(tmp_path) == ["one.json"]
    with pytest.raises(AssertionError, match="is not in"), Recording("one", str(tmp_path)) as lab:
        lab.run(call(act), 3)


@heddle.workflow
class Careless(heddle.Workflow):
    async def run(self, x: int) -> int:
        try:
            return await work(x)
        except Exception:
            return -1


def test_a_call_that_is_not_recorded_fails_the_test_also_if_the_workflow_catches_it(tmp_path):
    with Recording("careless", tmp_path) as lab:
        assert lab.run(Careless, 1) == 1
    with Recording("careless", tmp_path) as lab:
        assert lab.run(Careless, 1) == 1
    with pytest.raises(AssertionError, match=r"work\({'x': 2}\) is not in .*careless.json"):
        with Recording("careless", tmp_path) as lab:
            assert lab.run(Careless, 2) == -1
    with pytest.raises(AssertionError, match="is not in") as caught:
        with Recording("careless", tmp_path) as lab:
            lab.run(Careless, 2)
            raise KeyError("of the test")
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_lab_may_be_used_in_an_async_test():
    async def main():
        with Lab() as lab:
            flow = Flow("slow", [], [sleep("s", 1e6), give("nothing")])
            flow.ir["functions"][0]["nodes"][2]["value"] = 7
            return await asyncio.gather(*(lab.store.run(flow) for _ in range(3)))

    assert asyncio.run(main()) == [7, 7, 7]


def test_the_clock_is_moved_by_a_timedelta(heddle_lab):
    before = heddle_lab.now
    heddle_lab.advance(datetime.timedelta(hours=1))
    assert heddle_lab.now == before + 3600


def test_a_lab_in_an_async_test_says_what_to_await(heddle_lab):
    async def main():
        with pytest.raises(RuntimeError, match=r"await lab.store.run"):
            heddle_lab.run(Asks)

    asyncio.run(main())


def test_killed_everywhere_gives_no_signals():
    with pytest.raises(RuntimeError, match="waits for the signal"):
        resume_everywhere(Asks)


def test_a_script_for_an_action_that_is_not_there(heddle_lab):
    heddle_lab.fail("akt", ValueError())
    with pytest.raises(ValueError, match="no workflow has an action 'akt'; did you mean 'act'"):
        heddle_lab.run(call(plus_one), 1)


@heddle.action
async def weigh_parcel():
    return 1


@heddle.workflow
class Weighed(heddle.Workflow):
    async def run(self):
        return await weigh_parcel()


def test_a_name_that_looks_like_that_of_an_action_is_refused_where_it_is_given(heddle_lab):
    with pytest.raises(ValueError, match="no workflow has an action 'weigh_parcle'; did you mean 'weigh_parcel'"):
        heddle_lab.fail("weigh_parcle", ValueError())
    with pytest.raises(ValueError, match="did you mean 'weigh_parcel'"):
        heddle_lab.give("weigh_parcl", 1)
    with pytest.raises(ValueError, match="did you mean 'weigh_parcel'"):
        heddle_lab.replace("weigh_parcl", lambda: 1)
    heddle_lab.fail("weigh_parcel", ValueError("no"))
    with pytest.raises(ValueError, match="^no$"):
        heddle_lab.run(Weighed)


def test_an_attempt_without_heartbeats_runs_once_at_a_time(heddle_lab):
    calls, go_on = [], threading.Semaphore(0)

    def act(x):
        calls.append(heddle.attempt())
        go_on.acquire(timeout=20)
        return len(calls)

    handle = heddle_lab.start(call(act, heartbeat=10), 1)
    heddle_lab.advance(11)
    heddle_lab.advance(11)
    assert len(calls) == 1 and calls[0].revoked      # lost twice, and its call still runs
    go_on.release(2)
    assert heddle_lab.wait(handle.result()) == 2     # the result of a call that was lost is dropped
    assert [attempt.number for attempt in calls] == [1, 1]


def test_after_ten_losses_an_action_without_heartbeats_fails(heddle_lab):
    calls, go_on = [], threading.Event()

    def act(x):
        calls.append(x)
        go_on.wait(20)

    handle = heddle_lab.start(call(act, heartbeat=10), 1)
    for _ in range(10):
        heddle_lab.advance(11)
    go_on.set()
    with pytest.raises(ConnectionError, match="gave no heartbeat"):
        heddle_lab.wait(handle.result())
    assert len(calls) == 1


@heddle.action
async def worked(job: str) -> str:
    return job


@heddle.workflow
class Jobs(heddle.Workflow):
    async def run(self, jobs: list[str]) -> list[str]:
        done = []
        while jobs:
            done.append(await worked(jobs.pop(0)))
        return done


def test_arguments_that_change_something_are_computed_once():
    assert resume_everywhere(Jobs, ["a", "b", "c"]) == 6


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_the_clock_goes_forward(heddle_lab, seconds):
    with pytest.raises(ValueError, match="forward"):
        heddle_lab.advance(seconds)
