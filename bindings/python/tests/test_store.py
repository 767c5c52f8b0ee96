"""Stores: cells, transactions, errors by class, threads, fork, links, metadata, closing."""
from __future__ import annotations

import asyncio
import dataclasses
import functools
import gc
import logging
import os
import subprocess
import sys
import threading
import time
import weakref

import pytest

import heddle


@pytest.fixture
def store():
    with heddle.open() as opened:
        yield opened


# ---- Cells


def test_a_cell_is_read_by_calling_it(store):
    cell = store.cell("main/x")
    assert cell() is None and not cell.exists()
    cell.set({"a": [1, 2]})
    assert cell() == {"a": [1, 2]} == cell.get() == cell.peek()
    assert cell["a"][1]() == 2 and cell["a"][1].name == "main/x#/a/1"
    cell["a"].append(3)
    cell["n"].set(1)
    cell["n"].increment()
    cell["n"].increment(2.5)
    assert cell() == {"a": [1, 2, 3], "n": 4.5}
    cell["n"].remove()
    cell.patch([{"op": "set", "path": "/b", "value": 1}])
    assert cell() == {"a": [1, 2, 3], "b": 1}
    cell.remove()
    assert not cell.exists()


def test_every_thread_can_print_a_cell(store):
    cell, said = store.cell("main/x"), []
    thread = threading.Thread(target=lambda: said.append(repr(cell)))
    thread.start()
    thread.join()
    assert said == ["<cell of another thread's store>"] and repr(cell) == "<cell main/x>"


def test_a_name_with_a_nul_is_no_other_name(store):
    cell = store.cell("main/x")
    cell.set({"a": 1, "a\0b": 2})
    for use in (lambda: cell["a\0b"].set(3), lambda: store.cell("main/x\0y"), lambda: store.send("main/s\0t"),
                lambda: store.computed("main/x\0y")(lambda: 1), lambda: cell.meta("k\0l"), lambda: store.follow("main\0"),
                lambda: asyncio.run(store.handle("A/b\0c").cancel())):
        with pytest.raises(ValueError, match="null character"):
            use()
    cell.patch([{"op": "set", "path": "/a\0b", "value": 4}])
    assert cell() == {"a": 1, "a\0b": 4}


def test_a_malformed_patch_says_what_is_wrong(store):
    with pytest.raises(heddle.InputError, match='entry 1 of the patch: "op" must be set, remove, append or increment'):
        store.cell("main/x").patch([{"op": "set", "path": "", "value": {}}, {"op": "add", "path": "/a", "value": 1}])
    with pytest.raises(heddle.UsageError, match="a patch is an array of operations, not string"):
        store.cell("main/x").patch("set")
    assert not store.cell("main/x").exists()


def test_a_file_keeps_what_was_written(path):
    with heddle.open(path) as store:
        store.cell("main/x").set(5)
    with heddle.open(path, must_exist=True) as store:
        assert store.cell("main/x")() == 5
        assert store.documents() == ["x"] and "main" in store.spaces()
    with heddle.open(path, read_only=True) as store:
        with pytest.raises(heddle.Error):
            store.cell("main/x").set(6)
            store.sync()


def test_a_file_may_be_a_path(tmp_path):
    with heddle.open(tmp_path / "x.db") as store:
        store.cell("main/n").set(3)
        assert store.file == str(tmp_path / "x.db")
    with heddle.open(str(tmp_path / "x.db")) as store:
        assert store.cell("main/n")() == 3


def test_two_programs_on_one_file_hear_of_each_other(path):
    with heddle.open(path) as a, heddle.open(path) as b:
        seen = []
        b.sink(b.cell("main/x"), seen.append)
        b.settle()
        a.cell("main/x").set(1)
        a.sync()
        for _ in range(200):
            b._runtime.turn(0.05)
            if seen[-1:] == [1]:
                break
        assert seen == [None, 1]


