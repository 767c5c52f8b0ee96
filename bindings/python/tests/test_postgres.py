"""A store on a PostgreSQL server: tools/with-postgres names one in HD_POSTGRES, and so does tools/suite."""
from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import uuid

import pytest

import heddle
from heddle import Workflow, action, workflow

SERVER = os.environ.get("HD_POSTGRES")
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(heddle.__file__)))
pytestmark = pytest.mark.skipif(not SERVER, reason="there is no server")


@pytest.fixture
def address():
    return f"{SERVER}{'&' if '?' in SERVER else '?'}schema=p{uuid.uuid4().hex[:12]}"


def psql(*arguments):
    """What it prints. Without a sanitizer's library, with which it may hang when it exits."""
    return subprocess.run(["psql", "-X", "-d", SERVER, *arguments], check=True, timeout=60, capture_output=True, text=True,
                          env={**os.environ, "LD_PRELOAD": ""}).stdout


def test_no_password_is_shown(address):
    for url in (address + "&password=s3cret", address.replace("postgresql://postgres@", "postgresql://postgres:s3cret@", 1)):
        assert "s3cret" in url
        with heddle.open(url, worker=False) as store:
            assert "s3cret" not in f"{store!r} {store} {store.space('north')!r} {store.cell('main/x')!r}"
            assert repr(store).startswith("<store postgresql://")
        assert "s3cret" not in repr(store)


def test_other_threads_run_while_the_server_is_silent(address):
    name, gaps, over = f"silent{uuid.uuid4().hex[:8]}", [], threading.Event()

    def run():
        while not over.is_set():
            began = time.monotonic()
            time.sleep(0.01)
            gaps.append(time.monotonic() - began)

    with heddle.open(f"{address}&answer_timeout=2&application_name={name}", worker=False) as store:
        pids = psql("-At", "-c", f"select pid from pg_stat_activity where application_name = '{name}'").split()
        other = threading.Thread(target=run)
        other.start()
        for pid in pids:
            os.kill(int(pid), signal.SIGSTOP)
        try:
            with pytest.raises(heddle.TransientError, match="does not answer"):
                store.cell("main/x")()
        finally:
            for pid in pids:
                os.kill(int(pid), signal.SIGCONT)
            over.set()
            other.join()
    assert len(pids) == 2 and max(gaps) < 1


def test_nothing_is_said_of_a_socket_that_a_server_has_no_place_for(address, caplog):
    with caplog.at_level("INFO", "heddle"), heddle.open(address) as store:
        asyncio.run(store.run(Sums, 4))
    assert not [line for line in caplog.messages if "socket" in line]


@action
async def double(x: int) -> int:
    return x * 2


@action
def add(x: int) -> int:
    return x + 1


@workflow
class Sums(Workflow):
    async def run(self, x: int) -> int:
        x = await double(x)
        x = await add(x)
        return (await asyncio.gather(double(x), add(x)))[0]


def refused(address):
    with pytest.raises(heddle.Error) as raised:
        heddle.open(address)
    return raised.value


def test_a_server_that_does_not_let_us_in_is_not_worth_another_try(address):
    from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

    parts = urlsplit(address)
    user = {**dict(parse_qsl(parts.query)), "user": "stranger"}
    for wrong, words in ((urlunsplit(parts._replace(path="/nowhere")), 'database "nowhere" does not exist'),
                         (urlunsplit(parts._replace(query=urlencode(user))), '"stranger"')):
        error = refused(wrong)
        assert isinstance(error, heddle.FailedError) and error.status == "HD_REJECTED"
        assert words in str(error)
        assert not any(inner in str(error) for inner in (".c:", "28000", "3D000"))  # of the server's code
    assert isinstance(refused("postgresql://127.0.0.1:1/heddle"), heddle.TransientError)


def test_an_address_that_is_wrong_is_a_usage_error():
    for wrong in ("postgresql://u:s3cr3t@h:notaport/d", "postgresql://u:s3cr3t@h/d?nonsense=1",
                  "postgresql://u:s3cr3t%zz@h/d", "postgresql://h/d?sslmode=nonsense"):
        error = refused(wrong)
        assert isinstance(error, heddle.UsageError) and error.status == "HD_USAGE"
        assert "s3cr3t" not in str(error)


def test_cells_and_computations(address):
    with heddle.open(address) as store:
        price, total = store.cell("main/price"), store.cell("main/total")
        shown = []

        @store.computed(total)
        def compute():
            return price() * 2

        total.sink(shown.append)
        price.set(4)
        store.settle()
        store.sync()
        assert shown[-1] == 8
    with heddle.open(address) as store:
        assert store.cell("main/total")() == 8


