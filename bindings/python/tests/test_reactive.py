"""Computations, effects, sinks, events, gates, why and why not; with asyncio and without."""
from __future__ import annotations

import asyncio
import dataclasses
import enum
import gc
import logging
import threading
import time
import warnings
from datetime import timedelta
from typing import Optional
from xml.etree import ElementTree

import pytest

import heddle
from heddle import Workflow, action, workflow


@pytest.fixture
def store():
    with heddle.open() as opened:
        yield opened


def test_the_example(store, capsys):
    items, total = store.cell("main/cart#/items"), store.cell("main/total")

    @store.computed(total)
    def add_up():
        return sum(item["price"] for item in items())

    @store.effect
    def show():
        print("the total is", total())

    items.set([{"price": 3}, {"price": 4}])
    store.settle()
    store.cell("main/cart#/note").set("gift")
    store.settle()
    items[0]["price"].set(30)
    store.settle()
    assert capsys.readouterr().out == "the total is 7\nthe total is 34\n"


def test_computations_run_only_when_needed(store):
    x, y, runs = store.cell("main/x"), store.cell("main/y"), []

    @store.computed(y)
    def double():
        runs.append(1)
        return (x() or 0) * 2

    x.set(1)
    store.settle()
    assert not runs and y() is None
    assert y.pull() == 2 and len(runs) == 1
    sink = y.sink(lambda value: None)
    x.set(2)
    store.settle()
    assert y() == 4 and len(runs) == 2
    sink.stop()
    x.set(3)
    store.settle()
    assert len(runs) == 2


def test_sinks_hear_what_changes(store):
    x, seen = store.cell("main/x"), []
    node = store.sink(x, seen.append)
    store.settle()
    for value in (1, 1, 2):
        x.set(value)
        store.settle()
    node.stop()
    x.set(3)
    store.settle()
    assert seen == [None, 1, 2]


def test_a_confirmed_sink_is_shown_what_is_stored(path):
    with heddle.open(path) as store:
        x, seen = store.cell("main/x"), []
        x.set(1)
        node = x.sink(lambda value: seen.append((value, on_disk(path))), confirmed=True)
        store.sync()
        for value in (2, 3):
            x.set(value)
        store.sync()
        node.stop()
        x.set(4)
        store.sync()
    assert seen == [(1, 1), (3, 3)]


def follower(path, derive, runs):
    """Has the computation `double`, which notes its runs, and needs its result."""
    store = heddle.open(path, derive=derive, inspect=False)
    x, y = store.cell("main/x"), store.cell("main/y")

    @store.computed(y)
    def double():
        runs.append(x())
        return (x() or 0) * 2

    y.sink(lambda value: None)
    store.settle()
    store.sync()  # with commits of its own under way a settle need not see what others have stored
    return store


def change(writer, followers, value):
    writer.cell("main/x").set(value)
    writer.sync()
    for store in followers:
        store.settle()
        assert store.cell("main/y")() == value * 2


def test_one_of_several_programs_derives(path):
    runs, deadline, value = [], time.monotonic() + 60, 1
    with heddle.open(path, inspect=False) as writer, follower(path, "one", runs) as a, follower(path, "one", runs) as b:
        while not writer.cell("main/lease/derive").pull() and time.monotonic() < deadline:
            value += 1
            change(writer, (a, b), value)
            for store in (a, b):
                store.sync()
        assert writer.cell("main/lease/derive").pull()["session"]


def test_each_program_derives_for_itself_in_a_file(path):
    runs = []
    with heddle.open(path, inspect=False) as writer, follower(path, "each", runs) as a, follower(path, None, runs) as b:
        for value in range(1, 20):
            change(writer, (a, b), value)
            for store in (a, b):
                store.sync()
        assert writer.cell("main/lease/derive").pull() is None
    assert set(runs) >= set(range(1, 20))


def test_derive_is_one_or_each():
    with pytest.raises(ValueError, match='"one", "each" or None'):
        heddle.open(derive="all")


def on_disk(path):
    """What another program sees."""
    with heddle.open(path, read_only=True, inspect=False) as other:
        return other.cell("main/x").pull()


def test_a_confirmed_sink_may_write_and_stop_itself_and_tells_what_it_raises(path):
    errors = []
    with heddle.open(path) as store:
        x, y = store.cell("main/x", Point), store.cell("main/y")
        store.on_error(lambda name, error: errors.append((name, str(error))))

        def once(value):
            node.stop()
            y.set([value.x])
            raise LookupError("sold out")

        x.set(Point(3))
        node = x.sink(once, confirmed=True, name="once")
        store.sync()
        x.set(Point(4))
        store.sync()
        assert y() == [3]
        late = x.sink(once, confirmed=True)  # nothing is on its way: it is shown the value at once
        node = late
        store.sync()
        assert y() == [4]
    assert errors == [("once", "sold out"), ("sink", "sold out")]


