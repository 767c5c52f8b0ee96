"""What a program tells about itself: to help(), to the logging module, to the heddle command, to store.why()."""
from __future__ import annotations

import asyncio
import inspect
import logging
import os
import pydoc
import re
import stat
import subprocess
import sys
import threading
import xml.dom.minidom

import pytest

import heddle
from heddle import Workflow, action, drawing, workflow
from heddle.timeline import Timeline, timeline_of

COMMAND = os.environ.get("HEDDLE_COMMAND")
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(heddle.__file__)))


# ---- help()


def test_every_public_name_is_listed_and_documented():
    assert set(heddle.__all__) <= set(dir(heddle))
    undocumented = [name for name in heddle.__all__ if not getattr(heddle, name).__doc__]
    assert not undocumented
    text = pydoc.plain(pydoc.render_doc(heddle))
    for name in ("class Workflow", "class Store", "action(", "class Build", "pattern("):
        assert name in text


@pytest.mark.parametrize("cls", [heddle.Store, heddle.Cell, heddle.Handle, heddle.Build, heddle.Piece, heddle.Schedule, heddle.Queue,
                                 heddle.Workflow, heddle.Transaction, heddle.Timeline, heddle.Attempt, heddle.Event])
def test_every_public_method_has_a_text_and_a_signature(cls):
    for name, member in inspect.getmembers(cls):
        if name.startswith("_") or not callable(member):
            continue
        assert inspect.getdoc(member), f"{cls.__name__}.{name} has no docstring"
        inspect.signature(member)


# ---- The heddle command


def program(path):
    """A store with a graph, driven until it is told to stop."""
    store = heddle.open(path)
    price, total = store.cell("main/price"), store.cell("main/total")

    @store.computed(total)
    def add_up():
        return price() * 2

    total.sink(lambda value: None, name="show")
    price.set(4)
    store.settle()
    return store


def asked(store, *arguments):
    """What the command says, while the store is driven."""
    answer = []

    def ask():
        answer.append(subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=60))
        store.stop()

    thread = threading.Thread(target=ask)
    thread.start()
    store.run_forever()
    thread.join()
    return answer[0]


@pytest.mark.skipif(not COMMAND, reason="the command is not built")
def test_the_heddle_command_asks_a_python_program(path):
    with program(path) as store:
        why = asked(store, "why", path, "main/total")
        assert why.returncode == 0 and "add_up" in why.stdout and "main/price" in why.stdout, why
        assert "add_up" in asked(store, "graph", path).stdout
        assert "add_up" in asked(store, "stats", path).stdout


def test_the_socket_is_beside_the_file_and_private(path):
    with program(path):
        name = f"{path}-live-{os.getpid()}"
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o600
    assert not os.path.exists(name)


def test_without_inspect_there_is_no_socket(path):
    with heddle.open(path, inspect=False):
        assert not [name for name in os.listdir(os.path.dirname(path)) if "-live-" in name]


# ---- store.why()


def test_why_takes_a_cell(path):
    with program(path) as store:
        assert "has run once" in str(store.why(store.cell("main/total")))
        store.cell("main/price").set(5)
        store.settle()
        assert "main/price" in str(store.why(store.cell("main/total"))) and str(store.why("main/total")) == str(store.why("add_up"))
        assert "clean" in str(store.why_not(store.cell("main/total"))) or store.why_not("main/total").reason
        with pytest.raises(heddle.InputError, match="none that computes"):
            store.why("main/nothing")


def test_why_of_a_part_of_what_is_computed():
    with heddle.open() as store:
        a, sums = store.cell("main/a"), store.cell("main/sums")
        a.set(1)

        @store.computed(sums)
        def add():
            return {"twice": a() * 2}

        assert "has not run" in str(store.why(add))
        sums.sink(lambda value: None)
        store.settle()
        a.set(2)
        store.settle()
        assert "main/a" in str(store.why(sums["twice"]))


def test_why_of_a_handler_says_what_to_ask_instead():
    with heddle.open() as store:
        @store.on("main/orders")
        def ordered(event):
            pass

        for ask in (store.why, store.why_not):
            for what in (ordered, ordered.handler):
                with pytest.raises(heddle.InputError, match="^ordered handles events and is no node: .* receipt"):
                    ask(what)


# ---- Log lines


FULL = """
import logging, resource, signal, sys
import heddle
logging.basicConfig(stream=sys.stdout)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = heddle.open(sys.argv[1])
store.cell("main/x").set(1)
store.sync()
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
try:
    for i in range(20):
        store.cell(f"main/x{i}").set("y" * 100_000)
    store.sync()
except heddle.TransientError:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
try:
    store.close()
except heddle.TransientError:
    pass
"""


