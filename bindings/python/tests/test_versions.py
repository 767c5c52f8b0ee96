"""A new version of a program's module, while instances of the old one are open in a file."""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

HEAD = """
import dataclasses
import enum
from typing import NamedTuple

import heddle
from heddle import Workflow, action, workflow

file = "shop.db"

@dataclasses.dataclass
class Priced:
    price: int
    class Inner(NamedTuple):
        n: int
    def __post_init__(self):
        self.price *= 2

class Level(enum.Enum):
    LOW = 1
    HIGH = 2

@action
async def show(x) -> str:
    return repr(x)
"""

FIRST = """
import asyncio, heddle, shop
async def main():
    async with heddle.open(shop.file) as store:
        await store.options(key="k").start(shop.Flow)
        {more}
        while (await store.handle("Flow/k").state())["steps"][0].get("signal") != "go":
            await asyncio.sleep(0.01)
asyncio.run(main())
"""

SECOND = """
import asyncio, json, heddle, shop
async def main():
    async with heddle.open(shop.file, worker={worker}) as store:
        {more}
        handle = store.handle("Flow/k")
        await handle.signal("go")
        print(json.dumps(await asyncio.wait_for(handle.result(), 30)))
asyncio.run(main())
"""


def run(folder: pathlib.Path, module: str, script: str) -> str:
    (folder / "shop.py").write_text(HEAD + module)
    (folder / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "-B", "script.py"], cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def second_result(folder: pathlib.Path, old: str, new: str, more: str = "pass", worker: bool = True) -> Any:
    """What an instance that waits in the old version gives to the new program."""
    run(folder, old, FIRST.format(more="pass"))
    return json.loads(run(folder, new, SECOND.format(more=more, worker=worker)))


KEPT = """
@workflow
class Flow(Workflow):
    async def run(self):
        level = 2
        await heddle.signal("go")
        return await show(1), Priced(3).price, Level(level).name
"""

GONE = """
@workflow
class Flow(Workflow):
    async def run(self):
        await heddle.signal("go")
        return 5
"""


@pytest.mark.parametrize("more", ["pass", "store.register(shop.Flow)"])
def test_a_program_does_what_only_the_old_version_asks_for(tmp_path, more):
    assert second_result(tmp_path, KEPT, GONE, more) == ["1", 6, "HIGH"]


def test_a_worker_does_what_only_the_old_version_asks_for(tmp_path):
    run(tmp_path, KEPT, FIRST.format(more="pass"))
    (tmp_path / "shop.py").write_text(HEAD + GONE)
    worker = subprocess.Popen([sys.executable, "-B", "-m", "heddle.worker", "shop:file"], cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        assert worker.stdout is not None and worker.stdout.readline()
        assert json.loads(run(tmp_path, GONE, SECOND.format(more="pass", worker=False))) == ["1", 6, "HIGH"]
    finally:
        worker.terminate()
        worker.communicate()


OTHER = """
@action
async def show(x) -> str:
    return "of another module"
"""


def test_an_action_that_two_modules_define_is_done_by_neither(tmp_path):
    run(tmp_path, KEPT, FIRST.format(more="pass"))
    (tmp_path / "other.py").write_text("from heddle import action\n" + OTHER)
    asks = ("import asyncio, heddle, shop, other\nasync def main():\n    async with heddle.open(shop.file) as store:\n"
            "        handle = store.handle('Flow/k')\n        await handle.signal('go')\n"
            "        print((await handle.state())['steps'][0]['state'])\nasyncio.run(main())\n")
    assert run(tmp_path, GONE, asks) == "no worker\n"


PARENT = """
@workflow
class Child(Workflow):
    async def run(self):
        return "child of {version}"

@workflow
class Tick(Workflow):
    async def run(self):
        return "tick of {version}"

@workflow
class Flow(Workflow):
    async def run(self):
        await heddle.signal("go")
        return await Child().run()
"""


def test_children_and_schedules_begin_with_the_version_that_was_imported(tmp_path):
    run(tmp_path, PARENT.format(version=1), FIRST.format(more="await store.schedule('s', every=0.1).start(shop.Tick)"))
    until = ("\n        for _ in range(500):\n            await asyncio.sleep(0.02)\n"
             "            done = [await store.handle(id).result() for id, state in store.instances(shop.Tick, status='done')]\n"
             "            if 'tick of 2' in done:\n                break\n        else:\n            raise SystemExit(str(done))")
    new = run(tmp_path, PARENT.format(version=2), SECOND.format(more=until.strip(), worker=True))
    assert json.loads(new) == "child of 2"


FIELDS = """
@dataclasses.dataclass
class Line:
    sku: str
    {line}

class Move(NamedTuple):
    {move}

@workflow
class Flow(Workflow):
    async def run(self):
        move = Move(source=1, target=5)
        await heddle.signal("go")
        {more}
        seen = await show(Line("s")), await show(move)
        return repr(Line("s")), move.source, repr(move), *seen
"""


@pytest.mark.parametrize("more", ["pass", "store.register(shop.Flow)"])
@pytest.mark.parametrize("line, seen", [
    ("pass", "Line(sku='s')"), ("gone: int = 8", "Line(sku='s', gone=7)"),
    ("gone: int = 7; extra: list = dataclasses.field(default_factory=list)", "Line(sku='s', gone=7, extra=[])")])
def test_objects_have_the_fields_of_the_instance_s_version(tmp_path, more, line, seen):
    """And in an action those of the class that the process has."""
    old = FIELDS.format(line="gone: int = 7", move="source: int; target: int", more="pass")
    new = FIELDS.format(line=line, move="target: int; source: int; by: str = ''", more="await show(2)")
    assert second_result(tmp_path, old, new, more) == [
        "Line(sku='s', gone=7)", 1, "Move(source=1, target=5)", seen, "Move(target=1, source=5, by='')"]