@dataclasses.dataclass
class Point:
    x: int


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


@dataclasses.dataclass
class Shape:
    colour: Colour
    other: Optional[Colour] = None
    more: list[Colour] = dataclasses.field(default_factory=list)
    by_name: dict[str, Colour] = dataclasses.field(default_factory=dict)
    name: str = "red"


def test_a_dataclass_in_a_cell_has_its_enums_again(store):
    shape = Shape(Colour.RED, Colour.BLUE, [Colour.BLUE, Colour.RED], {"k": Colour.RED})
    cell = store.cell("main/shape", Shape)
    cell.set(shape)
    assert cell() == shape and store.cell("main/shape")()["colour"] == "red"
    cell.set(Shape(Colour.BLUE))
    assert cell() == Shape(Colour.BLUE)


def test_a_sink_is_not_shown_what_its_own_group_writes(store):
    x, own, other = store.cell("main/x"), [], []
    x.set(0)
    x.sink(own.append, group=7)
    x.sink(own.append, group=7, confirmed=True)
    x.sink(other.append)
    store.sync()
    with store.transaction(group=7):
        x.set(1)
    store.sync()
    store.transact(lambda: x.set(2), group=7)
    store.sync()
    assert own == [0, 0] and other == [0, 1, 2]
    with store.transaction(group=8):
        x.set(3)
    store.sync()
    store.transact(lambda: x.set(4))
    store.sync()
    assert own == [0, 0, 3, 3, 4, 4] and other == [0, 1, 2, 3, 4]


def test_values_of_a_cell_may_be_confirmed_and_of_others_only(path):
    async def main():
        seen = []
        async with heddle.open(path) as store:
            x = store.cell("main/x")
            x.set(1)
            async for value in x.values(confirmed=True, group=7):
                seen.append((value, on_disk(path)))
                if value == 3:
                    break
                await store.transact_async(lambda: x.set(2), group=7)
                await store.transact_async(lambda: x.set(3))
        return seen

    assert asyncio.run(main()) == [(1, 1), (3, 3)]


def test_effects_may_write(store):
    x, log = store.cell("main/x"), store.cell("main/log")
    log.set([])

    @store.effect
    def note():
        if x() is not None:
            log.append(x())

    x.set(1)
    store.settle()
    x.set(2)
    store.settle()
    assert log() == [1, 2]


def test_a_computation_that_writes_elsewhere_is_refused(store):
    x, other, errors = store.cell("main/x"), store.cell("main/other"), []
    store.on_error(lambda name, error: errors.append((name, str(error))))

    @store.computed(x)
    def sly():
        other.set(1)
        return 1

    x.sink(lambda value: None)
    store.settle()
    assert other() is None and x() is None


def test_what_a_function_raises_is_told_and_the_next_change_runs_it_again(store, caplog):
    x, y = store.cell("main/x"), store.cell("main/y")

    @store.computed(y)
    def invert():
        return 1 / x()

    x.set(0)
    y.sink(lambda value: None)
    with caplog.at_level(logging.ERROR, "heddle"):
        store.settle()
    assert "invert failed" in caplog.text and "ZeroDivisionError" in caplog.text
    assert str(store.why_not(invert)).startswith("its run number 1 has failed")
    told = []
    store.on_error(lambda name, error: told.append((name, type(error))))
    x.set("text")
    store.settle()
    assert told == [("invert", TypeError)]
    x.set(2)
    store.settle()
    assert y() == 0.5 and "failed" not in str(store.why_not(invert))


def test_ctrl_c_in_a_computation_reaches_the_caller(store):
    x = store.cell("main/x")

    @store.effect
    def stop():
        if x() == 1:
            raise KeyboardInterrupt

    store.settle()
    x.set(1)
    with pytest.raises(KeyboardInterrupt):
        store.settle()
    x.set(2)
    assert store.settle()


def test_a_result_that_cannot_be_stored_is_an_error(store):
    y, told = store.cell("main/y"), []
    store.on_error(lambda name, error: told.append(str(error)))

    @store.computed(y)
    def bad():
        return {"a": {1, 2}}

    y.sink(lambda value: None)
    store.settle()
    assert told == ["main/y: set cannot be stored in a cell at value['a']"]


