"""Nothing is left behind: counted objects, counted blocks of the heap, descriptors."""
from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import weakref

import pytest

import heddle
from flow import call, chain


def growth(body, rounds=30):
    """Objects more after many rounds than after a few, per round."""
    for _ in range(5):
        body()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(rounds):
        body()
    gc.collect()
    return (len(gc.get_objects()) - before) / rounds


def references(body, rounds=200):
    """Blocks of Python's allocator more, per round."""
    for _ in range(20):
        body()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(rounds):
        body()
    gc.collect()
    return (sys.getallocatedblocks() - before) / rounds


def test_conversion_leaks_nothing():
    with heddle.open() as store:
        cell, value = store.cell("main/x"), {"a": [1, 2.5, "é", b"x", None, {"b": [True] * 10}], "c": "d" * 100}

        def body():
            cell.set(value)
            cell()
            cell.value()["a"][5]["b"]
            with pytest.raises(TypeError):
                cell.set({"a": [object()]})

        assert references(body) < 1
        heap = store.stats()["values"]
        for _ in range(100):
            body()
        assert store.stats()["values"] <= heap + 5


def test_tagged_conversion_leaks_nothing():
    from heddle import _heddle

    value = [(1, 2), {3, 4}, {1: 2}, {"b": 1, "a": 2}, ValueError("x"), range(3), "\ud800"]

    def body():
        _heddle.loads(_heddle.dumps(value))
        with pytest.raises(TypeError):
            _heddle.dumps([object()])

    assert references(body) < 1


def test_runs_leak_nothing():
    with heddle.open() as store:
        x, y, seen = store.cell("main/x"), store.cell("main/y"), []
        counter = iter(range(10**9))

        @store.computed(y)
        def double():
            if x() % 7 == 0:
                raise ValueError("seven")
            return x() * 2

        store.on_error(lambda name, error: None)
        y.sink(lambda value: None)

        def body():
            x.set(next(counter))
            store.settle()

        assert references(body) < 1


def test_registering_and_stopping_leaks_nothing():
    with heddle.open() as store:
        x = store.cell("main/x")

        def body():
            nodes = [x.sink(lambda value: None, confirmed=confirmed) for confirmed in (False, True)]
            store.settle()
            for node in nodes:
                node.stop()
            store.settle()

        assert references(body, 100) < 2


def test_stores_leak_nothing(tmp_path):
    counter = iter(range(10**9))

    def body():
        with heddle.open(str(tmp_path / f"{next(counter)}.db")) as store:
            store.cell("main/x").set(1)
            store.effect(lambda: None)
            store.settle()

    descriptors = len(os.listdir("/proc/self/fd"))
    assert growth(body, 10) < 1
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_workflows_leak_nothing(caplog):
    caplog.set_level(logging.CRITICAL, "heddle")  # pytest keeps what is logged of instances that fail

    async def act(x):
        if x == 3:
            raise ValueError("three")
        return x + 1

    flow = chain(3, act)

    async def rounds(store, count):
        for _ in range(count):
            await store.run(flow, 10)
            with pytest.raises(ValueError):
                await store.run(flow, 1)

    async def main():
        async with heddle.open() as store:
            await rounds(store, 10)
            gc.collect()
            before, heap = len(gc.get_objects()), store.stats()["values"]
            await rounds(store, 50)
            gc.collect()
            assert len(gc.get_objects()) - before < 25
            assert not store._flows_().actions.running

    asyncio.run(main())


def test_a_closed_store_lets_go_of_what_it_was_given():
    class Thing:
        def __call__(self, *_):
            return None

    things = [Thing() for _ in range(4)]
    gone = [weakref.ref(thing) for thing in things]
    with heddle.open() as store:
        x = store.cell("main/x")
        store.sink(x, things[0])
        store.effect(things[1], name="e") if False else store._runtime.node(things[1], name="e", effect=True)
        store._runtime.on("main/s", things[2], name="h")
        store._runtime.channel("main", "c", things[3])
        store.settle()
    things.clear()
    del x
    gc.collect()
    assert [ref() for ref in gone] == [None] * 4
