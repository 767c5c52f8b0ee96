"""Objects of the standard library and of classes with code of their own: what CPython gives, or a refusal, never another answer.

HEDDLE_OBJECTS is the number of sources, HEDDLE_SEED one of them."""
from __future__ import annotations

import asyncio
import os
import warnings
from typing import Any

import heddle
import twin
from heddle.store import Store
from heddle.testing.lab import CLOCK
from objects import ACTIONS, HEAD, Held, Objects

COUNT = int(os.environ.get("HEDDLE_OBJECTS", "2000"))
BEGIN = int(os.environ.get("HD_SEED", "0")) * 1_000_000
BATCH = 200


class Counts:
    def __init__(self) -> None:
        self.same = self.refused = self.unsupported = 0


async def check(seeds: range, counts: Counts, maker: type[Objects] = Objects) -> None:
    for start in range(seeds.start, seeds.stop, BATCH):
        async with Store(clock=CLOCK) as store:
            plain, compiled = twin.module_of(HEAD + ACTIONS, twin.PLAIN), twin.module_of(HEAD + ACTIONS, heddle)
            for seed in range(start, min(start + BATCH, seeds.stop)):
                await check_one(store, maker(seed).workflow(f"Flow{seed}"), seed, plain, compiled, counts)
            twin.forget(plain)
            twin.forget(compiled)


async def check_one(store: Any, source: str, seed: int, plain: Any, compiled: Any, counts: Counts) -> None:
    twin.more(plain, source)
    try:
        twin.more(compiled, source)
    except heddle.CompileError:
        counts.refused += 1
        return
    expected = twin.outcome_of_python(plain[f"Flow{seed}"]().run(), plain["_calls"])
    found = await twin.outcome(store.run(compiled[f"Flow{seed}"]), compiled["_calls"])
    if isinstance(found.error, heddle.CompileError):  # a class that names itself is compiled when it is started
        counts.refused += 1
        return
    if isinstance(found.error, heddle.Unsupported):
        wrong = "TypeError" in expected.shown() or "AttributeError" in expected.shown()
        assert wrong or "def pick" not in source, f"HEDDLE_SEED={seed}\n{source}\n{found.error}"
        counts.unsupported += 1
        return
    assert expected.shown() == found.shown(), f"HEDDLE_SEED={seed}\n{source}\nPython {expected}\nheddle {found}"
    counts.same += 1


def run(maker: type[Objects]) -> Counts:
    counts = Counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "HEDDLE_SEED" in os.environ:
            seed = int(os.environ["HEDDLE_SEED"])
            print(maker(seed).workflow("Flow"))
            asyncio.run(check(range(seed, seed + 1), counts, maker))
        else:
            asyncio.run(check(range(BEGIN, BEGIN + COUNT), counts, maker))
    print(f"{counts.same} as in Python, {counts.refused} refused, {counts.unsupported} unsupported")
    return counts


def test_objects_are_what_python_has_or_are_refused() -> None:
    assert run(Objects).same > COUNT // 3 or "HEDDLE_SEED" in os.environ


def test_objects_of_known_classes_are_never_unsupported() -> None:
    """But for programs that raise TypeError or AttributeError in CPython: check_one looks at that."""
    assert run(Held).same > COUNT // 2 or "HEDDLE_SEED" in os.environ
