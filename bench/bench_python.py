"""The figures of the Python package: one line "name value unit bound figure peer peer_value" for each, for bench_python.c.

    PYTHONPATH=bindings/python python3 bench/bench_python.py [--quick]

CPU time is of this process; rates are of the wall clock. "-" stands for nothing."""
from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import heddle
from heddle import Workflow, action, workflow

QUICK = "--quick" in sys.argv


def report(name, value, unit, bound="-", figure=0.0, peer="-", peer_value=0.0):
    print(name, f"{value:.6g}", unit, bound, f"{figure:.6g}", peer, f"{peer_value:.6g}", flush=True)


def best(fn, repeats):
    """The least CPU time of a call, in seconds."""
    least = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        fn()
        least = min(least, time.process_time() - began)
    return least


# ---- Values


def document():
    """About 1 MB of JSON."""
    rng = random.Random(1)
    return [{"id": i, "name": f"item number {i}", "price": rng.random() * 100, "tags": ["new", "sale", f"t{i % 50}"],
             "stock": {"here": i % 7, "there": None, "open": i % 2 == 0}} for i in range(7400)]


def bench_values():
    data = document()
    text = json.dumps(data)
    repeats = 5 if QUICK else 15
    with heddle.open() as store:
        cell = store.cell("main/document")
        cell.set(data)
        dumps, loads = best(lambda: json.dumps(data), repeats), best(lambda: json.loads(text), repeats)
        other = store.cell("main/other")
        report("python/get-1mb", best(cell.get, repeats) * 1e3, "ms", "ratio_at_most", 1.0, "json.loads", loads * 1e3)
        flip = iter(range(10**6))

        def set_it():
            data[0]["id"] = next(flip)
            other.set(data)

        report("python/set-1mb", best(set_it, repeats) * 1e3, "ms", "ratio_at_most", 1.0, "json.dumps", dumps * 1e3)
        report("python/pass-on-1mb", best(lambda: other.set(cell.value()), repeats) * 1e6, "us")


# ---- A computation


def bench_computation():
    """One read, one write, a body that does nothing: beyond the call of the body itself, and of what sets the input."""
    count = 2_000 if QUICK else 10_000
    with heddle.open() as store:
        x = store.cell("main/x")
        x.set(-1.0)
        outputs = [store.cell(f"main/y{i}") for i in range(count)]

        def body():
            return x() + 1.0

        for i, output in enumerate(outputs):
            store.computed(output, name=f"c{i}")(body)
        for output in outputs:
            output.sink(_nothing)
        store.settle()
        numbers = iter(range(10**9))

        def round_trip():
            x.set(float(next(numbers)))
            store.settle()

        whole = best(round_trip, 5) / count
        sinks = _sink_cost(store, count)

        def bare():
            for _ in range(count):
                body()

        call = best(bare, 5) / count
        report("python/computation", (whole - sinks - call) * 1e6, "us", "at_most", 2.5, "the_call", call * 1e6)


def _nothing(value):
    return None


def _sink_cost(store, count):
    """What a sink takes by itself: it is what makes a computation live."""
    z = store.cell("main/z")
    z.set(0.0)
    for _ in range(count):
        z.sink(_nothing)
    store.settle()
    numbers = iter(range(10**9))

    def round_trip():
        z.set(float(next(numbers)))
        store.settle()

    return best(round_trip, 5) / count


# ---- Workflows


@action
async def act(x: int) -> int:
    return x + 1


@action
async def compute(x: int) -> int:
    """About 200 us of CPU time."""
    for _ in range(8_000):
        x ^= 1
    return x + 1


@workflow
class TenComputed(Workflow):
    async def run(self, x: int) -> int:
        for _ in range(10):
            x = await compute(x)
        return x


@workflow
class Ten(Workflow):
    async def run(self, x: int) -> int:
        x = await act(x)
        x = await act(x)
        x = await act(x)
        x = await act(x)
        x = await act(x)
        x = await act(x)
        x = await act(x)
        x = await act(x)
        x = await act(x)
        x = await act(x)
        return x


async def run_many(store, count, at_once, flow=Ten):
    left = iter(range(count))

    async def one():
        for i in left:
            assert await store.run(flow, i) == i + 10

    await asyncio.gather(*(one() for _ in range(at_once)))


async def rate(file, count, at_once):
    async with heddle.open(file) as store:
        await run_many(store, at_once, at_once)
        wall, cpu = time.perf_counter(), time.process_time()
        await run_many(store, count, at_once)
        return count / (time.perf_counter() - wall), (time.process_time() - cpu) / count / 10


async def bare_asyncio(count):
    """What asyncio takes for the same: a task for each step."""
    loop = asyncio.get_running_loop()
    began = time.process_time()
    for i in range(count):
        await loop.create_task(act.function(i))
    return (time.process_time() - began) / count


def ten_commits(file):
    """How often the disk could do it: eleven commits of SQLite one after the other, for the start and each step."""
    import sqlite3

    count = 20 if QUICK else 100
    base = sqlite3.connect(file, isolation_level=None)
    base.execute("pragma journal_mode = wal")
    base.execute("pragma synchronous = full")
    base.execute("create table t (x)")
    began = time.perf_counter()
    for i in range(count * 11):
        base.execute("insert into t values (?)", (i,))
    took = time.perf_counter() - began
    base.close()
    return count / took