def test_reading_what_is_not_up_to_date_runs_it_first(store):
    x, y, z = (store.cell(f"main/{n}") for n in "xyz")
    seen = []

    @store.computed(z)
    def third():
        return (y() or 0) + (x() or 0)

    @store.computed(y)
    def second():
        return (x() or 0) * 10

    store.sink(z, seen.append)
    for n in (1, 2, 3):
        x.set(n)
        store.settle()
    assert seen == [11, 22, 33]


def test_gates(heddle_lab):
    store = heddle_lab.store
    x, seen = store.cell("main/x"), []

    @store.effect(name="slow", throttle=10)
    def slow():
        seen.append(x())

    store.settle()
    for i in range(3):
        x.set(i)
        store.settle()
    assert seen == [None]
    assert "at most once in 10000 ms" in str(store.why_not(slow))
    heddle_lab.advance(11)
    assert seen == [None, 2]
    slow.node.throttle(0)
    x.set(7)
    store.settle()
    assert seen[-1] == 7


def test_holds(heddle_lab):
    store = heddle_lab.store
    seen = []
    hold = store.hold("late", 60)

    @store.effect
    def late():
        seen.append(1)

    store._runtime.pump()
    assert not seen and "held" in str(store.why_not(late)).lower()
    hold.end()
    store.settle()
    assert seen == [1]


@pytest.mark.parametrize("seconds", [-1, -0.001, 4_294_968, float("nan")])
def test_no_time_of_a_gate_or_hold(store, seconds):
    @store.effect
    def shown():
        store.cell("main/x")()

    register = [lambda: store.effect(lambda: None, debounce=seconds), lambda: store.computed("main/y", throttle=seconds)(lambda: 1)]
    for call in (*register, lambda: shown.node.debounce(seconds), lambda: shown.node.throttle(seconds), lambda: store.hold("x", seconds)):
        with pytest.raises(ValueError, match="the time is a number of seconds"):
            call()


def test_why_prints_a_tree(store, tmp_path):
    x, y = store.cell("main/x"), store.cell("main/y")
    store.trace()

    @store.computed(y)
    def double():
        return (x() or 0) * 2

    @store.effect
    def show():
        y()

    x.set(1)
    store.settle()
    x.set(2)
    store.settle()
    text = str(store.why(show))
    assert text.splitlines()[0] == "show"
    assert "  main/y: 2 -> 4, by double" in text and "    main/x: 1 -> 2, by this program" in text
    assert "clean" in str(store.why_not("double"))
    with pytest.raises(heddle.InputError, match=r"there is no node 'W/1'.* store.handle\(id\).state\(\) tells"):
        store.why_not("W/1")
    with pytest.raises(heddle.InputError):
        store.why("nobody")
    graph = store.graph()
    assert "double -> show" in str(graph) and "flowchart" in graph.mermaid()
    ElementTree.fromstring(graph._repr_svg_())
    graph.save(str(tmp_path / "graph.svg"))
    assert ">double</text>" in (tmp_path / "graph.svg").read_text()
    with pytest.raises(ValueError, match="the name ends in one of .svg, .mmd, .txt, not in '.jpg'"):
        graph.save(tmp_path / "graph.jpg")
    assert {row["name"] for row in store.nodes()} == {"double", "show"}
    assert store.stats()["runs"] >= 4


def test_the_causes_of_a_writer_stand_below_it(store):
    """Also where the run that it caused has other causes, which come next in the list."""
    x, y = store.cell("main/x"), store.cell("main/y")
    store.trace()
    store.computed(store.cell("main/z"), name="add")(lambda: (y() or 0) + (x() or 0))
    store.computed(y, name="double")(lambda: (x() or 0) * 2)
    store.effect(name="last")(store.cell("main/z"))
    x.set(2)
    store.settle()
    x.set(3)
    store.settle()
    assert str(store.why("last")) == """\
last
  main/z: 6 -> 9, by add
    main/y: 4 -> 6, by double
      main/x: 2 -> 3, by this program
    main/x: 2 -> 3, by this program"""


def test_computations_resume_by_their_code(path):
    def build(store, runs, factor):
        x, y = store.cell("main/x"), store.cell("main/y")

        @store.computed(y)
        def times():
            runs.append(1)
            return (x() or 0) * factor

        y.sink(lambda value: None)
        store.settle()
        return y()

    runs = []
    with heddle.open(path) as store:
        store.cell("main/x").set(2)
        assert build(store, runs, 3) == 6
    with heddle.open(path) as store:
        assert build(store, runs, 3) == 6
    assert len(runs) == 1
    with heddle.open(path) as store:
        assert build(store, runs, 4) == 8
    assert len(runs) == 2