def test_lines_of_the_librarys_threads_go_to_logging(path):
    """The thread that writes the file meets the end of the disk."""
    process = subprocess.run([sys.executable, "-c", FULL, path], capture_output=True, text=True, timeout=60,
                             env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert "ERROR:heddle:" in process.stdout and "disk I/O error" in process.stdout and not process.stderr, process


class Interrupts(logging.Handler):
    def emit(self, record):
        raise KeyboardInterrupt(record.getMessage())


def test_ctrl_c_while_a_line_is_logged_is_raised_by_what_drives_the_store():
    logger, handler = logging.getLogger("heddle"), Interrupts()
    with heddle.open(strict=False) as store:
        x, y, outside = (store.cell(f"main/{name}") for name in ("x", "y", "outside"))
        x.set(1)

        @store.computed(y)
        def stray():
            outside.set(x())
            return x()

        y.sink(lambda value: None)
        logger.addHandler(handler)
        try:
            with pytest.raises(KeyboardInterrupt, match="stray"):
                store.settle()
        finally:
            logger.removeHandler(handler)
        store.settle()
        assert outside() == 1


# ---- Journals


@action
async def double(x: int) -> int:
    return x * 2


@workflow
class Noted(Workflow):
    journal = "steps"

    async def run(self, x: int) -> int:
        x = await double(x)
        return await double(x)


def test_a_workflow_with_a_journal_has_a_timeline_of_its_steps():
    async def main():
        async with heddle.open() as store:
            handle = await store.start(Noted, 1)
            assert await handle.result() == 4
            return await handle.journal(), await handle.timeline()

    journal, timeline = asyncio.run(main())
    assert [entry["what"] for entry in journal] == ["start", "done", "done", "end"]
    assert str(timeline).count("done     double") == 2


@workflow
class Told(Workflow):
    journal = "steps"

    async def run(self) -> int:
        answer: int = await heddle.signal("answer")
        return answer


def test_a_signal_has_its_name_in_the_timeline(tmp_path):
    async def main():
        async with heddle.open() as store:
            handle = await store.start(Told)
            await handle.signal("answer", 3)
            await handle.result()
            return await handle.journal(), await handle.timeline()

    journal, timeline = asyncio.run(main())
    assert [entry["signal"] for entry in journal if entry["what"] == "signal"] == ["answer"]
    assert "signal   answer" in str(timeline) and ">answer<" in timeline._repr_svg_()


def test_the_graph_of_an_instance_shows_where_it_stands():
    async def main():
        async with heddle.open() as store:
            handle = await store.start(Told)
            waiting = str(await handle.graph())
            await handle.signal("answer", 3)
            await handle.result()
            with pytest.raises(heddle.InputError, match="no instance Told/none"):
                await store.handle("Told/none").graph()
            return waiting, str(await handle.graph())

    waiting, over = asyncio.run(main())
    assert "WAIT, waits for its signal" in waiting
    assert over == str(Told.graph())


def test_a_timeline_is_saved_in_the_form_that_the_name_ends_in(tmp_path):
    timeline = Timeline("w/k", [(0.0, "start", "")])
    timeline.save(tmp_path / "x.svg")
    timeline.save(str(tmp_path / "x.txt"))
    assert (tmp_path / "x.svg").read_text().startswith("<svg") and (tmp_path / "x.txt").read_text().startswith("w/k")
    with pytest.raises(ValueError, match=r"the name ends in one of .svg, .txt, not in '.jpg'"):
        timeline.save(tmp_path / "x.jpg")
    assert not (tmp_path / "x.jpg").exists()


def test_a_journal_of_another_kind_is_refused():
    with pytest.raises(TypeError, match='journal is "none", "steps" or "nodes"'):
        @workflow
        class Wrong(Workflow):
            journal = True

            async def run(self) -> int:
                return 1


def test_run_without_a_store_is_a_run_on_the_engine():
    async def main():
        return await Noted().run(3), await Noted().run(x=4)

    assert asyncio.run(main()) == (12, 16)


# ---- heddle-worker


def refused(target, folder):
    process = subprocess.run([sys.executable, "-m", "heddle", "worker", target], cwd=folder, capture_output=True, text=True,
                             env=dict(os.environ, PYTHONPATH=PACKAGE), timeout=60)
    assert process.returncode == 1 and "Traceback" not in process.stderr, process.stderr
    return process.stderr


def test_a_worker_says_what_is_missing(tmp_path):
    (tmp_path / "order.py").write_text("number = 3\n")
    assert "the module order has no 'store'" in refused("order:store", tmp_path)
    assert "the module order has no 'store'" in refused("order", tmp_path)
    assert "no module 'nothing'" in refused("nothing:store", tmp_path)
    assert "order:number is no store in a file: 3" in refused("order:number", tmp_path)


def test_what_is_wrong_inside_of_the_module_is_shown(tmp_path):
    (tmp_path / "order.py").write_text("import missing_here\n")
    process = subprocess.run([sys.executable, "-m", "heddle", "worker", "order"], cwd=tmp_path, capture_output=True, text=True,
                             env=dict(os.environ, PYTHONPATH=PACKAGE), timeout=60)
    assert "missing_here" in process.stderr and "Traceback" in process.stderr


# ---- What the command and the package say of one workflow


@action
async def weigh(parcel: int) -> int:
    return parcel + 1


@workflow
class Packed(Workflow):
    concurrent = True

    async def run(self, parcels: list[int]) -> int:
        total = 0
        for parcel in parcels:
            total += await weigh(await weigh(parcel))
        return total + await self.checked(1)

    async def checked(self, parcel: int) -> int:
        return await weigh(parcel)


@pytest.mark.skipif(not COMMAND, reason="the command is not built")
def test_the_command_explains_as_the_package_does_and_knows_the_steps_of_helpers(tmp_path):
    path = str(tmp_path / "p.db")

    async def main():
        async with heddle.open(path) as store:
            return await store.options(key="1").run(Packed, [1, 2])
    assert asyncio.run(main()) == 9

    def told(*words):
        return subprocess.run([COMMAND, "workflow", *words], capture_output=True, text=True, timeout=60).stdout
    reason = "its body has 2 steps, and only a loop with one action is made parallel"
    assert reason in str(Packed.explain()) and reason in " ".join(told("explain", path, "Packed").split())
    shown = [line.split() for line in told("show", path, "Packed/1").split("\n")]
    assert [line[0] for line in shown if line[1:2] == ["checked"]] == ["done"]
    at = next(i for i, line in enumerate(shown) if line[1:2] == ["checked"])
    assert shown[at + 1][:2] == ["done", "weigh"]


def test_a_drawing_of_any_name_is_well_formed():
    with heddle.open() as store:
        cell = store.cell("main/x")
        for name in ("a\x1bb", "<&>\"'", "\ufffe", "\U0001f600"):
            cell.sink(lambda value: None, name=name)
        drawn = xml.dom.minidom.parseString(store.graph()._repr_svg_())
        assert [text.firstChild.data for text in drawn.getElementsByTagName("text")] == ["a?b", "<&>\"'", "?", "\U0001f600"]


def points_of(path):
    """Where the line is level: the ends of its parts."""
    numbers = [[float(n) for n in part.split()] for part in re.split("[MLC]", path)[1:]]
    return [(part[-2], part[-1]) for part in numbers]


def test_no_arrow_of_a_graph_passes_behind_a_box():
    boxes = [drawing.Box(name, below) for name, below in [("a", ""), ("b", "main/b"), ("c", ""), ("d", "main/d"), ("e", "")]]
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3), (3, 4), (0, 4), (0, 4)]
    drawn = xml.dom.minidom.parseString(drawing.graph(boxes, edges))
    rects = [[float(rect.getAttribute(name)) for name in ("x", "y", "width", "height")]
             for rect in drawn.getElementsByTagName("rect") if rect.hasAttribute("rx")]
    lines = [path.getAttribute("d") for path in drawn.getElementsByTagName("path")]
    heads = [line for line in lines if line.endswith("z")]
    assert len(rects) == 5 and len(heads) == 8 and len(lines) == 16
    for line in lines:
        points = [] if line.endswith("z") else points_of(line)
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            for x, y, width, height in rects:
                assert not (x1 < x + width and x < x2 and y1 == y2 and y < y1 < y + height)
                assert y1 == y2 or not (x1 < x and x + width < x2)  # a curve passes no column


