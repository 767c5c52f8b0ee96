"""Every supported construct: what a workflow does on the engine is what CPython does with the same source.

constructs.txt has the bodies of run, separated by lines of "---"; behind a line "%%" stand further methods.
"""
from __future__ import annotations

import asyncio
import pathlib

import pytest

import twin
from heddle.store import Store
from heddle.testing.lab import CLOCK

CASES = (pathlib.Path(__file__).parent / "constructs.txt").read_text().rstrip("\n").split("\n---\n")


@pytest.mark.parametrize("case", CASES, ids=[case.partition("\n")[0][:60] for case in CASES])
def test_a_workflow_does_what_python_does(case: str) -> None:
    body, _, rest = case.partition("\n%%\n")
    source = twin.flow(body, rest)

    async def both() -> tuple[twin.Outcome, twin.Outcome]:
        plain = await twin.run_plain(source)
        async with Store(clock=CLOCK) as store:
            return plain, await twin.run_compiled(store, source)

    plain, compiled = asyncio.run(both())
    assert twin.same(plain, compiled, ordered=not any(word in body for word in ("gather", "TaskGroup", "create_task"))), f"Python {plain}\nheddle {compiled}"
