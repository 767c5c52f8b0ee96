"""kill -9 of a whole program, again and again: every instance ends once, with the right result."""
from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys
import time

import heddle
from conftest import SEED

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
os.environ["PYTHONPATH"] = os.path.dirname(os.path.dirname(os.path.abspath(heddle.__file__)))
COUNT = int(os.environ.get("HD_KILL_INSTANCES", "1000"))
KILLS = int(os.environ.get("HD_KILLS", "50"))


def start(path):
    return subprocess.Popen([sys.executable, os.path.join(PROGRAMS, "shop.py"), path, str(COUNT)], stdout=subprocess.PIPE,
                            text=True)


def size(path):
    try:
        return os.path.getsize(path + ".log")
    except OSError:
        return 0


def kill_after_progress(path, rng):
    """Kills when so many more actions have run; False: it had ended before."""
    process = start(path)
    goal = size(path) + rng.randrange(1, 2 * 3 * 18 * COUNT // KILLS)
    try:
        while size(path) < goal and process.poll() is None:
            time.sleep(0.002)
        if process.poll() is not None:
            return False
        process.send_signal(signal.SIGKILL)
        return True
    finally:
        process.wait()
        process.stdout.close()


def test_instances_survive_any_number_of_kills(path):
    print(f"HD_SEED={SEED}")
    rng = random.Random(SEED)
    kills = sum(kill_after_progress(path, rng) for _ in range(KILLS))
    process = start(path)
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 0 and float(output) == sum(i + 1.0 for i in range(COUNT))
    with open(path + ".log", encoding="utf-8") as file:
        begun = collections.Counter(line.rsplit(" ", 1)[0] for line in file)
    assert all(begun[f"charge {i}"] >= 1 and begun[f"ship {i}"] >= 2 for i in range(COUNT))
    again = sum(begun.values()) - 3 * COUNT
    with heddle.open(path, worker=False) as store:
        rows = store.instances("Checkout")
        assert len(rows) == COUNT and {status for _, status in rows} == {"done"}
        for i in range(COUNT):
            assert store.cell(f"main/workflow/Checkout/{i}#/result")() == i + 1.0
    print(f"{kills} kills, {again} actions were begun again")
    assert kills >= min(KILLS, 10)


SAYS = """
import asyncio, os, sys
import heddle
from heddle import Workflow, workflow

@workflow
class Waits(Workflow):
    async def run(self) -> str:
        return str(await heddle.signal("go"))

async def main() -> None:
    async with heddle.open(sys.argv[1]) as store:
        if sys.argv[2] == "start":
            await store.options(key="k").start(Waits)
        elif sys.argv[2] == "queue":
            await store.queue("gpu").set(most=3)
        elif sys.argv[2] == "schedule":
            await store.schedule("nightly", cron="30 2 * * *").start(Waits)
        else:
            handle = store.handle("Waits/k")
            await (handle.signal("go", 7) if sys.argv[2] == "signal" else getattr(handle, sys.argv[2])())
        os.kill(os.getpid(), 9)

asyncio.run(main())
"""


def test_what_was_awaited_is_on_disk(path, tmp_path):
    """A program that is killed right behind the await."""
    program = tmp_path / "says.py"
    program.write_text(SAYS)

    def say(what):
        killed = subprocess.run([sys.executable, str(program), path, what], capture_output=True, text=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr

    def status():
        with heddle.open(path, worker=False) as store:
            return dict(store.instances("Waits"))["Waits/k"]

    say("start")
    assert status() == "running"
    say("pause")
    assert status() == "paused"
    say("resume")
    assert status() == "running"
    say("signal")
    assert status() == "done"
    say("queue")
    say("schedule")
    with heddle.open(path, worker=False) as store:
        assert store.schedules() == ["nightly"]
    say("remove")
    with heddle.open(path, worker=False) as store:
        assert store.instances("Waits") == []