MODULE = """
import functools
RATE, NAMES = {rate}, ("net", {name!r})
runs = []

def tax(value):
    return rounded(value * RATE)

def rounded(value):
    return round(value, {digits})

def build(store, heddle):
    price, total, label = store.cell("main/price"), store.cell("main/total"), store.cell("main/label")

    @store.computed(total)
    def add():
        runs.append("add")
        return tax(price() or 0)

    def write(suffix):
        runs.append("write")
        return NAMES[1] + suffix

    store.computed(label, name="write")(functools.partial(write, {suffix!r}))

    @heddle.pattern
    def row(b, price=0):
        return b.derive("taxed", price, tax)

    piece = store.piece("row", row, price=price)
    cells = [total, label, piece.result]
    for cell in cells:
        cell.sink(lambda value: None)
    store.settle()
    return [cell() for cell in cells]
"""


def test_code_is_also_what_stands_in_the_module(path):
    """A function that is called by name, directly or by another one, and a plain value of the module."""

    def start(**given):
        text = {"rate": 2, "name": "gross", "digits": 1, "suffix": "!", **given}
        module = {"__name__": "prices"}
        exec(MODULE.format(**text), module)
        with heddle.open(path) as store:
            store.cell("main/price").set(1.26)
            return module["build"](store, heddle), module["runs"]

    assert start() == ([2.5, "gross!", 2.5], ["add", "write"])
    assert start() == ([2.5, "gross!", 2.5], [])
    assert start(rate=3) == ([3.8, "gross!", 3.8], ["add"])
    assert start(rate=3, digits=0) == ([4.0, "gross!", 4.0], ["add"])
    assert start(rate=3, digits=0, name="all") == ([4.0, "all!", 4.0], ["write"])
    assert start(rate=3, digits=0, name="all", suffix="?") == ([4.0, "all?", 4.0], ["write"])


def test_elements_are_counted_from_the_front(store):
    """As the address /-1 it would be a place that never has a value."""
    store.cell("main/list").set([1, 2])
    with pytest.raises(IndexError, match=r"cell\(\)\[-1\]"):
        store.cell("main/list")[-1]


def test_computed_wants_a_cell(store):
    with pytest.raises(TypeError, match=r"takes the cell whose value is computed: @store.computed\(total\)"):
        @store.computed
        def nothing():
            return 1


def test_a_default_of_a_parameter_is_code(path):
    def build(store, runs, factor):
        x, y = store.cell("main/x"), store.cell("main/y")

        @store.computed(y)
        def times(by=factor, *, plus=0):
            runs.append(1)
            return (x() or 0) * by + plus

        y.sink(lambda value: None)
        store.settle()
        return y()

    runs = []
    with heddle.open(path) as store:
        store.cell("main/x").set(2)
        assert build(store, runs, 3) == 6
    with heddle.open(path) as store:
        assert build(store, runs, 3) == 6
    assert len(runs) == 1
    with heddle.open(path) as store:
        assert build(store, runs, 4) == 8


# ---- Events


def test_events_count_once(store):
    log, outcomes = store.cell("main/log"), []
    log.set([])

    @store.on("main/orders", reads=[log])
    def handle(event):
        log.append(event.payload["n"])
        return {"seen": len(log())}

    done = lambda id, error: outcomes.append(error and error.status)
    store.send("main/orders", {"n": 1}, id="a", done=done)
    store.settle()
    store.sync()
    store.send("main/orders", {"n": 1}, id="a", done=done)
    store.send("main/orders", {"n": 2}, done=done)
    store.settle()
    store.sync()
    assert log() == [1, 2] and outcomes == [None, "HD_EXISTS", None]
    receipts = [d for d in store.documents(prefix="receipt/")]
    assert len(receipts) == 2


def test_posted_events_wait_for_a_handler(path):
    with heddle.open(path) as store:
        id = store.post_event("main/orders", {"n": 5})
        assert id
    with heddle.open(path) as store:
        log = store.cell("main/log")

        @store.on("main/orders", reads=[log])
        def handle(event):
            assert event.posted and event.id == id
            log.set(event.payload["n"])

        store.settle()
        store.sync()
        store.settle()
        assert log() == 5


def test_a_handler_that_raises_changes_nothing(store):
    log, outcomes = store.cell("main/log"), []
    store.on_error(lambda name, error: outcomes.append((name, type(error).__name__)))

    @store.on("main/orders", reads=[log])
    def handle(event):
        log.set("changed")
        raise ValueError("no")

    store.send("main/orders", 1, done=lambda id, error: outcomes.append(error.status))
    store.settle()
    assert log() is None and outcomes == [("handle", "ValueError"), "HD_FAILED"]


