"""Random workflows on the engine and as Python: the same result or exception, the same calls in the same order.

HEDDLE_SEED=n runs one seed and prints its source; HEDDLE_SOURCES=100000 runs more of them, HD_SEED=n others. HEDDLE_LIMIT=n
gives each run n real seconds. A difference is shrunk: lines are left out as long as the two still differ.
A source that does not end is a failure, too: without a bound the test would hang."""
from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import warnings
from collections.abc import Iterator
from typing import Any, Optional

import heddle
import twin
from heddle.store import Store
from heddle.testing.lab import CLOCK
from sources import Sources
from twin import Endless

COUNT = int(os.environ.get("HEDDLE_SOURCES", "3000"))
FIRST = int(os.environ.get("HEDDLE_SEED", "0"))
BEGIN = int(os.environ.get("HD_SEED", "0")) * 1_000_000
BATCH = 40
LIMIT = float(os.environ.get("HEDDLE_LIMIT", "30"))
"""Real seconds for one run of a source; it takes milliseconds."""


@contextlib.contextmanager
def alarmed(who: str, limit: float) -> Iterator[None]:
    """Ends what never comes back to the loop, later than the loop ends what waits. It raises again and again, since a ``finally``
    of the source may drop the exception."""
    def interrupt(*_: Any) -> None:
        raise Endless(who)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, limit * 2 + 2, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def python_outcome(running: Any, calls: list[Any], limit: float) -> twin.Outcome:
    with alarmed("Python", limit):
        return twin.outcome_of_python(running, calls, limit)


async def heddle_outcome(running: Any, calls: list[Any], limit: float) -> twin.Outcome:
    with alarmed("heddle", limit):
        task = asyncio.ensure_future(twin.outcome(running, calls))
        if not (await asyncio.wait([task], timeout=limit))[0]:
            task.cancel()
            await asyncio.wait([task], timeout=limit / 2)
            raise Endless("heddle")
        return task.result()


def _is_refused_by_design(outcome: twin.Outcome) -> bool:
    """What the engine says it cannot do: it never gives another value instead."""
    return isinstance(outcome.error, heddle.Unsupported) or str(outcome.error) == "Circular reference detected" or \
        isinstance(outcome.error, OverflowError) and "64 bits" in str(outcome.error)


_REFUSED = ("a chain of comparisons with an object whose class has code for them", "a call with * or ** that is not awaited at once")
"""Reasons for which a random source may be refused. (Python evaluates the middle of such a chain once, two steps would
evaluate it twice.)"""


def _refusal(error: heddle.CompileError) -> Optional[str]:
    return None if error.reason in _REFUSED else f"refused: {error.reason}\n{error}"


async def compare(store: Any, plain: dict[str, Any], compiled: dict[str, Any], name: str, how: tuple[bool, bool], limit: float = LIMIT) -> Optional[str]:
    """None: the two cannot be told apart."""
    for names in (plain, compiled):
        names["_tries"].clear()
    try:
        expected = python_outcome(plain[name]().run(), plain["_calls"], limit)
        found = await heddle_outcome(store.run(compiled[name]), compiled["_calls"], limit)
    except Endless as error:
        return f"endless: {error}"
    if isinstance(found.error, heddle.CompileError):
        return _refusal(found.error)
    if twin.same(expected, found, *how) or _is_refused_by_design(found):
        return None
    return f"Python {expected}\nheddle {found}"


async def difference(store: Any, source: str, how: tuple[bool, bool], limit: float = LIMIT) -> Optional[str]:
    try:
        plain = twin.module_of(source, twin.PLAIN)
    except SyntaxError:
        return None
    try:
        compiled = twin.module_of(source, heddle)
    except heddle.CompileError as error:
        return _refusal(error)
    try:
        return await compare(store, plain, compiled, "Flow", how, limit)
    finally:
        twin.forget(plain)
        twin.forget(compiled)


def _kind(found: Optional[str]) -> str:
    """Of a difference: a refusal by its reason, and who does not end."""
    return "" if found is None else found.split(": ", 2)[1].split("\n")[0][-40:] if found.startswith(("refused", "endless")) else "differs"