def test_a_graph_shows_cells_that_are_computed_and_that_are_given():
    with heddle.open() as store:
        given, computed = store.cell("main/given"), store.cell("main/computed")

        @store.computed(computed)
        def work():
            return computed_from()

        def computed_from():
            return given()

        computed.sink(lambda value: None, name="shown")
        store.settle()
        @store.on("main/orders", reads=[computed])
        def ordered(event):
            pass

        texts = re.findall(">([^<]+)</text>", store.graph()._repr_svg_())
        assert sorted(texts) == ["main/computed", "main/given", "on main/orders", "ordered", "shown", "work"]
        ordered.handler.stop()
        assert "ordered" not in store.graph()._repr_svg_()


def test_a_timeline_shows_how_long_a_step_took_where_that_is_known():
    journal = [{"at": 1000, "what": "start"}, {"at": 3000, "what": "done", "node": "a", "step": "0.1"},
               {"at": 7000, "what": "done", "node": "b", "step": "5.1"}, {"at": 9000, "what": "done", "node": "c", "step": "0.2"},
               {"at": 11000, "what": "end"}]
    drawn = timeline_of({"id": "w/k", "started": 1000}, journal)._repr_svg_()
    assert re.findall(">(done[^<]+)<", drawn) == ["done 2.000 s, took 2.000 s", "done 6.000 s", "done 8.000 s, took 6.000 s"]
    bars = [[float(n) for n in bar] for bar in re.findall('<rect x="([0-9.]+)" y="[0-9]+" width="([0-9.]+)"', drawn)]
    (first, length), (second, longer) = bars
    assert longer == pytest.approx(3 * length) and second == pytest.approx(first + length)
    assert re.findall(">([0-9]+ s)<", drawn) == [f"{n} s" for n in range(11)]
