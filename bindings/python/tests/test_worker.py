"""heddle-worker: processes that do the actions of a store."""
from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import heddle

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
os.environ["PYTHONPATH"] = os.path.dirname(os.path.dirname(os.path.abspath(heddle.__file__)))
sys.path.insert(0, PROGRAMS)


@contextlib.contextmanager
def workers(path, *options):
    """heddle-worker on the shop at this path; stopped in order at the end."""
    environment = dict(os.environ, SHOP_FILE=path)
    process = subprocess.Popen([sys.executable, "-m", "heddle", "worker", "shop:store", *options], cwd=PROGRAMS, env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert re.search("process(es)? at ", process.stdout.readline()), process.stderr.read()
        yield process
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=30)
        process.errors = errors


def log(path):
    with open(path + ".log", encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def watch(path, use):
    """Starts and watches, while the workers do the work."""

    async def main():
        async with heddle.open(path, worker=False) as store:
            return await use(store)

    return asyncio.run(asyncio.wait_for(main(), 60))


@pytest.fixture
def shop():
    import shop

    return shop


def test_processes_share_the_work(path, shop):
    with workers(path, "--processes", "2", "--room", "4") as process:
        async def use(store):
            pids = set()
            while len(pids) < 2:  # the second process may be late
                pids |= set(await asyncio.gather(*(store.run(shop.Waits, 0.02) for _ in range(8))))
            results = await asyncio.gather(*(store.run(shop.Checkout, shop.Order(i, float(i))) for i in range(40)))
            return results, {str(pid) for pid in pids}

        results, pids = watch(path, use)
        assert results == [i + 1.0 for i in range(40)]
        assert len(pids) == 2 and str(process.pid) not in pids and str(os.getpid()) not in pids
    assert process.returncode == 0 and not process.errors


def test_the_name_of_the_socket_may_be_longer_than_an_address(tmp_path, shop):
    folder = tmp_path / ("deep" * 20) / ("er" * 20)
    folder.mkdir(parents=True)
    with workers(str(folder / "shop.db"), "--processes", "1") as process:
        async def use(store):
            return await asyncio.wait_for(store.run(shop.Checkout, shop.Order(1, 1.0)), 60)

        assert watch(str(folder / "shop.db"), use) == 2.0
    assert process.returncode == 0 and not process.errors


def test_the_heddle_command_has_one_program_to_ask(path, tmp_path):
    (tmp_path / "named.py").write_text(f"file = {path!r}\nimport shop\n")
    process = subprocess.Popen([sys.executable, "-m", "heddle", "worker", "named:file", "--processes", "2"], cwd=tmp_path,
                               stdout=subprocess.PIPE, text=True, env=dict(os.environ, SHOP_FILE=path, PYTHONPATH=os.pathsep.join(
                                   (os.environ["PYTHONPATH"], PROGRAMS))))
    try:
        assert "2 processes at" in process.stdout.readline()
        live = [name for name in os.listdir(os.path.dirname(path)) if "-live-" in name]
        assert live == [f"{os.path.basename(path)}-live-{process.pid}"]
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def test_exceptions_cross_whole(path, shop):
    with workers(path):
        assert watch(path, lambda store: store.run(shop.Refuses, 7)) == 7


def test_a_result_that_no_message_can_hold_is_a_type_error(path, shop):
    with workers(path) as process:
        async def use(store):
            return await store.run(shop.Catalogue, 3 << 20), await store.run(shop.Catalogue, 17 << 20)

        small, large = watch(path, use)
    assert small == str(3 << 20)
    assert "bytes cannot cross: a message to the engine has at most 16,842,752" in large
    assert process.returncode == 0 and not process.errors


def test_an_exception_that_no_message_can_hold_keeps_its_class(path, shop):
    with workers(path) as process:
        async def use(store):
            return await store.run(shop.Complaint, 5 << 20), await store.run(shop.Complaint, 6 << 20)

        small, large = watch(path, use)
    assert small == str(5 << 20)
    assert re.fullmatch("the exception is too long: 18,.* bytes cannot cross: a message .* at most 16,842,752", large)
    assert process.returncode == 0 and not process.errors


def test_a_group_that_no_message_can_hold_is_a_value_error(path, shop):
    with workers(path) as process:
        said = watch(path, lambda store: asyncio.wait_for(store.run(shop.Grouped, 9 << 20), 20))
    assert re.fullmatch("the exception is too long: .* bytes cannot cross: a message .* at most 16,842,752", said)
    assert process.returncode == 0 and not process.errors


def test_an_exception_whose_text_cannot_be_made_fails_the_step(path, shop):
    """Nothing told the engine that the attempt had ended, and the step waited for ever."""
    with workers(path) as process:
        async def use(store):
            return [await asyncio.wait_for(store.run(shop.Mute, how), 20) for how in ("type", "other", "same")]

        said = watch(path, use)
    assert said == ["the exception Wordless cannot be used: TypeError: no text",
                    "the exception Wordless cannot be used: KeyError: 'no text'",
                    "the exception Wordless cannot be used: Wordless: its text cannot be made"]
    assert process.returncode == 0 and not process.errors


def test_a_worker_says_several_things_at_once(path, shop):
    """Completions of one turn of the loop are few writes, and their claims one message each."""
    from heddle import _heddle
    from heddle.worker import AT_ONCE, Connection

    class Pipe(asyncio.Transport):
        def __init__(self):
            super().__init__()
            self.writes = []

        def write(self, data):
            self.writes.append(data)

    async def use():
        connection, pipe = Connection(path, {"linger": shop.linger}, "w", 100), Pipe()
        connection.loop = asyncio.get_running_loop()
        connection.connection_made(pipe)
        await asyncio.sleep(0)
        assert [message["type"] for message in _heddle.unframe(pipe.writes.pop())[0]] == ["hello", "claim"]
        for i in range(AT_ONCE + 5):
            connection.complete(f"1-{i}", i)
        for i in range(3):
            connection.heartbeat(f"2-{i}")
        await asyncio.sleep(0)
        return [_heddle.unframe(data) for data in pipe.writes]

    (first, nothing), (second, _) = asyncio.run(use())
    assert nothing == b"" and [m["type"] for m in first] == ["complete"] * AT_ONCE + ["claim"]
    assert [m["type"] for m in second] == ["complete"] * 5 + ["heartbeat", "claim"]
    assert first[-1]["count"] + second[-1]["count"] == AT_ONCE + 5 and second[-2]["tokens"] == ["2-0", "2-1", "2-2"]


def test_a_cancel_that_crosses_a_completion_claims_nothing(path, shop):
    """The completion has claimed: a second claim for the same step would make room that the worker does not have."""
    from heddle.worker import Connection

    async def use():
        connection = Connection(path, {"linger": shop.linger}, "w", 1)
        connection.loop = asyncio.get_running_loop()
        connection._claims = 0
        connection.complete("1-0", None)
        connection._hear({"type": "cancel", "token": "1-0", "why": "timeout"})
        return connection._claims

    assert asyncio.run(use()) == 1


def test_messages_come_in_any_pieces(path, shop):
    from heddle.worker import HEAD, Connection

    async def use(size):
        connection, heard = Connection(path, {}, "w", 1), []
        connection._hear = heard.append
        sent = [{"type": "done", "tokens": ["x" * i]} for i in range(20)]
        import json
        bytes_ = b"".join(HEAD.pack(len(text)) + text for text in (json.dumps(m).encode() for m in sent))
        for at in range(0, len(bytes_), size):
            connection.data_received(bytes_[at:at + size])
        assert heard == sent

    for size in (1, 2, 3, 5, 8, 64, 1000, 10000):
        asyncio.run(use(size))


def test_sigterm_finishes_what_runs(path, shop):
    with workers(path) as process:
        async def use(store):
            handle = await store.start(shop.Waits, 0.3)
            while not os.path.exists(path + ".log"):
                await asyncio.sleep(0.01)
            return handle.id

        watch(path, use)
    assert process.returncode == 0
    assert [line.split()[0] for line in log(path)] == ["linger", "lingered"]
    with heddle.open(path) as store:
        assert store.instances("Waits", status="done")


def test_a_process_that_dies_is_replaced_and_its_step_done_by_another(path, shop, tmp_path):
    with workers(path) as process:
        assert watch(path, lambda store: store.run(shop.Dies, str(tmp_path / "marker"))) == "alive"
    assert process.returncode == 0 and "starting another" in process.errors


def test_processes_end_with_the_first_one(path, shop):
    """Killed, it stops nobody. Workers of a new version would share the work with processes that have the old code."""
    with workers(path, "--processes", "2", "--room", "1") as process:
        async def use(store):
            pids = set()
            while len(pids) < 2:
                pids |= set(await asyncio.gather(*(store.run(shop.Waits, 0.02) for _ in range(8))))
            return pids

        pids = watch(path, use)
        process.kill()
        until = time.monotonic() + 20
        while any(runs(pid) for pid in pids) and time.monotonic() < until:
            time.sleep(0.05)
        assert not [pid for pid in pids if runs(pid)]
    assert process.errors.count("the first process is gone") == 2


def test_workers_survive_the_end_of_the_engines_program(path, shop):
    program = "import asyncio, shop\nasync def main():\n  async with shop.store() as s:\n    s.register(shop.Waits)\n" \
              "    print('up', flush=True)\n    await asyncio.sleep(3600)\nasyncio.run(main())"
    environment = dict(os.environ, SHOP_FILE=path)
    engine = subprocess.Popen([sys.executable, "-c", program], cwd=PROGRAMS, env=environment, stdout=subprocess.PIPE, text=True)
    assert engine.stdout.readline() == "up\n"
    with workers(path) as process:
        os.kill(engine.pid, signal.SIGKILL)
        engine.wait()
        engine.stdout.close()
        assert watch(path, lambda store: store.run(shop.Checkout, shop.Order(1, 1.0))) == 2.0
    assert process.returncode == 0


def test_processes_for_another_space(path, shop):
    with workers(path, "--space", "east") as process:
        async def use(store):
            assert await store.space("east").run(shop.Checkout, shop.Order(1, 1.0)) == 2.0
            return store.instances()

        assert watch(path, use) == []
    assert process.returncode == 0 and not process.errors


def test_a_worker_leaves_alone_what_it_does_not_know(path, shop):
    with workers(path):
        async def use(store):
            from flow import call

            async def unknown(x):
                return x

            handle = await store.start(call(unknown), 1)
            while not (await handle.state()).get("steps"):
                await asyncio.sleep(0.01)
            assert await store.run(shop.Checkout, shop.Order(1, 1.0)) == 2.0
            return (await handle.state())["status"]

        assert watch(path, use) in ("running", "queued")


def test_what_is_no_store_is_refused(tmp_path):
    for target in ("shop:Order", "shop:nothing", "nowhere:store"):
        out = subprocess.run([sys.executable, "-m", "heddle", "worker", target], cwd=PROGRAMS, capture_output=True, text=True,
                             env=dict(os.environ, SHOP_FILE=str(tmp_path / "x.db")))
        assert out.returncode != 0 and out.stderr
    out = subprocess.run([sys.executable, "-m", "heddle", "worker", "shop:FILE"], cwd=PROGRAMS, capture_output=True, text=True,
                         env=dict(os.environ, SHOP_FILE=str(tmp_path / "no" / "x.db")))
    assert out.returncode != 0 and "Traceback" not in out.stderr and "directory" in out.stderr
    out = subprocess.run([sys.executable, "-m", "heddle", "worker", "shop:FILE", "--space", "a/b"], cwd=PROGRAMS,
                         capture_output=True, text=True, env=dict(os.environ, SHOP_FILE=str(tmp_path / "x.db")))
    assert out.returncode == 1 and out.stderr.startswith("heddle-worker: the name of a space")
    out = subprocess.run([sys.executable, "-m", "heddle", "worker", "shop:FILE", "--processes", "0"], cwd=PROGRAMS,
                         capture_output=True, text=True)
    assert out.returncode == 2 and "at least 1" in out.stderr
    out = subprocess.run([sys.executable, "-m", "heddle"], capture_output=True, text=True)
    assert out.returncode == 2 and "usage" in out.stderr


def test_a_module_without_workflows_is_refused(tmp_path):
    """No process is started: the engine would refuse it, and another one would be started for ever."""
    (tmp_path / "empty.py").write_text('import heddle\nfile = "x.db"\n@heddle.action\ndef lonely(): pass\n')
    out = subprocess.run([sys.executable, "-m", "heddle", "worker", "empty:file"], cwd=tmp_path, capture_output=True, text=True,
                         timeout=30)
    assert out.returncode == 1 and not out.stdout
    assert out.stderr.startswith("heddle-worker: the module empty defines no workflow") and "import the modules" in out.stderr
    out = subprocess.run([sys.executable, "-m", "heddle", "worker", "./empty.py:file"], cwd=tmp_path, capture_output=True,
                         text=True, timeout=30)
    assert out.returncode == 1 and out.stderr.endswith("write empty:file\n")
    (tmp_path / "x.db").touch()
    out = subprocess.run([sys.executable, "-m", "heddle", "worker", "x.db"], cwd=tmp_path, capture_output=True, text=True,
                         timeout=30)
    assert out.returncode == 1 and "Name the module that has the workflows" in out.stderr


def test_two_actions_of_one_name_are_refused(tmp_path):
    """Steps find their action by its name: one of the two workflows would call the other's function."""
    text = """from heddle import Workflow, action, workflow
@action
async def send() -> str:
    return "{0}"
@workflow
class {0}(Workflow):
    async def run(self) -> str:
        return await send()
"""
    for name in ("Letter", "Parcel"):
        (tmp_path / f"{name.lower()}.py").write_text(text.format(name))
    (tmp_path / "post.py").write_text("import letter, parcel\nfile = 'post.db'\n")
    out = subprocess.run([sys.executable, "-m", "heddle", "worker", "post:file"], cwd=tmp_path, capture_output=True, text=True)
    assert out.returncode == 1 and out.stderr == ("heddle-worker: two actions have the name send: letter.send and parcel.send. "
                                                  "Give one of them another: @action(name=...)\n")


@pytest.mark.parametrize("arguments, message", [
    ([":file"], "is not the name of a module"), (["./desk:file"], "is not the name of a module"),
    (["desk:file", "--queue", "a/b#c"], "a queue has a name of")])
def test_a_worker_ends_with_a_line_for_what_is_named_wrongly(arguments, message, capsys):
    from heddle.worker import main

    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert message in str(ended.value) + capsys.readouterr().err
