"""heddle.testing: virtual time, scripted failures, killing at every step, recordings."""
from __future__ import annotations

import asyncio
import gc
import os
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


def test_killed_everywhere_it_ends_in_the_same_way():
    assert resume_everywhere(chain(3, plus_one), 0) == 6
    assert resume_everywhere(chain(2, plus_one_in_a_thread), 0) == 4


def test_no_time_passes_while_it_is_killed():
    assert resume_everywhere(Punctual, 1) == 2


def test_killed_everywhere_with_an_exception():
    async def bad(x):
        raise ValueError("no")

    assert resume_everywhere(call(bad), 0) == 2


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
    with Recording("one", str(tmp_path)) as lab:
        with pytest.raises(AssertionError, match="is not in"):
            lab.run(call(act), 3)


def test_a_lab_may_be_used_in_an_async_test():
    async def main():
        with Lab() as lab:
            flow = Flow("slow", [], [sleep("s", 1e6), give("nothing")])
            flow.ir["functions"][0]["nodes"][2]["value"] = 7
            return await asyncio.gather(*(lab.store.run(flow) for _ in range(3)))

    assert asyncio.run(main()) == [7, 7, 7]


def test_a_script_for_an_action_that_is_not_there(heddle_lab):
    heddle_lab.fail("akt", ValueError())
    with pytest.raises(ValueError, match="no workflow has an action 'akt'; did you mean 'act'"):
        heddle_lab.run(call(plus_one), 1)
