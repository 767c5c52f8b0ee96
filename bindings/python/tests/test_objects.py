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
from objects import ACTIONS, HEAD, Objects

COUNT = int(os.environ.get("HEDDLE_OBJECTS", "2000"))
BEGIN = int(os.environ.get("HD_SEED", "0")) * 1_000_000
BATCH = 200


class Counts:
    def __init__(self) -> None:
        self.same = self.refused = self.unsupported = 0


async def check(seeds: range, counts: Counts) -> None:
    for start in range(seeds.start, seeds.stop, BATCH):
        async with Store(clock=CLOCK) as store:
            plain, compiled = twin.module_of(HEAD + ACTIONS, twin.PLAIN), twin.module_of(HEAD + ACTIONS, heddle)
            for seed in range(start, min(start + BATCH, seeds.stop)):
                await check_one(store, seed, plain, compiled, counts)
            twin.forget(plain)
            twin.forget(compiled)


async def check_one(store: Any, seed: int, plain: Any, compiled: Any, counts: Counts) -> None:
    source = Objects(seed).workflow(f"Flow{seed}")
    twin.more(plain, source)
    try:
        twin.more(compiled, source)
    except heddle.CompileError:
        counts.refused += 1
        return
    expected = await twin.outcome(plain[f"Flow{seed}"]().run(), plain["_calls"])
    found = await twin.outcome(store.run(compiled[f"Flow{seed}"]), compiled["_calls"])
    if isinstance(found.error, heddle.Unsupported):
        counts.unsupported += 1
        return
    assert expected.shown() == found.shown(), f"HEDDLE_SEED={seed}\n{source}\nPython {expected}\nheddle {found}"
    counts.same += 1


def test_objects_are_what_python_has_or_are_refused() -> None:
    counts = Counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "HEDDLE_SEED" in os.environ:
            seed = int(os.environ["HEDDLE_SEED"])
            print(Objects(seed).workflow("Flow"))
            asyncio.run(check(range(seed, seed + 1), counts))
            return
        asyncio.run(check(range(BEGIN, BEGIN + COUNT), counts))
    print(f"{counts.same} as in Python, {counts.refused} refused, {counts.unsupported} unsupported")
    assert counts.same > COUNT // 3