def bench_workflows(folder):
    """A disk is faster at one time than at another: each is measured three times, in turns, and the median counts."""
    def rate_of(turn, at_once):
        count = max(at_once * 2, 50 if QUICK else 400)
        return asyncio.run(rate(os.path.join(folder, f"{at_once}-{turn}.db"), count, at_once))[0]

    turns = [(ten_commits(os.path.join(folder, f"bare-{turn}.db")), *(rate_of(turn, at_once) for at_once in (1, 32, 256)))
             for turn in range(3)]
    ceiling, *rates = (statistics.median(of) for of in zip(*turns))
    report("python/eleven-commits-of-sqlite", ceiling, "workflows/s")
    for at_once, must, per_s in ((1, 250, rates[0]), (32, 2000, rates[1]), (256, 3000, rates[2])):
        report(f"python/workflows-{at_once}-in-flight", per_s, "workflows/s", "at_least", must)
        report(f"python/workflows-{at_once}-of-bare-commits", per_s / ceiling, "times")
    _, cpu = asyncio.run(rate(None, 200 if QUICK else 1000, 32))
    tasks = asyncio.run(bare_asyncio(20_000))
    report("python/cpu-per-step", cpu * 1e6, "us", "at_most", 25, "asyncio", tasks * 1e6)
    report("python/cpu-per-step-beyond-asyncio", (cpu - tasks) * 1e6, "us", "at_most", 10)


# ---- Workers


WORKER = """
import asyncio, sys
sys.path.insert(0, {bench!r})
import bench_python
from heddle.worker import Connection
async def main():
    await Connection({socket!r}, {{"act": bench_python.act, "compute": bench_python.compute}}, "bench", 512).serve()
asyncio.run(main())
"""


def cpu_of(pid):
    """Seconds of CPU that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def worker_rate(file, processes, steps, flow=Ten):
    opened = heddle.open(file)
    opened._runs_workflows = False  # else it would do the actions itself, as any program that opens a store
    async with opened as store:
        flows = store._flows_(serves=False)
        program = WORKER.format(bench=os.path.dirname(os.path.abspath(__file__)), socket=flows.listen())
        workers = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(processes)]
        try:
            await run_many(store, 256, 256, flow)
            began, own, theirs = time.perf_counter(), time.process_time(), sum(cpu_of(worker.pid) for worker in workers)
            await run_many(store, steps // 10, 512, flow)
            own, theirs = time.process_time() - own, sum(cpu_of(worker.pid) for worker in workers) - theirs
            return steps / (time.perf_counter() - began), own / steps, theirs / steps
        finally:
            for worker in workers:
                worker.terminate()
                worker.wait()


def bench_workers(folder):
    steps = 20_000 if QUICK else 60_000
    one, engine, worker = asyncio.run(worker_rate(os.path.join(folder, "w1.db"), 1, steps))
    report("python/worker", one, "actions/s", "at_least", 8000)
    report("python/worker-cpu", worker * 1e6, "us")
    report("python/worker-cpu-of-the-engine", engine * 1e6, "us")
    two, _, _ = asyncio.run(worker_rate(os.path.join(folder, "w2.db"), 2, steps))
    report("python/two-workers", two, "actions/s")
    # Two workers and the engine share two cores: README.md of this folder says how much more than one they can do.
    steps //= 3
    one, _, _ = asyncio.run(worker_rate(os.path.join(folder, "c1.db"), 1, steps, TenComputed))
    two, _, _ = asyncio.run(worker_rate(os.path.join(folder, "c2.db"), 2, steps, TenComputed))
    report("python/worker-200us-actions", one, "actions/s")
    report("python/two-workers-200us-actions", two, "actions/s", "at_least", 1.6 * one)


# ---- Starting


def import_ms(name):
    """The least CPU time that the import takes."""
    program = f"import time; a = time.process_time(); import {name}; print(time.process_time() - a)"
    runs = (subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True) for _ in range(15))
    return min(float(run.stdout) for run in runs) * 1e3


def bench_import():
    report("python/import", import_ms("heddle"), "ms", "at_most", 30)
    report("python/import-extension", extension_ms(), "ms", "at_most", 5)


def extension_ms():
    """The extension alone, without the package around it."""
    from importlib.util import find_spec

    path = find_spec("heddle._heddle").origin
    program = f"""
import importlib.machinery, importlib.util, time
a = time.process_time()
spec = importlib.util.spec_from_file_location("_heddle", {path!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(time.process_time() - a)"""
    runs = (subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True) for _ in range(15))
    return min(float(run.stdout) for run in runs) * 1e3


def statements(count):
    lines = ["from heddle import Workflow, action, workflow", "@action", "async def act(x: int) -> int:", "    return x",
             "class Big(Workflow):", "    async def run(self, x: int) -> int:"]
    for i in range(count // 4):
        lines += [f"        y{i} = x * {i} + 1", f"        if y{i} > 10:", f"            x = await act(y{i})", f"        x += {i}"]
    return "\n".join([*lines, "        return x", ""])


def bench_compile(folder):
    import importlib.util

    path = os.path.join(folder, "big.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(statements(200))
    spec = importlib.util.spec_from_file_location("big", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    report("python/compile-200-statements", best(lambda: workflow(module.Big), 5 if QUICK else 10) * 1e3, "ms", "at_most", 20)


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("HD_BENCH_DIR")) as folder:
        bench_values()
        bench_computation()
        bench_workflows(folder)
        bench_workers(folder)
        bench_import()
        bench_compile(folder)


if __name__ == "__main__":
    main()