def test_links(store):
    a, b = store.cell("main/a"), store.cell("main/b")
    a.set({"x": {"y": 1}})
    b.set({"to": a["x"].link()})
    assert b["to"]["y"]() == 1
    assert isinstance(b()["to"], heddle.Link)
    link = b["to"].raw()
    assert (link.space, link.id, link.path) == ("main", "a", "/x")
    assert b.follow(link) == a["x"] and hash(b.follow(link)) == hash(a["x"])
    with pytest.raises(ValueError):
        heddle.Link(scope="nowhere")


def test_metadata_kinds_and_volatile_documents(store):
    with store.transaction():
        cell = store.cell("main/x")
        cell.set(1)
        cell.set_kind("thing")
    cell.set_meta("who", "me")
    assert cell.meta("who") == "me" and cell.meta("none") is None
    assert store.documents(kind="thing") == ["x"] and store.documents(kind="other") == []
    scratch = store.cell("main/scratch")
    scratch.set_volatile()
    scratch.set(5)
    assert scratch() == 5


def test_names_that_are_wrong(store):
    for name in ("", "main", "main/x#y", "main@nowhere/x"):
        with pytest.raises(heddle.Error):
            store.cell(name)
    with pytest.raises(TypeError):
        store.cell("main/x")[1.5]
    with pytest.raises(TypeError, match="takes no arguments"):
        store.cell("main/x")(5)


# ---- Transactions


def test_a_transaction_is_all_or_nothing(store):
    a, b = store.cell("main/a"), store.cell("main/b")
    with store.transaction():
        a.set(1)
        assert a() == 1
        b.set(a() + 1)
    assert (a(), b()) == (1, 2)
    with pytest.raises(ZeroDivisionError):
        with store.transaction():
            a.set(10)
            1 / 0
    assert a() == 1
    with store.transaction():
        with pytest.raises(heddle.UsageError):
            with store.transaction():
                pass
    assert not store._runtime.in_transaction


def test_nothing_may_be_awaited_in_a_transaction():
    """What other tasks write meanwhile is stored; the transaction whose task awaits is not, and the task is told."""
    async def main():
        async with heddle.open() as store:
            a, b = store.cell("main/a"), store.cell("main/b")

            async def guilty(write):
                with store.transaction():
                    a.set(1)
                    await asyncio.sleep(0.01)
                    if write:
                        a.set(2)

            async def other():
                b.set(7)

            async def also():
                with store.transaction():
                    b.increment()

            told = await asyncio.gather(guilty(True), guilty(False), other(), also(), return_exceptions=True)
            assert [type(error) for error in told] == [heddle.UsageError, heddle.UsageError, type(None), type(None)]
            assert "Do not await inside `with store.transaction()`" in str(told[0]) and (a(), b()) == (None, 8)

            async def waits():
                with store.transaction():
                    a.set(1)
                    await store.stored()

            task = asyncio.create_task(waits(), name="shopper")
            with pytest.raises(heddle.UsageError, match="a transaction is open in shopper: do not await"):
                await task
            with store.transaction():
                a.set(3)
            return a()

    assert asyncio.run(main()) == 3


def test_what_looks_like_a_write_and_is_none_is_refused(store):
    async def later(): ...

    cell = store.cell("main/x")
    with pytest.raises(AttributeError, match=r"cell.set\(...\) writes its value"):
        cell.value = 3
    with pytest.raises(TypeError, match="an ordinary function, and later is async"):
        store.transact(later)
    with pytest.raises(TypeError, match="an ordinary function, and later is async"):
        asyncio.run(store.transact_async(later))


def test_a_computation_may_be_a_partial_of_an_async_function():
    async def later(by):
        await asyncio.sleep(0)
        return by + store.cell("main/x")()

    async def main():
        store.computed(store.cell("main/y"), name="later")(functools.partial(later, 3))
        store.cell("main/x").set(4)
        async for value in store.cell("main/y"):
            if value is not None:
                return value

    async def opened():
        nonlocal store
        async with heddle.open() as store:
            return await main()

    store = None
    assert asyncio.run(opened()) == 7


