"""Every block of docs/PYTHON.md, and the Python of README.md, does what it shows; types are as mypy wants them.

A block of Python is run in the order of the document; the blocks of a section (##) share their names. ``file=NAME`` also
keeps it as a file, ``only`` does nothing else. ``sh run`` is run in the same folder. A block of output is what the block
before it prints."""
from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import heddle

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(heddle.__file__)))
ROOT = os.environ.get("HEDDLE_ROOT") or os.path.dirname(os.path.dirname(PACKAGE))
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)
RUNNER = """
import sys
def run_block(name):
    with open(name) as file:
        text = file.read()
    exec(compile(text, name, "exec"), globals())
    sys.stdout.flush()
    print("\\x00", flush=True)
for block in sys.argv[1:]:
    run_block(block)
"""


def sections(document):
    """Lists of (language, marks, text, line) for each section with blocks."""
    with open(os.path.join(ROOT, document), encoding="utf-8") as file:
        whole = file.read()
    for part in re.split(r"(?m)^(?=## )", whole):
        blocks = [(m[1], m[2].split(), m[3]) for m in FENCE.finditer(part)]
        if any(language == "python" for language, _, _ in blocks):
            yield part.splitlines()[0].strip("# "), blocks


def expected_of(blocks, i):
    return blocks[i + 1][2] if i + 1 < len(blocks) and blocks[i + 1][0] == "output" else None


def environment(folder):
    bin = folder / "bin"
    bin.mkdir(exist_ok=True)
    python = bin / "python3"
    if not python.exists():
        python.symlink_to(sys.executable)
    return dict(os.environ, PATH=f"{bin}:{os.environ['PATH']}", PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")


def run(command, folder):
    return subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=120)


def run_python(folder, pending):
    """The blocks gathered so far, in one process."""
    (folder / "session.py").write_text(RUNNER)
    out = run([sys.executable, "session.py", *(name for name, _ in pending)], folder)
    assert out.returncode == 0, out.stderr
    printed = out.stdout.split("\x00\n")
    for (name, expected), text in zip(pending, printed):
        if expected is not None:
            assert text == expected, name
        else:
            assert text == "", name


def check(folder, blocks, shell):
    pending = []
    for i, (language, marks, text) in enumerate(blocks):
        if language == "python":
            named = [mark[5:] for mark in marks if mark.startswith("file=")]
            name = named[0] if named else f"block{i}.py"
            (folder / name).write_text(text)
            if "only" not in marks:
                pending.append((name, expected_of(blocks, i)))
        elif language == "sh" and "run" in marks and shell:
            out = run(["bash", "-c", text], folder)
            assert out.stdout == (expected_of(blocks, i) or ""), out.stderr
    if pending:
        run_python(folder, pending)


@pytest.mark.parametrize("document", ["docs/PYTHON.md", "README.md"])
def test_what_a_document_shows(document, tmp_path):
    found = list(sections(document))
    for title, blocks in found:
        check(tmp_path, blocks, document != "README.md")  # tools/doc-blocks runs the shell of the others
    assert found or document == "README.md"


def test_types():
    """The package, and the examples."""
    folder = os.path.join(ROOT, "examples", "python")
    examples = [name[:-len(".py")] for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    chosen = [option for name in examples for option in ("-m", name)]
    out = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull, "-p", "heddle", *chosen],
                         env=dict(os.environ, MYPYPATH=f"{PACKAGE}:{folder}"), cwd="/", capture_output=True, text=True)
    assert examples and out.returncode == 0, out.stdout


PROGRAM = """
from typing import Optional
import heddle
from heddle import Workflow, action, workflow

@action
async def charge(order: int) -> str:
    return str(order)

@action(retries=3)
def ship(receipt: str) -> bool:
    return True

@workflow
class Checkout(Workflow):
    async def run(self, order: int) -> bool:
        receipt = await charge(order)
        reveal_type(receipt)
        return await ship(receipt)

store = heddle.open("x.db")
reveal_type(store.cell("main/n", int)())
perhaps: Optional[int] = store.cell("main/n", Optional[int])()

@store.computed(store.cell("main/n", int))
def count() -> int:
    return 1

@store.effect(debounce=0.2)
def show() -> None:
    print(count(), perhaps, show.__name__)

@store.effect
async def look() -> None: ...

show.node.debounce(0.5)
look.node.stop()
print(store.why(count), count.node)

async def main() -> None:
    reveal_type(await store.run(Checkout, 17))
    handle = await store.options(key="k").start(Checkout, order=17)
    reveal_type(await handle.result())
"""


def test_types_of_a_program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    out = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"], cwd=tmp_path,
                         env=dict(os.environ, MYPYPATH=PACKAGE), capture_output=True, text=True)
    assert 'Revealed type is "builtins.str"' in out.stdout and 'Revealed type is "Union[builtins.int, None]"' in out.stdout
    assert out.stdout.count('Revealed type is "builtins.bool"') == 2
    assert "error" not in out.stdout
    wrong = PROGRAM.replace("await charge(order)", 'await charge("17")').replace("store.run(Checkout, 17)", 'store.run(Checkout, "17")')
    (tmp_path / "program.py").write_text(wrong)
    out = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"], cwd=tmp_path,
                         env=dict(os.environ, MYPYPATH=PACKAGE), capture_output=True, text=True)
    assert out.stdout.count('incompatible type "str"; expected "int"') == 2


def test_everything_public_has_a_docstring():
    import inspect

    missing = []
    for name in heddle.__all__:
        thing = getattr(heddle, name)
        if not inspect.getdoc(thing):
            missing.append(name)
        if inspect.isclass(thing) and thing.__module__.startswith("heddle"):
            for member, value in vars(thing).items():
                if not member.startswith("_") and inspect.isfunction(value) and not value.__doc__:
                    missing.append(f"{name}.{member}")
    assert not missing


def test_installed_by_pip_it_works(tmp_path):
    """A wheel of what is here, in an environment of its own, without a network; pydantic, for the example, is the system's."""
    if not os.path.exists(os.path.join(ROOT, "bindings/python/build_wheel.py")):
        pytest.skip("no sources here")
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(environment)], check=True)
    make = f"import sys; sys.path.insert(0, {os.path.join(ROOT, 'bindings/python')!r}); import build_wheel, pathlib; " \
           f"build_wheel.HERE = pathlib.Path({PACKAGE!r}); print(build_wheel.write_wheel({str(tmp_path)!r}, build_wheel.package_files()))"
    wheel = subprocess.run([sys.executable, "-c", make], check=True, capture_output=True, text=True).stdout.strip()
    assert "-cp311-abi3-" in wheel
    python = environment / "bin" / "python3"
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--disable-pip-version-check",
                    str(tmp_path / wheel)], check=True)
    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    out = subprocess.run([str(python), "-c", "import heddle; s = heddle.open(); s.cell('main/x').set(5); print(s.cell('main/x')())"],
                         env=bare, capture_output=True, text=True)
    assert out.stdout == "5\n", out.stderr
    out = subprocess.run([str(python), os.path.join(ROOT, "examples/python/pipeline.py")], env=bare, cwd=tmp_path,
                         capture_output=True, text=True)
    assert out.stdout == "270\n", out.stderr
    out = subprocess.run([str(environment / "bin" / "heddle-worker"), "--help"], env=bare, capture_output=True, text=True)
    assert "--processes" in out.stdout, out.stderr