def test_transactions_send_and_the_outbox_delivers(store):
    log, mails, tries = store.cell("main/log"), [], []

    @store.on("main/orders", reads=[log])
    def handle(event):
        log.set(event.payload)
        store.outbox("mail", {"to": event.payload, "id": store.new_id()})

    @store.channel("mail")
    def mail(key, message):
        tries.append(key)
        mails.append(message["to"])

    with pytest.raises(ZeroDivisionError):
        with store.transaction():
            store.send("main/orders", "never")
            1 / 0
    with store.transaction():
        store.send("main/orders", "once")
    store.settle()
    store.sync()
    store.settle()
    assert log() == "once" and mails == ["once"]
    with pytest.raises(heddle.UsageError):
        store.outbox("mail", 1)


# ---- asyncio


def test_async_iteration():
    async def main():
        async with heddle.open() as store:
            x, seen = store.cell("main/x"), []

            async def write():
                for i in range(3):
                    await asyncio.sleep(0)
                    x.set(i)
                    while seen[-1:] != [i]:
                        await asyncio.sleep(0)

            writer = asyncio.ensure_future(write())
            async for value in x:
                seen.append(value)
                if value == 2:
                    break
            await writer
            assert seen == [None, 0, 1, 2]

    asyncio.run(main())


def test_async_computations_wait_outside_of_the_run():
    async def main():
        async with heddle.open() as store:
            x, y, z, other = (store.cell(f"main/{n}") for n in ("x", "y", "z", "other"))
            seen, gate = [], asyncio.Event()

            @store.computed(y)
            async def slow():
                value = x()
                await gate.wait()
                await asyncio.sleep(0)
                return (value or 0) * 10 + (other() or 0)

            @store.computed(z)
            def after():
                return y()

            store.sink(z, seen.append)
            x.set(1)
            await asyncio.sleep(0.01)
            assert seen == []
            gate.set()
            while not seen:
                await asyncio.sleep(0)
            assert seen == [10]
            other.set(5)
            while len(seen) < 2:
                await asyncio.sleep(0)
            assert seen == [10, 15]

    asyncio.run(main())


def test_an_async_computation_that_raises_is_told():
    async def main():
        async with heddle.open() as store:
            y, told = store.cell("main/y"), []
            store.on_error(lambda name, error: told.append((name, str(error))))

            @store.computed(y)
            async def bad():
                await asyncio.sleep(0)
                raise ValueError("no")

            y.sink(lambda value: None)
            while not told:
                await asyncio.sleep(0)
            assert told == [("bad", "no")]

    asyncio.run(main())


def test_tasks_of_an_async_computation_read_and_write_in_its_run():
    async def main():
        with heddle.open() as store:
            a, b, both, limited = (store.cell(f"main/{name}") for name in ("a", "b", "both", "limited"))
            a.set(1), b.set(2)

            async def fetch(cell):
                await asyncio.sleep(0.001)
                return cell()

            @store.computed(both)
            async def total():
                return sum(await asyncio.gather(fetch(a), fetch(b)))

            @store.computed(limited)
            async def first():
                return await asyncio.wait_for(fetch(a), 1)

            @store.effect
            async def copy():
                async def put(name, cell):
                    value = await fetch(cell)
                    assert a() == value or cell is b
                    store.cell(f"main/copy#/{name}").set(value)
                    await asyncio.sleep(0.01)
                    assert store.cell(f"main/copy#/{name}")() == value

                store.cell("main/copy").set({})
                async with asyncio.TaskGroup() as group:
                    group.create_task(put("a", a))
                    group.create_task(put("b", b))

            both.sink(lambda value: None)
            limited.sink(lambda value: None)
            for n in (10, 20):
                a.set(n)
                await store.stored()
                await asyncio.sleep(0.1)
                assert both() == n + 2 and limited() == n and store.cell("main/copy")() == {"a": n, "b": 2}

    asyncio.run(main())


def test_a_task_that_outlives_its_run_reads_and_writes_for_itself():
    async def main():
        async with heddle.open() as store:
            x, y, late, tasks, runs = store.cell("main/x"), store.cell("main/y"), store.cell("main/late"), [], []

            async def later():
                await asyncio.sleep(0.03)
                late.set(x())

            @store.effect
            async def begin():
                runs.append(y())
                tasks.append(asyncio.create_task(later()))

            x.set(1)
            await store.stored()
            await asyncio.sleep(0.06)
            x.set(2)
            await store.stored()
            await asyncio.sleep(0.02)
            assert late() == 1 and runs == [None]

    asyncio.run(main())