def test_what_nothing_would_await_or_call_is_refused_at_once(store):
    async def later(*_): ...

    class Later:
        async def __call__(self, *_): ...

    cell = store.cell("main/x")
    takers = {"a handler": store.on("main/s"), "a sink": cell.sink, "a channel": store.channel("mail"), "post": store.post,
              "on_error": store.on_error}
    for what, take in takers.items():
        with pytest.raises(TypeError, match=f"^{what} takes an ordinary function, and later is async: "):
            take(later)
        for other in (functools.partial(later, 1), Later()):
            with pytest.raises(TypeError, match=f"^{what} takes an ordinary function, and this one is async: "):
                take(other)
    takers |= {"an effect": store.effect, "a computation": store.computed(cell), "a transaction": store.transact}
    for what, take in takers.items():
        with pytest.raises(TypeError, match=f"^{what} takes a function that returns its result, and <lambda> yields: "):
            take(lambda *_: (yield))
    for what, take in takers.items():
        with pytest.raises(TypeError, match=f"^{what} takes a function, not 5"):
            take(5)


def test_calls_that_wait_are_refused_inside_by_their_own_names(store):
    cell = store.cell("main/x")
    cell.set(2**63 - 1)
    for name, call in [("settle", store.settle), ("sync", store.sync), ("pull", cell.pull),
                       ("transact", lambda: store.transact(lambda: None))]:
        with store.transaction():
            with pytest.raises(heddle.UsageError, match=rf"^{name}\(\) cannot be called inside a transaction"):
                call()
    with pytest.raises(heddle.UsageError, match="^main/x: the sum does not fit into 64 bits"):
        cell.increment()
    cell.set([])
    with pytest.raises(heddle.UsageError, match="^main/x#/3: not an index of the array there"):
        cell[3].increment()


def test_an_event_without_a_handler_says_so():
    async def main():
        async with heddle.open() as store:
            store.on_error(lambda name, error: None)
            with pytest.raises(heddle.InputError, match="there is no handler for the stream main/orders"):
                await store.handled("main/orders", 1)

    asyncio.run(main())


def test_an_event_without_a_handler_is_no_function_that_failed(store, caplog):
    with caplog.at_level(logging.ERROR, "heddle"):
        store.send("main/orders", 1)
        store.settle()
    assert caplog.messages == ["there is no handler for the stream main/orders"]


def test_an_event_that_was_handled_is_named():
    async def main():
        async with heddle.open() as store:

            @store.on("main/orders")
            def order(event):
                pass

            await store.handled("main/orders", 1, id="tea")
            with pytest.raises(heddle.RefusedError, match='^the event "tea" was handled already, by main/orders$'):
                await store.handled("main/orders", 1, id="tea")

    asyncio.run(main())


def test_a_write_that_raises_fails_its_transaction(store):
    one, two = store.cell("main/one"), store.cell("main/two")
    one.set(1)
    with pytest.raises(heddle.UsageError):
        with store.transaction():
            two.set(2)
            with pytest.raises(heddle.UsageError):
                one["a"].set(1)                      # caught, and nothing is stored all the same
    assert two() is None
    with store.transaction():
        two.set(2)
        with pytest.raises(heddle.UsageError):
            one.patch([{"op": "set", "path": "/a", "value": 1}])  # may be tried
    assert two() == 2 and one() == 1


def test_transact_runs_again_when_another_was_faster(path):
    with heddle.open(path) as a, heddle.open(path) as b:
        a.cell("main/n").set(0)
        a.sync()
        tries = []

        def add():
            tries.append(1)
            n = a.cell("main/n")
            now = n()
            if len(tries) == 1:
                b.cell("main/n").set(100)
                b.sync()
            n.set(now + 1)
            return now

        assert a.transact(add) == 100
        assert a.cell("main/n")() == 101 and len(tries) == 2


def test_transact_passes_on_what_the_function_raises(store):
    cell = store.cell("main/x")

    def bad():
        cell.set(1)
        raise KeyError("k")

    with pytest.raises(KeyError, match="k"):
        store.transact(bad)
    assert cell() is None
    assert store.transact(lambda: 5) == 5


