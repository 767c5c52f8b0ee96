"""Schedules, queues, removing instances, events for later."""
from __future__ import annotations

import asyncio
import datetime

import pytest

import heddle
from heddle import Workflow, action, workflow
from heddle.testing import Lab
from heddle.testing.lab import CLOCK

seen: list[int] = []


@action(queue="gpu")
async def train(x: int) -> int:
    seen.append(x)
    return x + 1


@action
async def note(x: int) -> int:
    seen.append(x)
    return x


@workflow
class Training(Workflow):
    async def run(self, x: int) -> int:
        return await train(x)


@workflow
class Noting(Workflow):
    async def run(self, x: int) -> int:
        return await note(x)


@pytest.fixture(autouse=True)
def _fresh():
    seen.clear()


async def until(condition):
    while not condition():
        await asyncio.sleep(0)


# ---- Schedules


def test_a_schedule_starts_a_workflow_at_its_times():
    with Lab() as lab:
        async def main():
            schedule = await lab.store.schedule("nightly", cron="30 2 * * *", zone="Europe/Berlin").start(Noting, 7)
            assert lab.store.schedules() == ["nightly"]
            first = (await schedule.state())["next"] / 1000
            await until(lambda: len(seen) == 2)
            ids = [id for id, _ in lab.store.instances(Noting)]
            await schedule.remove()
            return first, ids

        first, ids = lab.wait(main())
        assert datetime.datetime.fromtimestamp(first, datetime.timezone.utc).isoformat() == "2026-01-01T01:30:00+00:00"
        assert ids[:2] == ["Noting/nightly@2026-01-01T01:30:00Z", "Noting/nightly@2026-01-02T01:30:00Z"]
        assert lab.store.schedules() == [] and set(seen) == {7}


def test_an_interval_and_a_time_out_of_turn():
    with Lab() as lab:
        async def main():
            schedule = await lab.store.schedule("often", every=datetime.timedelta(minutes=5)).start(Noting, x=1)
            await schedule.pause()
            assert (await schedule.state())["paused"] is True
            await schedule.trigger()
            await until(lambda: len(seen) == 1)
            await schedule.resume()
            await until(lambda: len(seen) == 3)
            return lab.now

        assert lab.wait(main()) >= CLOCK + 600


def test_a_store_that_closes_begins_nothing():
    for _ in range(20):
        with Lab() as lab:
            async def main():
                await lab.store.schedule("often", every=datetime.timedelta(minutes=5)).start(Noting, x=1)
                await until(lambda: len(seen) >= 1)

            lab.wait(main())
            calls = len(lab.calls)
        assert len(lab.calls) == calls
        seen.clear()


def test_what_is_wrong_with_a_schedule_is_said():
    with Lab() as lab:
        for wrong, error in (({"cron": "61 * * * *"}, heddle.InputError), ({}, heddle.UsageError),
                             ({"every": 1, "overlap": "never"}, ValueError), ({"cron": "@daily", "zone": "Nowhere"}, heddle.Error)):
            with pytest.raises(error):
                lab.wait(lab.store.schedule("x", **wrong).start(Noting, 1))
        with pytest.raises(TypeError, match="missing"):
            lab.wait(lab.store.schedule("x", every=1).start(Noting))
        with pytest.raises(heddle.Error):
            lab.wait(lab.store.schedule("x").pause())


# ---- Queues


def test_a_queue_is_paused_and_goes_on():
    with Lab() as lab:
        async def main():
            queue = lab.store.queue("gpu")
            await queue.set(most=1, paused=True)
            first = await lab.store.start(Training, 1)
            assert await lab.store.run(Noting, 5) == 5          # other queues go on
            assert seen == [5] and (await queue.state())["ready"] == 1
            await queue.set(most=1)
            return await first.result()

        assert lab.wait(main()) == 2


def test_a_program_does_the_steps_of_its_queues_only(path):
    async def main():
        async with heddle.open(path, queues=[""]) as store:
            handle = await store.start(Training, 1)
            assert await store.run(Noting, 3) == 3
            assert (await handle.state())["steps"][0]["state"] == "no worker"
            other = await store.options(queue="gpu").start(Noting, 9)
        async with heddle.open(path, queues=["gpu"]) as store:
            return await store.handle(handle.id).result(), await store.handle(other.id).result()

    assert asyncio.run(main()) == (2, 9)


@pytest.mark.parametrize("most", [-1, 1 << 32])
def test_no_bound_of_a_queue(most):
    with Lab() as lab:
        with pytest.raises(ValueError, match="most is a number of steps"):
            lab.wait(lab.store.queue("gpu").set(most=most))


def test_no_name_of_a_queue():
    with pytest.raises(ValueError, match="queue is a name"):
        action(queue="a b")(lambda: None)


# ---- Removing


def test_an_instance_that_is_over_is_removed():
    with Lab() as lab:
        async def main():
            handle = await lab.store.options(key="k").start(Noting, 1)
            await handle.result()
            await handle.remove()
            with pytest.raises(heddle.Error):
                await handle.status()
            assert await lab.store.options(key="k").run(Noting, 2) == 2
            waits = await lab.store.start(Waiting)
            with pytest.raises(heddle.UsageError):
                await waits.remove()
            assert await lab.store.prune(datetime.timedelta(days=1)) == 0
            await asyncio.sleep(0)
            assert await lab.store.prune(-1, Noting, status="done") == 1
            return lab.store.instances()

        assert [status for _, status in lab.wait(main())] == ["running"]


@workflow
class Waiting(Workflow):
    async def run(self) -> None:
        await heddle.signal("never")


# ---- Events for later


def test_a_moment_before_1970_has_passed():
    with Lab() as lab:
        got = []
        lab.store.on("main/ticks")(lambda event: got.append(event.payload))
        lab.store.post_event("main/ticks", "long ago", at=datetime.datetime(1960, 1, 1))
        lab.store.settle()
        assert got == ["long ago"]


@pytest.mark.parametrize("seconds", [-1, -0.001, float("nan"), float("inf"), 1e300])
def test_no_time_of_an_event(seconds):
    with heddle.open() as store:
        for what in "after", "every", "time":
            with pytest.raises(ValueError, match=f"^{what}"):
                store.post_event("main/ticks", 1, **{what: seconds})


def test_events_are_delivered_later_and_again_and_again():
    with Lab() as lab:
        store, got = lab.store, []

        @store.on("main/ticks")
        def tick(event):
            got.append((event.payload, round(lab.now - CLOCK), event.missed))

        store.post_event("main/ticks", "late", after=60)
        store.post_event("main/ticks", "at", at=datetime.datetime.fromtimestamp(CLOCK + 30))
        dropped = store.post_event("main/ticks", "never", after=datetime.timedelta(seconds=40))
        assert store.cancel_event("main/ticks", dropped) and not store.cancel_event("main/ticks", dropped)
        lab.advance(100)
        assert [name for name, _, _ in got] == ["at", "late"]
        every = store.post_event("main/ticks", "tick", every=10, every_missed=True)
        got.clear()
        lab.advance(25)
        assert [name for name, _, _ in got] == ["tick", "tick"]
        with store.transaction():
            assert store.cancel_event("main/ticks", every)
        store.sync()
        got.clear()
        lab.advance(100)
        assert got == []