def test_a_computation_that_is_defined_again_replaces_the_one_before(store):
    x, y, z, shown = store.cell("main/x"), store.cell("main/y"), store.cell("main/z"), []
    x.set(1)
    for n in (10, 100):
        @store.computed(y)
        def times():
            return x() * n

        y.sink(shown.append)
        store.settle()
    assert shown == [10, 100, 100]
    with pytest.raises(heddle.UsageError, match="another name"):
        @store.computed(z, name="times")
        def other():
            return 1


def test_what_is_given_wrongly_is_refused(store):
    with pytest.raises(ValueError, match="at least a millisecond"):
        store.post_event("main/e", every=0.0004)
    with pytest.raises(ValueError, match="goes with every"):
        store.post_event("main/e", every_missed=True)
    with pytest.raises(ValueError, match="not both"):
        store.post_event("main/e", at=5, after=5)
    for group in (-1, 1 << 64):
        with pytest.raises(ValueError, match="change group"):
            store.transaction(group=group)
        with pytest.raises(ValueError, match="change group"):
            store.cell("main/x").sink(print, group=group)
    with pytest.raises(TypeError, match="async"):
        @heddle.pattern
        async def built(b):
            return None

    async def serve():
        store.run_forever()

    with pytest.raises(heddle.UsageError, match="loop runs"):
        asyncio.run(serve())

    @store.effect(debounce=timedelta(milliseconds=1), throttle=timedelta(0))
    def effect():
        pass


def test_a_transaction_in_an_async_run_is_refused_as_in_any_run():
    async def main():
        with heddle.open() as store:
            told = []
            store.on_error(lambda name, error: told.append(str(error)))

            @store.effect
            async def write():
                with store.transaction():
                    store.cell("main/x").set(1)

            await store.stored()
            await asyncio.sleep(0.02)
            assert told == ["a run has its own transaction: read and write in that"] and not store.cell("main/x").exists()

    asyncio.run(main())


def test_a_receipt_that_cannot_be_stored_is_the_cause():
    async def main():
        with heddle.open() as store:
            @store.on("main/e")
            def handle(event):
                return {1: 2}

            with pytest.raises(heddle.FailedError, match="keys that are not str") as failed:
                await store.handled("main/e")
            assert isinstance(failed.value.__cause__, TypeError)

    asyncio.run(main())


def test_a_store_that_another_thread_left_open_is_told(path, caplog):
    def use():
        store = heddle.open(path)
        store.itself = store
        store.cell("main/x").set(1)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
    assert caplog.text.count("was not closed by the thread that opened it") == 1


def test_what_is_async_waits_for_a_loop(store, caplog):
    x, y, shown, ran = store.cell("main/x"), store.cell("main/y"), [], []
    store.on_error(lambda name, error: shown.append(error))

    @store.computed(y)
    async def double():
        return (x() or 0) * 2

    @store.effect
    async def note():
        ran.append(x())

    y.sink(shown.append)
    x.set(1)
    assert store.settle() is False and not shown and not ran
    assert "asyncio" in caplog.text and "cut short" in str(store.why_not(double))
    store.sync()

    async def use(n):
        x.set(n)
        await store.stored()
        await asyncio.sleep(0.05)

    asyncio.run(use(2))
    assert shown == [4] and ran == [2]
    x.set(3)
    assert store.settle() is False
    asyncio.run(use(4))
    assert shown == [4, 8] and ran == [2, 4]


def test_an_event_behind_what_is_async_waits_for_a_loop(store):
    y, handled = store.cell("main/y"), []

    @store.computed(y)
    async def one():
        return 1

    @store.on("main/e", reads=[y])
    def handle(event):
        handled.append(y())

    store.send("main/e")
    assert store.settle() is False and not handled

    async def use():
        await store.stored()
        await asyncio.sleep(0.05)

    asyncio.run(use())
    assert handled == [1]


def test_a_loop_that_ends_cuts_short_what_waits_in_it(store):
    x, y, told = store.cell("main/x"), store.cell("main/y"), []
    store.on_error(lambda name, error: told.append(error))

    @store.computed(y)
    async def slow():
        value = x()
        await asyncio.sleep(0.05)
        return value * 10

    y.sink(lambda value: None)

    async def use(n, seconds):
        x.set(n)
        await store.stored()
        await asyncio.sleep(seconds)

    asyncio.run(use(1, 0.01))
    asyncio.run(use(1, 0.1))
    assert y() == 10
    asyncio.run(use(2, 0.01))
    assert store.settle() is False
    loop = asyncio.new_event_loop()
    loop.run_until_complete(use(2, 0.01))
    loop.run_until_complete(asyncio.sleep(0.1))
    assert y() == 20 and not told
    loop.close()


