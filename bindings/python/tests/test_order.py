"""Tasks begin, fail and are cancelled in CPython's order: each body runs on the engine and as Python, with the same calls."""
from __future__ import annotations

import asyncio
import logging
import warnings

import pytest

import twin
from heddle.store import Store
from heddle.testing.lab import CLOCK

METHODS = """
async def h(self, x): return await echo(x)
async def hh(self, x):
    await self.h(x)
    return await self.h(x + 100)
async def g(self, x): return await asyncio.gather(self.h(x), echo(x + 1))
async def t(self, x):
    async with asyncio.timeout(1000):
        y = await echo(x)
        return y + await echo(x)
async def t1(self, x):
    async with asyncio.timeout(1000):
        return await echo(x)
async def w(self, x): return await asyncio.wait_for(echo(x), 1000)
async def c(self, x):
    t = asyncio.create_task(self.h(x))
    y = await echo(x + 1)
    return y + await t
async def c2(self, x):
    t = asyncio.create_task(self.h(x))
    u = asyncio.create_task(self.h(x + 50))
    y = await echo(x + 1)
    z = await t
    u = await u
    return y + z + u
async def s(self, x): return x
async def bad(self, x): raise ValueError(x)
async def bad2(self, x):
    await echo(x)
    raise ValueError(x)
async def clean(self, x):
    try: return await echo(x)
    finally: await echo(-x)
async def clean2(self, x):
    try:
        await echo(x)
        await asyncio.sleep(50)
    finally:
        await echo(-x)
        await echo(-x - 100)
async def cerr(self, x):
    try:
        await echo(x)
        await asyncio.sleep(50)
    except asyncio.CancelledError: raise ValueError(x)
async def tg(self, x):
    async with asyncio.TaskGroup() as tg:
        tg.create_task(self.h(x)); tg.create_task(echo(x + 1))
    return x
async def tgc(self, x):
    async with asyncio.TaskGroup() as tg:
        tg.create_task(self.cerr(x)); tg.create_task(echo(x + 1))
    return x

async def w2(self): return await asyncio.wait_for(self.cerr(1), 50)
"""

BODIES = [
    """
return await asyncio.gather(self.h(1), echo(2))
""",
    """
return await asyncio.gather(*[echo(1)], echo(2))
""",
    """
return await asyncio.gather(self.g(1), self.hh(3), echo(4))
""",
    """
return await asyncio.gather(self.c(1), echo(4), self.c2(20), self.h(9))
""",
    """
return await asyncio.gather(*[self.hh(i) for i in range(3)], echo(4), *[self.h(i) for i in (9, 8)])
""",
    """
async with asyncio.TaskGroup() as tg:
    tg.create_task(self.tg(1)); tg.create_task(self.c(7)); tg.create_task(echo(12)); tg.create_task(self.t(20))
return 3
""",
    """
try:
    async with asyncio.TaskGroup() as tg:
        tg.create_task(self.h(1)); tg.create_task(fail())
except ExceptionGroup as e: return [repr(x) for x in e.exceptions]
""",
    """
try:
    async with asyncio.TaskGroup() as tg:
        tg.create_task(fail()); tg.create_task(self.h(1)); tg.create_task(self.clean(7))
except ExceptionGroup as e: return [repr(x) for x in e.exceptions]
""",
    """
try: return await asyncio.wait_for(asyncio.gather(self.clean2(1), self.clean2(2)), 0.05)
except TimeoutError: return await echo(3)
""",
    """
try:
    async with asyncio.timeout(0.05):
        await asyncio.gather(self.cerr(1), self.cerr(2))
except ValueError as e: return await echo(str(e))
""",
    """
try:
    async with asyncio.timeout(0.05):
        await asyncio.gather(self.clean2(1), self.cerr(2))
except (ValueError, TimeoutError) as e: return await echo(repr(e))
""",
    """
try:
    async with asyncio.timeout(0.05):
        await self.tgc(1)
except ExceptionGroup as e: return await echo(repr(e))
""",
    """
try:
    async with asyncio.TaskGroup() as tg:
        tg.create_task(self.tgc(1)); tg.create_task(self.bad2(9))
except ExceptionGroup as e: return await echo(repr(e))
""",
    """
x = 1
try:
    async with asyncio.timeout(0.1):
        x = 2
        async with asyncio.timeout(5):
            x = 3
            await self.cerr(4)
except ValueError as e: return await echo(repr(e) + str(x))
""",
    """
try: return await asyncio.wait_for(self.w2(), 0.05)
except BaseException as e: return repr(e)
""",
    """
t = asyncio.create_task(self.h(1))
u = asyncio.create_task(echo(2))
await echo(0)
t = await t
u = await u
return t, u
""",
    """
return await asyncio.gather(asyncio.gather(echo(1), self.h(2)), echo(3), asyncio.gather(*[self.h(i) for i in (4, 5)]), asyncio.gather(self.h(6), *[echo(7)], asyncio.gather(echo(8))), self.h(9))
""",
    """
return await asyncio.gather(*[echo(0)], asyncio.gather(echo(1), self.h(2)), echo(3), asyncio.gather(), asyncio.gather(self.s(4)), self.h(9))
""",
    """
return await asyncio.gather(self.s(1), self.h(2), self.s(3), echo(4), self.g(5))
""",
    """
return await asyncio.gather(self.t(1), self.t1(3), echo(4), self.h(9))
""",
    """
x = [self.h(1), echo(2)]
try:
    return await asyncio.gather(asyncio.gather(*x, self.h(3)), self.h(4), *[echo(5)])
finally:
    await echo(6)
""",
]


@pytest.mark.parametrize("body", BODIES)
def test_calls_are_those_of_cpython_in_its_order(body: str) -> None:
    async def main() -> None:
        source = twin.flow(body, METHODS)
        async with Store(clock=CLOCK) as store:
            found = await twin.run_compiled(store, source)
        expected = await twin.run_plain(source)
        assert repr(found) == repr(expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)  # of tasks that nothing waits for
        asyncio.run(main())