def test_preconditions(store):
    cell = store.cell("main/x")
    cell.set(1)
    store.sync()

    def create():
        cell.require_absent()
        cell.set(2)

    with pytest.raises(heddle.RefusedError) as caught:
        store.transact(create)
    assert caught.value.status == "HD_EXISTS"
    assert cell() == 1


def test_errors_have_their_class_and_place(store):
    with pytest.raises(heddle.InputError) as caught:
        store.cell("main/x", schema={"type": "nonsense"})
    assert caught.value.status == "HD_SCHEMA" and caught.value.path == "/type"
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, heddle.Error)
    with pytest.raises(heddle.Error) as caught:
        heddle.open("/nowhere/at/all.db")
    assert "/nowhere" in str(caught.value)


# ---- Threads, processes, closing


def test_another_thread_is_refused(store):
    cell, errors = store.cell("main/x"), []

    def use():
        for fn in (cell.get, lambda: cell.set(1), store.settle, store.close, lambda: store.cell("main/y")):
            try:
                fn()
            except heddle.UsageError as error:
                errors.append(str(error))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert len(errors) == 5 and all("thread that opened it" in e and "store.post" in e for e in errors)


def test_post_calls_on_the_stores_thread(store):
    called = []
    thread = threading.Thread(target=lambda: store.post(lambda: called.append(threading.get_ident())))
    thread.start()
    thread.join()
    store.settle()
    assert called == [threading.get_ident()]


def test_run_forever_ends_with_stop(store):
    seen = []
    store.sink(store.cell("main/x"), seen.append)
    thread = threading.Timer(0.0, lambda: store.post(lambda: (store.cell("main/x").set(1), store.stop())))
    thread.start()
    store.run_forever()
    store.settle()
    assert seen[-1] == 1


def test_a_closed_store_says_so(store):
    cell = store.cell("main/x")
    store.close()
    store.close()
    for fn in (cell.get, lambda: cell.set(1), store.settle, lambda: store.cell("main/y"), lambda: cell.name):
        with pytest.raises(heddle.FailedError, match="the store is closed"):
            fn()
    assert "closed" in repr(store) and "closed" in repr(cell)


def test_a_function_that_the_store_calls_cannot_close_it(store):
    raised = []

    def shut(*_):
        with pytest.raises(heddle.UsageError, match="cannot be closed by a function that it calls") as refused:
            store.close()
        raised.append(refused)

    cell = store.cell("main/x")
    store.transact(shut)
    store.post(shut)
    store.effect(name="effect")(lambda: shut(cell()))
    cell.sink(shut)
    cell.sink(shut, confirmed=True)
    store.computed(store.cell("main/y"), name="computed")(lambda: shut(cell()))
    store.on("main/orders")(shut)
    store.send("main/orders", 1)
    store.cell("main/y").pull()
    cell.set(1)
    store.sync()
    store.settle()
    assert len(raised) >= 7 and not store.closed


def test_closing_ends_what_waits_in_a_loop():
    seen = []

    async def follow(cell):
        async for value in cell:
            seen.append(value)
        return "ended"

    async def main():
        async with heddle.open() as store:
            x, y, begun = store.cell("main/x"), store.cell("main/y"), asyncio.Event()
            x.set(1)

            @store.computed(y)
            async def later():
                x()
                begun.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError as cancelled:
                    seen.append(str(cancelled))
                    with pytest.raises(heddle.FailedError, match="the store is closed"):
                        x()
                    raise
                finally:
                    await asyncio.sleep(0)
                    seen.append("finally")

            y.sink(lambda value: None)
            follower = asyncio.create_task(follow(x))
            await begun.wait()
            while seen != [1]:
                await asyncio.sleep(0)
        assert await follower == "ended"
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(main())
    assert seen == [1, "the store is closed", "finally"]