def test_a_task_that_is_cancelled_runs_again(store):
    y, began = store.cell("main/y"), []

    @store.computed(y)
    async def slow():
        began.append(asyncio.current_task())
        await asyncio.sleep(0.01)
        return len(began)

    async def use():
        y.sink(lambda value: None)
        await store.stored()
        while not began:
            await asyncio.sleep(0.001)
        began[0].cancel()
        await asyncio.sleep(0.2)

    asyncio.run(use())
    assert y() == 2


def test_what_is_due_when_the_store_closes_runs_next_time(path):
    async def main(n):
        async with heddle.open(path) as store:
            x, y = store.cell("main/x"), store.cell("main/y")

            @store.computed(y)
            async def double():
                return (x() or 0) * 2

            y.sink(lambda value: None)
            await store.stored()
            await asyncio.sleep(0.02)
            assert y() == 2 * (x() or 0)
            x.set(n)

    for n in range(1, 4):
        asyncio.run(main(n))


def test_computations_run_while_the_store_closes(path):
    """An event that waits is told the end of the store, and what is written then is computed before the store is gone."""
    store, told, sums, kept = heddle.open(path), [], [], []
    items, total, slow = store.cell("main/items"), store.cell("main/total"), store.cell("main/slow")
    items.set([1])

    @store.computed(total)
    def add_up():
        kept.append(items.value())
        return [sum(items()), {"told": len(told)}]

    @store.computed(slow)
    async def never():
        await asyncio.sleep(3600)

    @store.on("main/orders", reads=[slow])
    def order(event):
        slow()

    def end(event, error):
        told.append(event)
        items.set([2, 3])

    total.sink(sums.append)
    store._runtime.send("main/orders", 1, id=None, done=end)
    store.close()
    assert len(told) == 1 and sums[-1] == [5, {"told": 1}]
    with pytest.raises(heddle.Error, match="closed"):
        kept[-1].get()
    del kept


