"""How long instances stay in the store when they are over: keep in a class of workflows, and of the store."""
from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

import heddle
from heddle import Keep, Workflow, action, workflow
from heddle.store import Store
from heddle.testing.lab import CLOCK

DAY = 86400


@action
async def same(x: int) -> int:
    return x


@workflow
class Plain(Workflow):
    async def run(self, x: int) -> int:
        return await same(x)


@workflow
class Daily(Workflow):
    keep = timedelta(days=1)

    async def run(self, x: int) -> int:
        return await same(x)


@workflow
class Two(Workflow):
    keep = Keep(most=2)

    async def run(self, x: int) -> int:
        return await same(x)


@workflow
class Kept(Workflow):
    keep = Keep()

    async def run(self, x: int) -> int:
        return await same(x)


def ids(store, flow):
    return [id for id, _ in store.instances(flow)]


def days_until(store, flow, left, *flows):
    """Runs the workflows. Then time passes, until so many instances of one are left: the days that took."""
    async def main():
        for other in flows:
            assert await store.run(other, 7) == 7
        began = store._runtime.now()
        while len(ids(store, flow)) > left:
            await asyncio.sleep(0)
        return (store._runtime.now() - began) / DAY
    return asyncio.run(main())


def test_a_class_says_how_long():
    with Store(clock=CLOCK) as store:
        assert days_until(store, Daily, 0, Daily, Plain, Kept) == pytest.approx(1, abs=0.01)
        assert len(ids(store, Plain)) == len(ids(store, Kept)) == 1
        assert store._flows_().engine.stats()["removed"] == 1


def test_a_class_says_how_many():
    with Store(clock=CLOCK) as store:
        assert days_until(store, Two, 2, *[Two] * 5) == pytest.approx(0, abs=0.01)
        assert len(ids(store, Two)) == 2


def test_the_store_says_it_for_all_that_say_nothing():
    with Store(clock=CLOCK, keep=timedelta(days=2)) as store:
        assert days_until(store, Plain, 0, Daily, Plain, Kept) == pytest.approx(2, abs=0.01)
        assert (len(ids(store, Daily)), len(ids(store, Kept))) == (0, 1)
    with Store(clock=CLOCK, keep=Keep(most=1)) as store:
        assert days_until(store, Plain, 1, Kept, Kept, Plain, Plain) == pytest.approx(0, abs=0.01)
        assert (len(ids(store, Plain)), len(ids(store, Kept))) == (1, 2)


def test_it_is_in_the_ir():
    assert Daily.ir()["keep"] == {"seconds": DAY} and Two.ir()["keep"] == {"most": 2} and Kept.ir()["keep"] == {}
    assert "keep" not in Plain.ir()


def test_what_is_no_policy_is_refused():
    for bad in (lambda: Keep(0), lambda: Keep(-1), lambda: Keep(most=0), lambda: Keep(timedelta(0))):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(TypeError, match="keep is a heddle.Keep or a timedelta, not 30"):
        heddle.open(keep=30)
    with pytest.raises(TypeError, match="Bad.keep is a heddle.Keep or a timedelta"):
        @workflow
        class Bad(Workflow):
            keep = 30

            async def run(self) -> None:
                pass
