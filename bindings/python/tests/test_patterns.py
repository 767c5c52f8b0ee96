"""Patterns and pieces."""
from __future__ import annotations

import pytest

import heddle

runs: list = []


@heddle.pattern
def shop(b, items=[], rate=1.5):
    def price(item):
        runs.append(item["id"])
        return item["price"]

    prices = b.map("prices", items, price, key="/id")
    cheap = b.filter("cheap", items, lambda item: item["price"] < 10, key="/id")
    total = b.derive("total", b.gather("all", prices), sum)
    return b.lift("result", [total, rate, cheap], lambda total, rate, cheap: {"sum": total * rate, "cheap": len(cheap)})


ITEMS = [{"id": i, "price": i * 4} for i in range(1, 4)]


def test_a_pattern_follows_its_arguments():
    runs.clear()
    with heddle.open() as store:
        piece = store.piece("corner", shop, items=ITEMS)
        seen = []
        piece.result.sink(seen.append)
        store.settle()
        assert seen == [{"sum": 36.0, "cheap": 2}] and sorted(runs) == [1, 2, 3]
        runs.clear()
        piece.argument("items")[0]["price"].set(20)
        store.settle()
        assert seen[-1] == {"sum": 60.0, "cheap": 1} and runs == [1]
        piece.argument("rate").set(1)
        store.settle()
        assert seen[-1]["sum"] == 40 and runs == [1]
        assert piece.cell("total")() == 40
        piece.stop()
        with pytest.raises(heddle.InputError, match="does not run"):
            piece.result


def test_a_piece_resumes_without_running(path):
    with heddle.open(path) as store:
        store.piece("corner", shop, items=ITEMS).result.sink(lambda value: None)
        store.settle()
    runs.clear()
    with heddle.open(path) as store:
        store.use(shop)
        seen = []
        store.piece("corner").result.sink(seen.append)
        store.settle()
        assert seen == [{"sum": 36.0, "cheap": 2}] and runs == []


def test_the_version_of_a_pattern_may_be_given(path):
    for version, count in (("1", 1), ("1", 1), ("2", 2)):
        rows = heddle.pattern(name="rows", version=version)(lambda b, n=1: b.derive("r", n, lambda value: versions.append(version)))
        with heddle.open(path) as store:
            store.piece("r", rows).result.sink(lambda value: None)
            store.settle()
        assert len(versions) == count


versions = []


@heddle.pattern
def counter(b, step=1):
    count, clicks = b.state("count", 0), b.stream("clicks")
    b.on(clicks, lambda payload, id: count.set(count() + step()), [count, step])
    b.sink("shown", count, shown.append)
    return count


@heddle.pattern
def double(b, n=0):
    return b.derive("twice", n, lambda value: value * 2)


@heddle.pattern
def both(b, n=1, flag=True):
    yes, no = double(b, "inner", n=n), b.constant("no", "no")
    return b.if_else("chosen", flag, yes, no)


@heddle.pattern
def lists(b, rows=[]):
    def row(b, element):
        return b.derive("r", element, lambda value: [value["n"], value["n"]])

    flat = b.flat_map("flat", rows, row, key="/id", build=True)
    groups = b.group("groups", rows, lambda value: "odd" if value["n"] % 2 else "even", key="/id")
    numbers = b.map("numbers", rows, lambda value: value["n"], key="/id")
    total = b.fold("total", numbers, "sum")
    longest = b.fold("longest", numbers, lambda a, b: max(a, b))
    return b.lift("all", [flat, groups, total, longest], lambda *all: [all[0], sorted(all[1]), all[2], all[3]])


shown: list = []


def test_states_streams_and_sinks():
    shown.clear()
    with heddle.open() as store:
        piece = store.piece("c", counter, step=5)
        store.settle()
        store.send(piece.cell("clicks"), None)
        store.send(piece.cell("clicks"), None)
        store.settle()
        assert piece.result() == 10 and shown == [0, 5, 10]


def test_patterns_in_patterns():
    with heddle.open() as store:
        store.use(double)
        source = store.cell("main/source")
        source.set(4)
        piece, seen = store.piece("p", both, n=source), []
        piece.result.sink(seen.append)
        store.settle()
        source.set(5)
        store.settle()
        piece.argument("flag").set(False)
        store.settle()
        assert seen == [8, 10, "no"]
        piece.remove()
        assert not [d for d in store.documents() if d.startswith("p")]


def test_too_many_arguments_for_a_pattern_in_a_pattern_are_refused():
    @heddle.pattern
    def greedy(b):
        return b.use("twice", "double", {f"n{i}": b.constant(f"c{i}", i) for i in range(65)})

    with heddle.open() as store:
        store.use(double)
        with pytest.raises(ValueError, match="at most 64 arguments"):
            store.piece("g", greedy)


def test_rows_groups_and_folds():
    with heddle.open() as store:
        piece = store.piece("l", lists, rows=[{"id": i, "n": i} for i in (1, 2, 3)])
        seen = []
        piece.result.sink(seen.append)
        store.settle()
        assert seen[-1] == [[1, 1, 2, 2, 3, 3], ["even", "odd"], 6, 3]


def test_what_a_pattern_raises():
    @heddle.pattern
    def bad(b):
        raise KeyError("k")

    @heddle.pattern
    def twice(b):
        b.state("x", 1)
        return b.derive("x", b.constant("c", 1), lambda v: v)

    kept = []

    @heddle.pattern
    def leaky(b):
        kept.append(b)
        return b.constant("c", 1)

    with heddle.open() as store:
        with pytest.raises(KeyError, match="k"):
            store.piece("a", bad)
        with pytest.raises(heddle.Error):
            store.piece("b", twice)
        store.piece("c", leaky)
        with pytest.raises(RuntimeError, match="only while"):
            kept[0].constant("d", 1)
        with pytest.raises(ValueError):
            store.piece("e", heddle.Pattern(lambda b: b.fold("f", b.constant("l", []), "nonsense"), "f"))
        with pytest.raises(heddle.Error):
            store.piece("nowhere")


def test_a_piece_that_was_stopped_can_be_removed():
    @heddle.pattern
    def total(b, xs=[]):
        return b.fold("total", xs, "sum")

    with heddle.open() as store:
        piece = store.piece("p", total, xs=[1])
        store.settle()
        assert store.documents()
        piece.stop()
        piece.remove()
        store.sync()
        assert not store.documents()