def test_two_programs_count_together(address):
    with heddle.open(address) as one, heddle.open(address) as two:
        def more(store):
            cell = store.cell("main/n")
            return lambda: cell.set((cell() or 0) + 1)

        for _ in range(5):
            one.transact(more(one))
            two.transact(more(two))
        one.sync()
        assert two.transact(lambda: two.cell("main/n")()) == 10


def test_workflows_go_on_in_the_next_program(address):
    async def begin():
        async with heddle.open(address, worker=False) as store:
            store.register(Sums)
            return (await store.options(key="k").start(Sums, 3)).id

    async def end(id):
        async with heddle.open(address) as store:
            result = await asyncio.wait_for(store.handle(id).result(), 60)
            return result, await asyncio.gather(*(store.run(Sums, i) for i in range(10)))

    assert asyncio.run(end(asyncio.run(begin()))) == (14, [2 * (2 * i + 1) for i in range(10)])


PROGRAM = """
import asyncio, sys
import heddle

async def main():
    async with heddle.open(sys.argv[1], worker=False) as store:
        store.cell("main/word").set("hello")
        await store.stored()

asyncio.run(main())
"""


def test_another_process_is_heard_of(address):
    async def main():
        async with heddle.open(address) as store:
            word = store.cell("main/word")
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, address,
                                                           env=dict(os.environ, PYTHONPATH=PACKAGE))
            async for value in word:
                if value == "hello":
                    break
            return await process.wait()

    assert asyncio.run(asyncio.wait_for(main(), 60)) == 0


def test_events_are_handled_once(address):
    with heddle.open(address) as store:
        seen = store.cell("main/seen")
        seen.set([])

        @store.on("main/orders", reads=[seen])
        def order(event):
            seen.append(event.payload)

        for _ in range(2):
            store.send("main/orders", "tea", id="order-1")
        store.settle()
        store.sync()
        assert seen() == ["tea"]


WORKER = """
from heddle import Workflow, action, workflow
import os
store = os.environ["SHOP"]

@action
async def where(x: int) -> int:
    return os.getpid()

@workflow
class Where(Workflow):
    async def run(self, x: int) -> int:
        return await where(x)
"""


def test_worker_processes_serve_a_store_on_a_server(address, tmp_path):
    (tmp_path / "shop.py").write_text(WORKER)
    sys.path.insert(0, str(tmp_path))
    folder = tmp_path / "tmp"
    folder.mkdir()
    environment = dict(os.environ, SHOP=address, PYTHONPATH=PACKAGE, TMPDIR=str(folder))
    os.environ["SHOP"] = address
    import shop

    async def use():
        async with heddle.open(address, worker=False) as store:
            return await asyncio.wait_for(store.run(shop.Where, 1), 60)

    process = subprocess.Popen([sys.executable, "-m", "heddle", "worker", "shop:store", "--processes", "2"], cwd=tmp_path,
                               env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert "2 processes at" in process.stdout.readline()
        pid = asyncio.run(use())
        assert pid not in (os.getpid(), process.pid)
        assert list(folder.iterdir())                     # where its processes meet
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
        sys.path.remove(str(tmp_path))
        del sys.modules["shop"]
    assert not list(folder.iterdir())


WRITER = """
import sys, heddle
store = heddle.open(sys.argv[1])
store.cell("main/n").set(1)
store.sync()
print("ready", flush=True)
sys.stdin.readline()
store.cell("main/n").set(2)
store.sync()
"""


def test_a_program_that_waits_for_a_dropped_database_says_why(address):
    """The line comes from a thread of the library, while sync waits and no Python code runs."""
    from urllib.parse import urlsplit, urlunsplit

    def sql(text):
        psql("-q", "-c", text)

    name = f"d{uuid.uuid4().hex[:12]}"
    sql(f"create database {name}")
    url = urlunsplit(urlsplit(address)._replace(path="/" + name))
    process = subprocess.Popen([sys.executable, "-c", WRITER, url], env={**os.environ, "PYTHONPATH": PACKAGE},
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch = threading.Timer(60, process.kill)
    watch.start()
    try:
        assert process.stdout.readline() == "ready\n"
        sql(f"drop database {name} with (force)")
        process.stdin.write("\n")
        process.stdin.flush()
        said = ""
        while f'database "{name}" does not exist' not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        assert process.poll() is None, "it waits for the database"
    finally:
        watch.cancel()
        process.kill()
        process.communicate()