@pytest.mark.parametrize("before", range(2))
def test_a_message_is_cut_between_two_characters(tmp_path, before):
    with pytest.raises(heddle.Error, match="ä/x.db"):
        heddle.open(str(tmp_path / ("x" * before + "ä" * 100) / "x.db"))


# A child that is forked while another thread allocates may find the allocator of the address sanitizer locked for ever.
forks = pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer cannot fork")


@forks
def test_fork_is_refused(path):
    program = f"""
import heddle, os
store = heddle.open({path!r})
cell = store.cell("main/x")
pid = os.fork()
if pid == 0:
    try:
        cell()
    except heddle.UsageError as error:
        os.write(1, str(error).encode())
    again = heddle.open({path!r})
    again.cell("main/y").set(1)
    again.close()
    os._exit(0)
os.waitpid(pid, 0)
cell.set(5)
store.close()
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                         timeout=100)
    assert "opened before fork()" in out.stdout and not out.stderr
    with heddle.open(path) as store:
        assert store.cell("main/x")() == 5 and store.cell("main/y")() == 1


def run_program(program, *arguments):
    """A program of its own, since a fault may end it with a signal. What it prints."""
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, timeout=100).stdout


COLLECTS_AN_ENGINE = """
import gc, os, sys, threading
import heddle
store = heddle.open(sys.argv[1])
engine = store._runtime.engine(lambda *_: None, lambda *_: None)
while not engine.active:
    store._runtime.turn(0.01)
lease = store.cell("main/lease/workflow")
held = lease()
def collect():
    global engine
    del engine
    gc.collect()
if sys.argv[2] == "thread":
    other = threading.Thread(target=collect)
    other.start()
    other.join()
elif (pid := os.fork()) == 0:
    collect()
    os._exit(0)
else:
    assert os.waitpid(pid, 0)[1] == 0
with heddle.open(sys.argv[1], worker=False) as again:
    print(again.cell("main/lease/workflow")() == held)
store.close()
with heddle.open(sys.argv[1], worker=False) as again:
    print("session" in again.cell("main/lease/workflow")())
"""


@pytest.mark.parametrize("where", ["thread", pytest.param("child", marks=forks)])
def test_an_engine_that_is_collected_elsewhere_stays_open(path, where):
    assert run_program(COLLECTS_AN_ENGINE, path, where) == "True\nFalse\n"


COLLECTS_A_STORE = """
import gc, os, sys, threading
import heddle
def work(i):
    store = heddle.open(os.path.join(sys.argv[1], f"{i}.db"))
    cell = store.cell("main/x")
    for k in range(200):
        cell.set([k] * 1000)
    store._runtime.pump()
    store.effect(lambda: cell())
for i in range(10):
    thread = threading.Thread(target=work, args=(i,))
    thread.start()
    thread.join()
    gc.collect()
print("collected")
"""


def test_a_store_that_another_thread_collects_stays_with_its_writer(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONMALLOC", "debug")  # memory that is freed is overwritten
    assert run_program(COLLECTS_A_STORE, str(tmp_path)) == "collected\n"


USES_A_STORE_THAT_CLOSES = """
import heddle
class Last:
    def __del__(self):
        try:
            store.cell("main/y").set(1)
        except heddle.Error as error:
            print(error)
store = heddle.open()
def read(last=Last()):
    store.cell("main/x")()
store.effect(read)
store.on("main/stream")(lambda event, last=Last(): None)
store.cell("main/z").sink(lambda value, last=Last(): None)
del read
store.settle()
store.close()
"""


def test_a_finalizer_that_uses_a_store_which_is_being_closed_is_refused():
    assert run_program(USES_A_STORE_THAT_CLOSES) == "the store is closed\n" * 3


CLOSES_WHILE_A_VALUE_IS_CONVERTED = """
import dataclasses
import heddle
class Closes:
    def __get__(self, value, cls):
        if value is not None:
            store.close()
        return 0
@dataclasses.dataclass
class Part:
    a: int
