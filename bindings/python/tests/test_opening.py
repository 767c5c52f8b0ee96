"""A program that only opens the store runs its workflows and schedules, if it has workflows; else it pays nothing."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

import heddle

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(heddle.__file__)))

WORKFLOWS = """
import asyncio, sys
import heddle
from heddle import Workflow, action, workflow

path = sys.argv[1]
ended = []

@action
async def tick(x: int) -> int:
    ended.append(x)
    if len(ended) == 2:
        print("ticked", *ended, flush=True)
        store.post(stop)
    return x

@workflow
class Tick(Workflow):
    async def run(self, x: int) -> int:
        await tick(x)
        return await tick(x + 1)

@workflow
class Often(Workflow):
    async def run(self) -> None:
        await tick(7)
"""

STARTS = WORKFLOWS + """
async def main() -> None:
    async with heddle.open(path, worker=False) as store:
        await store.start(Tick, 1)
asyncio.run(main())
"""

SCHEDULES = WORKFLOWS + """
async def main() -> None:
    async with heddle.open(path, worker=False) as store:
        await store.schedule("often", every=0.05).start(Often)
asyncio.run(main())
"""

OPENS = WORKFLOWS + """
async def main() -> None:
    global store, stop
    over = asyncio.Event()
    stop = over.set
    async with heddle.open(path) as store:
        await asyncio.wait_for(over.wait(), 60)
asyncio.run(main())
"""

SERVES = WORKFLOWS + """
store = heddle.open(path)
stop = store.stop
store.run_forever()
store.close()
"""

LOOKS = WORKFLOWS + """
async def main() -> None:
    for file, options in (path, {"worker": False}), (path, {"read_only": True}), (None, {}):
        async with heddle.open(file, **options) as store:
            print(store._own._flows)
asyncio.run(main())
"""

REACTS = """
import asyncio, sys
import heddle

async def main() -> None:
    async with heddle.open(sys.argv[1]) as store:
        await store.transact_async(lambda: store.cell("main/x").set(1))
        print(store._own._flows, "heddle.flows" in sys.modules and "heddle.workflows" in sys.modules)
asyncio.run(main())
"""


def program(text, path, folder):
    """What it prints. It is a file, because the source of a workflow is read."""
    name = folder / "program.py"
    name.write_text(text, encoding="utf-8")
    return subprocess.run([sys.executable, str(name), path], check=True, timeout=100, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=PACKAGE)).stdout


@pytest.mark.parametrize("opens", [OPENS, SERVES], ids=["async with", "run_forever"])
def test_a_program_that_only_opens_the_store_runs_its_instances(path, tmp_path, opens):
    program(STARTS, path, tmp_path)
    assert program(opens, path, tmp_path) == "ticked 1 2\n"


@pytest.mark.parametrize("opens", [OPENS, SERVES], ids=["async with", "run_forever"])
def test_a_program_that_only_opens_the_store_runs_its_schedules(path, tmp_path, opens):
    program(SCHEDULES, path, tmp_path)
    assert program(opens, path, tmp_path) == "ticked 7 7\n"


def test_observers_readers_and_stores_in_memory_get_no_engine_when_they_are_opened(path, tmp_path):
    program(STARTS, path, tmp_path)
    assert program(LOOKS, path, tmp_path) == "None\n" * 3


def test_a_program_without_workflows_gets_no_engine(path, tmp_path):
    assert program(REACTS, path, tmp_path) == "None False\n"


OLD_AND_NEW = """
import asyncio, os, sys
from decimal import Decimal
import heddle
from heddle import Workflow, workflow

@workflow
class Pay(Workflow):
    async def run(self, amount: Decimal) -> Decimal:
        await heddle.signal("go")
        return OPERATION

async def main() -> None:
    async with heddle.open(sys.argv[1]) as store:
        if sys.argv[2] == "start":
            await store.options(key="1").start(Pay, Decimal("1.50"))
        else:
            await store.handle("Pay/1").signal("go")
            print(await asyncio.wait_for(store.handle("Pay/1").result(), 60))

asyncio.run(main())
"""


def test_new_code_does_the_operations_of_instances_of_the_old(tmp_path):
    """The new version multiplies and makes no Decimal; the instance that the old one left does."""
    outputs = []
    for operation, word in ("Decimal(f'{amount * 2}')", "start"), ("amount + 2", "go"):
        program = tmp_path / "pay.py"
        program.write_text(OLD_AND_NEW.replace("OPERATION", operation))
        outputs.append(subprocess.run([sys.executable, str(program), str(tmp_path / "pay.db"), word], capture_output=True,
                                      text=True, timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}))
    assert [output.stderr for output in outputs] == ["", ""]
    assert outputs[1].stdout == "3.00\n"
