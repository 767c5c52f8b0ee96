"""What the compiler makes: the seed's graph, options, all methods of the built-in types, and how long it takes."""
from __future__ import annotations

import os
import pathlib
import sys
import time

import pytest

import heddle
import twin
from heddle.compiler.builtin import METHODS

ROOT = pathlib.Path(os.environ.get("HEDDLE_ROOT") or pathlib.Path(__file__).resolve().parents[3])
EXAMPLES = ROOT / "examples" / "python"


def nodes_of(names: dict, kind: str) -> list[dict]:
    return [node for function in names["Flow"].ir()["functions"] for node in function["nodes"] if node["kind"] == kind]


def test_the_pipeline_has_the_graph_of_its_drawing() -> None:
    pytest.importorskip("pydantic")
    sys.path.insert(0, str(EXAMPLES))
    try:
        import pipeline
    finally:
        sys.path.remove(str(EXAMPLES))
    function = pipeline.DataPipelineWorkflow.ir()["functions"][0]
    kinds = [node["kind"] for node in function["nodes"]]
    edges = {edge[2] if len(edge) > 2 else "FORWARD" for edge in function["edges"]}
    assert kinds.count("LOOP_HEAD") == 1 and kinds.count("FAN_HEAD") == 1
    assert {"FORWARD", "CONTINUE", "BREAK", "BACK"} <= edges
    explained = str(pipeline.DataPipelineWorkflow.explain())
    assert "runs in parallel: process_item" in explained
    assert "its body has 2 steps" in explained


def test_loops_that_the_source_does_not_have_are_not_explained() -> None:
    body = "async with asyncio.TaskGroup() as g:\n    t = g.create_task(echo(1))\nfor i in [1]:\n    await echo(i)\nreturn t.result()"
    explained = str(twin.module_of(twin.flow(body), heddle)["Flow"].explain())
    assert "cancel runs" not in explained and explained.count("one iteration after the other") == 1


def test_a_condition_that_takes_steps_is_shown_as_it_was_written() -> None:
    body = ("if 1 and 2 < (\n        await echo(1)) or await echo(0):\n    return 1\n"
            "while not await echo(1): pass\nreturn 2 if await echo(2) else [i for i in [1] if await echo(i)]")
    flow = twin.module_of(twin.flow(body), heddle)["Flow"]
    shown = [line.split("   ")[-1] for line in str(flow.explain()).splitlines() if " GUARD 0 " in line]
    assert shown == ["1", "1 and 2 < ( await echo(1))", "1 and 2 < ( await echo(1)) or await echo(0)",
                     "not await echo(1)", "await echo(2)", "await echo(i)"]
    assert "%" not in str(flow.explain())


def test_the_name_of_an_argument_is_no_variable() -> None:
    """A variable that is read before it is assigned is deleted first, so that it exists: these are not read."""
    body = ("d = dict(name='x')\ns = 'n'.replace('name', 'x')\nt = '3'.join(['name', 'x'])\n"
            "f = sorted([s, t], key=lambda name: name)\nawait echo(1)\nx = 5\nreturn [d, s, t, f, x]")
    assert not any("del" in map(str, form) for node in nodes_of(twin.module_of(twin.flow(body), heddle), "CALC")
                   for form in node.get("do", ()))
    body = "d = dict(name=x)\nawait echo(1)\nx = 5\nreturn d"
    assert any("del" in map(str, form) for node in nodes_of(twin.module_of(twin.flow(body), heddle), "CALC")
               for form in node.get("do", ()))


def test_no_pure_method_of_a_built_in_type_is_forgotten() -> None:
    for cls in (str, bytes, int, float, list, tuple, dict, set):
        for name in dir(cls):
            if not name.startswith("_") and callable(getattr(cls, name)):
                assert name in METHODS, f"{cls.__name__}.{name}"
                names = twin.module_of(twin.flow(f"x = 1\nreturn x.{name}()"), heddle)
                assert names["Flow"].ir()["name"] == "Flow"


def test_options_of_a_call_come_before_those_of_the_action() -> None:
    names = twin.module_of("@action(retries=2, backoff=0.5, timeout=3, retry_on=KeyError)\nasync def tried(x):\n    return x\n"
                           + twin.flow("await tried(1)\nawait tried(2).options(timeout=0.5, retries=4)"), heddle)
    first, second = nodes_of(names, "ACTION")
    assert first["retry"] == {"attempts": 3, "backoff": 0.5, "on": ["KeyError"]} and first["timeout"] == 3
    assert second["retry"]["attempts"] == 5 and second["timeout"] == 0.5


def test_a_retry_policy_counts_all_attempts() -> None:
    names = twin.module_of(twin.flow("return await self.run_action(echo(1), retry=heddle.RetryPolicy(attempts=3), timeout=9)"), heddle)
    (node,) = nodes_of(names, "ACTION")
    assert node["retry"]["attempts"] == 3 and node["timeout"] == 9


def test_the_version_does_not_depend_on_positions() -> None:
    def without(ir: object) -> object:
        if isinstance(ir, dict):
            return {key: without(value) for key, value in ir.items() if key != "at"}
        return [without(item) for item in ir] if isinstance(ir, list) else ir
    one = twin.module_of(twin.flow("x = await echo(1)\nreturn x"), heddle)["Flow"].ir()
    two = twin.module_of("\n\n" + twin.flow("# a comment\nx = await echo(1)\n\nreturn x"), heddle)["Flow"].ir()
    assert without(one) == without(two)


def test_classes_that_name_each_other_are_looked_into_once() -> None:
    """Whether code of a class decides a comparison is looked for inside of the dataclasses that it holds."""
    many = range(14)
    fields = "".join(f"    f{i}: \"C{i}\" = None\n" for i in many)
    head = "from dataclasses import dataclass\n\n" + "".join(f"@dataclass\nclass C{i}:\n{fields}\n" for i in many)
    begun = time.process_time()
    names = twin.module_of(head + twin.flow("return C0() == C1()"), heddle)
    assert nodes_of(names, "RETURN") and time.process_time() - begun < 5


def test_two_hundred_statements_are_compiled_in_twenty_milliseconds() -> None:
    body = "x = 0\n" + "\n".join(f"x = x + {i}\ny{i} = await add(x, b={i})\nif x > {i}:\n    x -= y{i}" for i in range(50))
    names = twin.module_of(twin.flow(body + "\nreturn x"), heddle)
    compiled = names["Flow"].__heddle__
    best = min(_seconds(compiled.compile) for _ in range(7))
    assert best < 0.020, f"{best * 1000:.1f} ms"


def _seconds(work: object) -> float:
    start = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - start