Part.a = Closes()
store = heddle.open()
cell = store.cell("main/x")
for write in cell.set, lambda part: store.transact(lambda: cell.set(part)):
    try:
        write([1, Part.__new__(Part)])
    except heddle.UsageError as error:
        print(str(error)[:38])
cell.set(5)
print(cell())
"""


def test_a_store_is_not_closed_while_a_value_is_converted():
    refused = "a store cannot be closed by a function\n"
    assert run_program(CLOSES_WHILE_A_VALUE_IS_CONVERTED) == refused * 2 + "5\n"


def test_a_key_may_be_removed_while_its_value_is_converted():
    class Takes:
        def __get__(self, value, cls):
            if value is not None:
                taken.pop(next(iter(taken)))
            return 1

    @dataclasses.dataclass
    class Part:
        a: int

    Part.a = Takes()
    taken = {"key" * n: Part.__new__(Part) if n == 10 else n for n in (10, 11, 12)}
    with heddle.open() as store:
        store.cell("main/x").set(taken)
        assert store.cell("main/x")() == {"key" * 10: {"a": 1}, "key" * 11: 11, "key" * 12: 12}


def test_a_store_that_is_dropped_has_stored_everything(path):
    store = heddle.open(path)
    store.cell("main/x").set(7)
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None
    with heddle.open(path) as store:
        assert store.cell("main/x")() == 7


def test_several_stores_in_one_program(tmp_path):
    stores = [heddle.open(str(tmp_path / f"{i}.db")) for i in range(3)]
    for i, one in enumerate(stores):
        one.cell("main/x").set(i)
    assert [one.cell("main/x")() for one in stores] == [0, 1, 2]
    with pytest.raises(ValueError, match="another store"):
        stores[0].sink(stores[1].cell("main/x"), print)
    for one in stores:
        one.close()


LEFT_OPEN = {
    "in a module": """
import heddle
store = heddle.open(FILE)
x, y = store.cell("main/x"), store.cell("main/y")
@store.computed(x)
def more(): return (y() or 0) + 1
x.sink(print)
store.settle()
y.set(3)
""",
    "in a function": """
import heddle
def main():
    store = heddle.open(FILE)
    y = store.cell("main/y")
    @store.effect
    def show(): print("1" if y() is None else y() + 1)
    store.settle()
    y.set(3)
main()
""",
    "without a cycle": """
import heddle
store = heddle.open(FILE)
store.cell("main/y").set(3)
store.cell("main/y").sink(lambda value: print(value - 2, value + 1, sep="\\n"))
del store
""",
}


@pytest.mark.parametrize("how", LEFT_OPEN)
def test_a_store_that_is_left_open_is_closed_at_the_end(path, how):
    """Its functions run for the last time while what they refer to is there, and what was written is on disk."""
    out = subprocess.run([sys.executable, "-c", LEFT_OPEN[how].replace("FILE", repr(path))], capture_output=True,
                         text=True, timeout=60)
    assert (out.returncode, out.stdout, out.stderr) == (0, "1\n4\n", "")
    with heddle.open(path) as store:
        assert store.cell("main/y")() == 3


def test_an_event_that_was_handled_cannot_be_posted_again(store):
    first = store.post_event("main/posted", 1, id="order 17")
    assert store.post_event("main/posted", 1, id="order 17") == first  # it waits: it is one event
    store.sync()
    handled = []
    store.on("main/posted")(handled.append)
    store.settle()
    store.sync()
    assert len(handled) == 1
    with pytest.raises(heddle.RefusedError, match="handled already") as refused:
        store.post_event("main/posted", 1, id="order 17")
    assert refused.value.status == "HD_EXISTS"


def test_settle_inside_of_a_hold_waits_for_its_end(store):
    ran = []
    with store.hold("kept", seconds=0.2):
        store.effect(name="kept")(lambda: ran.append(1))
        began = time.monotonic()
        assert store.settle() and ran == [1] and time.monotonic() - began > 0.1
    with store.hold("later", seconds=60):
        store.effect(name="later")(lambda: ran.append(2))
    store.settle()
    assert ran == [1, 2]