async def shrunk(store: Any, source: str, how: tuple[bool, bool]) -> str:
    """The source without lines that the difference does not need. Without a line (of a limit, of a counter) it may not end any
    more: that is another difference, found sooner."""
    kind = _kind(await difference(store, source, how))
    lines = source.split("\n")
    size = len(lines) // 2
    while size:
        at = 3
        while at < len(lines):
            shorter = lines[:at] + lines[at + size:]
            if _kind(await difference(store, "\n".join(shorter), how, LIMIT / 15)) == kind:
                lines = shorter
            else:
                at += size
        size //= 2
    return "\n".join(lines)


async def check(seeds: range) -> list[str]:
    """What differs; ten of it are enough. In batches: one module to compile and one store for each, which ends with all that it
    has kept. Garbage is collected between batches only: looking for it among syntax trees takes a third of the time."""
    wrong: list[str] = []
    gc.disable()
    for start in range(seeds.start, seeds.stop, BATCH):
        gc.collect()
        batch = range(start, min(start + BATCH, seeds.stop))
        makers = {seed: Sources(seed) for seed in batch}
        texts = {seed: made.workflow(f"Flow{seed}") for seed, made in makers.items()}
        async with Store(clock=CLOCK) as store:
            wrong += await check_batch(store, texts, {seed: (made.is_ordered, made.is_cut) for seed, made in makers.items()})
        if len(wrong) >= 10:
            break
    gc.enable()
    return wrong


async def check_batch(store: Any, texts: dict[int, str], how: dict[int, tuple[bool, bool]]) -> list[str]:
    wrong: list[str] = []
    source = "\n".join(texts.values())
    plain = twin.module_of(source, twin.PLAIN)
    try:
        compiled = twin.module_of(source, heddle)
    except heddle.CompileError:
        compiled = {}
    for seed, text in texts.items():
        found = await compare(store, plain, compiled, f"Flow{seed}", how[seed]) if compiled else "refused"
        if found is not None and found.startswith("endless"):
            wrong.append(f"HEDDLE_SEED={seed}\n{text}\n{found}")
        elif found is not None:
            wrong += await report(store, seed, text.replace(f"Flow{seed}", "Flow"), how[seed])
    for names in (plain, compiled):
        if names:
            twin.forget(names)
    return wrong


async def report(store: Any, seed: int, source: str, how: tuple[bool, bool]) -> list[str]:
    found = await difference(store, source, how)
    if found is None:
        return []
    small = await shrunk(store, source, how)
    return [f"HEDDLE_SEED={seed}\n{small}\n{await difference(store, small, how)}"]


def test_random_workflows_do_what_python_does() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)  # of tasks that nothing waits for
        if "HEDDLE_SEED" in os.environ:
            print(Sources(FIRST).workflow("Flow"))
            wrong = asyncio.run(check(range(FIRST, FIRST + 1)))
        else:
            wrong = asyncio.run(check(range(BEGIN, BEGIN + COUNT)))
    assert not wrong, "\n\n".join(wrong)


async def _ends(source: str, limit: float = 0.2) -> dict[str, str]:
    """How both end."""
    found = {}
    async with Store(clock=CLOCK) as store:
        plain, compiled = twin.module_of(source, twin.PLAIN), twin.module_of(source, heddle)
        try:
            found["Python"] = python_outcome(plain["Flow"]().run(), plain["_calls"], limit).shown()
        except Endless as error:
            found["Python"] = str(error)
        try:
            found["heddle"] = (await heddle_outcome(store.run(compiled["Flow"]), compiled["_calls"], limit)).shown()
        except Endless as error:
            found["heddle"] = str(error)
    twin.forget(plain)
    twin.forget(compiled)
    return found


def test_a_source_that_does_not_end_is_told_and_does_not_hang_the_test() -> None:
    endless = {"Python": "Python does not end", "heddle": "heddle does not end"}
    assert asyncio.run(_ends(twin.flow("while True:\n    await echo(1)"))) == endless
    assert asyncio.run(_ends(twin.flow("await asyncio.sleep(1000)\nreturn 1"), LIMIT)) == {"Python": "returned 1", "heddle": "returned 1"}
    spun = twin.flow("while True:\n    try:\n        a = 1\n    except Exception:\n        pass")
    found = asyncio.run(_ends(spun))
    assert found["Python"] == endless["Python"]
    # A fast machine comes to the engine's own bound before the alarm.
    assert found["heddle"] == endless["heddle"] or "nodes without waiting" in found["heddle"]