@pytest.mark.parametrize("where", ["computation", "row"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_interrupted_runs_again(path, error, where):
    def program(interrupted):
        with heddle.open(path) as store:
            a, o, shown = store.cell("main/a"), store.cell("main/o"), []
            if not a.exists():
                a.set([1, 2, 3])

            @store.computed(o, version="1")
            def total():
                if interrupted and where == "computation":
                    raise error
                return sum(a())

            def price(x):
                if interrupted and where == "row" and x == 2:
                    raise error
                return x * 10

            @heddle.pattern(version="1")
            def shop(b, items=[]):
                return b.fold("total", b.map("prices", items, price), "sum")

            store.piece("p", shop, items=[1, 2, 3]).result.sink(shown.append)
            o.sink(shown.append)
            if interrupted:
                for _ in range(2):
                    with pytest.raises(error):
                        store.settle()
                store.close()
            else:
                assert store.settle()
            return sorted(shown)

    for _ in range(2):
        assert (60 if where == "row" else 6) not in program(True)
    for _ in range(2):
        assert program(False) == [6, 60]


def test_a_handler_that_is_interrupted_gets_its_event_again(store):
    handled = []

    @store.on("main/e")
    def handle(event):
        handled.append(event.payload)
        if len(handled) == 1:
            raise KeyboardInterrupt

    store.send("main/e", 7)
    with pytest.raises(KeyboardInterrupt):
        store.settle()
    assert store.settle() and handled == [7, 7]


def test_a_store_goes_on_in_the_next_loop(store):
    x = store.cell("main/x")

    async def use(n):
        x.set(n)
        async for value in x:
            return value

    for n in range(3):
        assert asyncio.run(use(n)) == n
    x.set(9)
    assert store.settle() and x() == 9


def test_handled_and_transact_async():
    async def main():
        async with heddle.open() as store:
            n = store.cell("main/n")

            @store.on("main/add", reads=[n])
            def add(event):
                n.set((n() or 0) + event.payload)

            for i in range(3):
                assert await store.handled("main/add", i)
            assert n() == 3

            @store.on("main/bad")
            def bad(event):
                raise ValueError("no")

            store.on_error(lambda name, error: None)
            with pytest.raises(heddle.FailedError, match="^the handler has raised ValueError: no$") as told:
                await store.handled("main/bad", 1)
            assert isinstance(told.value.__cause__, ValueError) and not store._raised

            def more():
                n.set(n() + 1)
                return n()

            assert await store.transact_async(more) == 4

            def wrong():
                raise KeyError("k")

            with pytest.raises(KeyError):
                await store.transact_async(wrong)
            await store.stored()

    asyncio.run(main())


# ---- Against a naive recomputation


class Naive:
    """Every value from scratch, each time."""

    def __init__(self, sources, formulas):
        self.values = dict(sources)
        self.formulas = formulas

    def all(self):
        out = dict(self.values)
        for name, reads, fn in self.formulas:
            out[name] = fn([out[r] for r in reads])
        return out


def random_formula(rng, reads):
    kind = rng.randrange(4)
    if kind == 0:
        return lambda v: sum(v)
    if kind == 1:
        return lambda v: max(v) - min(v)
    if kind == 2:
        return lambda v: v[0] if v[0] % 2 else v[-1]
    return lambda v: (sum(v) * 7 + 3) % 11


def test_random_graphs_against_naive_recomputation(rng):
    for _ in range(25):
        with heddle.open() as store:
            sources = {f"s{i}": rng.randrange(20) for i in range(rng.randrange(1, 5))}
            names, formulas, cells = list(sources), [], {}
            for name in sources:
                cells[name] = store.cell(f"main/{name}")
                cells[name].set(sources[name])
            for i in range(rng.randrange(1, 12)):
                name = f"c{i}"
                reads = [rng.choice(names) for _ in range(rng.randrange(1, 4))]
                fn = random_formula(rng, reads)
                cells[name] = store.cell(f"main/{name}")

                def body(reads=reads, fn=fn):
                    return fn([cells[r]() for r in reads])

                store.computed(cells[name], name=name)(body)
                formulas.append((name, reads, fn))
                names.append(name)
            watched = [n for n in names if rng.random() < 0.5] or [names[-1]]
            shown = {}
            for name in watched:
                store.sink(cells[name], lambda value, name=name: shown.__setitem__(name, value))
            model = Naive(sources, formulas)
            for _ in range(15):
                with store.transaction():
                    for name in rng.sample(list(sources), rng.randrange(1, len(sources) + 1)):
                        model.values[name] = rng.randrange(20)
                        cells[name].set(model.values[name])
                store.settle()
                expected = model.all()
                assert {n: expected[n] for n in watched} == shown


def test_closing_leaves_no_coroutine_behind():
    """Of an async computation that is about to begin."""
    async def main():
        async with heddle.open() as store:
            city, weather = store.cell("main/city"), store.cell("main/weather")

            @store.computed(weather)
            async def look_up():
                return city()

            weather.sink(lambda value: None)
            city.set(1)
            while weather() != 1:
                await asyncio.sleep(0)
            city.set(2)
            store._runtime.pump()
        await asyncio.sleep(0)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert not [str(warning.message) for warning in warned if "never awaited" in str(warning.message)]


@action
async def echo(x: int) -> int:
    return x


@workflow
class Echo(Workflow):
    async def run(self, x: int) -> int:
        return await echo(x)


def test_an_async_effect_does_not_wait_for_its_own_end():
    async def main():
        async with heddle.open() as store:
            store.cell("main/log").set([])
            refused, got = [], asyncio.get_running_loop().create_future()

            @store.on("main/orders", reads=[store.cell("main/log")])
            def order(event):
                store.cell("main/log").append(event.payload)

            @store.effect
            async def wait():
                for call in (lambda: store.stored(), lambda: store.handled("main/orders", 1), lambda: store.run(Echo, 1)):
                    with pytest.raises(heddle.UsageError, match="Await a task of its own") as error:
                        await call()
                    refused.append(str(error.value))
                await asyncio.create_task(store.handled("main/orders", 2))
                got.set_result(await asyncio.create_task(store.run(Echo, 3)))

            assert await asyncio.wait_for(got, 30) == 3 and len(refused) == 3
            assert store.cell("main/log")() == [2] and [status for _, status in store.instances()] == ["done"]

    asyncio.run(main())


def test_random_commits_of_groups(rng):
    """Sinks of a group, confirmed or not, are told of all changes but those of their group."""
    for _ in range(200):
        with heddle.open() as store:
            cell, value, sinks = store.cell("main/n"), 0, []
            cell.set(0)
            for _ in range(rng.randint(1, 4)):
                group, told = rng.choice([0, 1, 2]), []
                cell.sink(told.append, group=group, confirmed=rng.random() < 0.5)
                sinks.append((group, told, [0]))
            for _ in range(8):
                store.settle()
                store.sync()
                group, new = rng.choice([0, 1, 2]), rng.randint(0, 2)
                with store.transaction(group=group):
                    cell.set(new)
                for own, _, expected in sinks:
                    if new != value and not (own and own == group):
                        expected.append(new)
                value = new
            store.settle()
            store.sync()
            assert all(told == expected for _, told, expected in sinks), sinks
