"""Workflows in several spaces of a store, and shards of one space in several programs."""
from __future__ import annotations

import asyncio
import pathlib

import pytest

import heddle
from heddle import Workflow, action, workflow


@action
async def add(a: int, b: int) -> int:
    return a + b


@workflow
class Sum(Workflow):
    async def run(self, a: int, b: int) -> int:
        return await add(a, b)


@workflow
class Waits(Workflow):
    async def run(self) -> int:
        given: int = await heddle.signal("go")
        return await add(given, 1)


def test_a_store_has_workflows_in_several_spaces() -> None:
    async def main() -> None:
        async with heddle.open() as store:
            east, west = store.space("east"), store.space("west")
            assert store.space("east") is east and "east" in repr(east)
            runs = [place.options(key="1").run(Sum, 1, n) for n, place in enumerate((store, east, west))]
            assert await asyncio.gather(*runs) == [1, 2, 3]
            assert [place.instances() for place in (store, east, west)] == [[("Sum/1", "done")]] * 3
            assert store.cell("east/workflow/Sum/1#/status")() == "done"
    asyncio.run(main())


def test_a_space_has_signals_schedules_and_queues(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        async with heddle.open(str(tmp_path / "a.db")) as store:
            east = store.space("east")
            handle = await east.options(key="1").start(Waits)
            await handle.signal("go", 4)
            assert await handle.result() == 5
            await east.schedule("nightly", cron="0 2 * * *").start(Waits)
            await east.queue("gpu").set(most=2)
            assert east.schedules() == ["nightly"] and store.schedules() == []
            assert east.serve() == str(tmp_path / "a.db-workers-east")
        async with heddle.open(str(tmp_path / "a.db"), space="east") as store:
            assert store.instances() == [("Waits/1", "done")]
    asyncio.run(main())


def test_options_of_a_space_count(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        async with heddle.open(str(tmp_path / "a.db"), shards=4) as store:
            east = store.space("east", shards=3, queues=["other"], keep=heddle.Keep(most=1))
            assert (store.shards, east.shards) == (4, 3)
            started = await east.start(Sum, 1, 2)
            assert await store.run(Sum, 1, 2) == 3
            assert await started.status() == "running"      # no worker of this program serves the queue ""
    asyncio.run(main())
    with pytest.raises(ValueError, match="from 1 to 1,024"):
        heddle.open(shards=5000)


def test_shards_spread_over_programs(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        file = str(tmp_path / "a.db")
        async with heddle.open(file, shards=8) as one, heddle.open(file, shards=8) as two:
            one.register(Sum)
            two.register(Sum)
            async with asyncio.timeout(60):
                while (one.shards, two.shards) != (4, 4):
                    await asyncio.sleep(0.02)
                results = [await asyncio.gather(*(store.options(key=str(n)).run(Sum, n, 1) for n in range(40)))
                           for store in (one, two)]
            assert results == [[n + 1 for n in range(40)]] * 2
            steps = [store._flows_().engine.stats()["steps"] for store in (one, two)]
            assert sum(steps) == 40 and min(steps) > 0
    asyncio.run(main())


@pytest.mark.parametrize("name", ["", "a/b", "a@b", "a#b", "a\nb"])
def test_a_space_has_a_name_that_cells_can_name(name: str) -> None:
    with heddle.open() as store:
        with pytest.raises(ValueError, match="without '/', '@', '#'"):
            store.space(name)
    with pytest.raises(ValueError, match="the name of a space"):
        heddle.open(space=name)


def test_queues_is_no_text() -> None:
    with pytest.raises(TypeError, match="queues takes a list of names, not the text 'gpu'"):
        heddle.open(queues="gpu")
