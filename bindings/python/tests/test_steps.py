"""Steps that are more than an action: recorded values, constructors that run code, children, loops at once."""
from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

import heddle
import twin
from heddle import Workflow, workflow
from heddle.testing import resume_everywhere


def run(source: str, *args: object) -> object:
    async def main() -> object:
        async with heddle.open() as store:
            found = await twin.run_compiled(store, source, *args)
            if found.error is not None:
                raise found.error
            return found.value
    return asyncio.run(main())


def test_a_constructor_that_sets_nothing_is_executed() -> None:
    with pytest.raises(ValueError, match="^the constructor$"):
        run(twin.flow("return 1", "def __init__(self):\n    raise ValueError('the constructor')"))


def test_a_wrapper_that_takes_positions_is_called_so() -> None:
    source = """
import functools

def twice(function):
    @functools.wraps(function)
    async def wrapper(*args):
        return 2 * await function(*args)
    return wrapper

@action
@twice
async def double(n, m=1):
    return n + m

@workflow
class Flow(Workflow):
    async def run(self):
        return await double(4), await double(4, 5)
"""
    assert run(source) == (10, 18)


def test_recorded_values_are_not_awaited() -> None:
    now, chance, name = run(twin.flow("heddle.log('at %s', 3)\nreturn heddle.now(), heddle.random(), heddle.uuid()"))
    assert now > 1e9 and 0 <= chance < 1 and len(name) == 36


def test_a_constructor_with_code_runs_as_python() -> None:
    source = ("@dataclass\nclass Doubled:\n    x: int\n\n    def __post_init__(self):\n        self.x *= 2\n\n"
              + twin.flow("d = Doubled(await echo(4))\nreturn d.x"))
    assert run(source) == 8


def test_an_exception_with_its_own_init_runs_as_python() -> None:
    source = ("class Coded(Exception):\n    def __init__(self, code):\n        super().__init__(f'code {code}')\n        self.code = code\n\n"
              + twin.flow("try:\n    raise Coded(7)\nexcept Coded as e:\n    return e.code, e.args"))
    assert run(source) == (7, ("code 7",))


@pytest.mark.parametrize("body", ["kind = Coded\nraise kind", "kind = Coded\nraise Own('x') from kind"])
def test_a_class_with_code_in_a_variable_cannot_be_raised(body: str) -> None:
    with pytest.raises(heddle.Unsupported, match="the class 'Coded'") as caught:
        run(twin.flow(body))
    assert "in workflow Flow, <twin" in caught.value.__notes__[0]


JSON_INPUTS = """
@dataclass
class Line:
    name: str
    price: float = 1.0

@workflow
class Flow(Workflow):
    async def run(self, line: Line, lines: list[Line], named: dict[str, Line], maybe: "Line | None" = None, n: float = 2):
        return [type(line).__name__, lines, named, maybe, n, line.price]
"""


def test_inputs_from_json_become_what_run_says() -> None:
    names = twin.module_of(JSON_INPUTS, heddle)
    line = names["Line"]
    data = {"name": "tea"}

    async def main() -> object:
        async with heddle.open() as store:
            plain = await store.run(names["Flow"], data, [data, data], {"a": data}, data, 3)
            made = line("cup", 2.0)
            return plain, await store.run(names["Flow"], made, [made], {"a": made}), await store.run(names["Flow"], made, [], {}, None)

    tea = line("tea")
    plain, made, empty = asyncio.run(main())
    assert plain == ["Line", [tea, tea], {"a": tea}, tea, 3, 1.0]
    assert made == ["Line", [line("cup", 2.0)], {"a": line("cup", 2.0)}, None, 2, 2.0] and empty[1:4] == [[], {}, None]
    twin.forget(names)


def test_a_model_is_made_and_checked_by_pydantic() -> None:
    pytest.importorskip("pydantic")
    source = ("from pydantic import BaseModel\n\nclass Item(BaseModel):\n    id: int\n\n"
              + twin.flow("i = Item(id='3')\nreturn i.id, (await echo(i)).id"))
    assert run(source) == (3, 3)


def test_a_workflow_awaits_another() -> None:
    source = ("@workflow\nclass Inner(Workflow):\n    async def run(self, x, y=2):\n        return await add(x, y)\n\n"
              + twin.flow("return await Inner().run(5), await Inner().run(1, y=1)"))
    assert run(source) == (7, 2)


def test_a_parallel_loop_that_fails_keeps_what_came_before() -> None:
    body = "out = []\ntry:\n    out = []\n    for i in range(5):\n        out.append(await maybe(i, 3))\nexcept ValueError as e:\n    return out, str(e)"
    source = twin.flow(body, "concurrent = True")
    assert run(source) == ([0, 10, 20], "3 is too large")
    names = twin.module_of(source, heddle)
    assert any(node["kind"] == "FAN_HEAD" for node in names["Flow"].ir()["functions"][0]["nodes"])


def test_a_method_of_a_model_is_refused_or_unsupported() -> None:
    pytest.importorskip("pydantic")
    head = "from pydantic import BaseModel\n\nclass Item(BaseModel):\n    id: int\n\n"
    with pytest.raises(heddle.CompileError, match="the attribute copy of a Item"):
        run(head + twin.flow("i = Item(id=3)\nreturn i.copy()"))
    with pytest.raises(heddle.Unsupported):
        run(head + twin.flow("i = await echo([Item(id=3), 4])\nreturn i[0].copy()"))


def test_a_field_of_a_frozen_model_is_not_assigned() -> None:
    pydantic = pytest.importorskip("pydantic")
    config = "model_config = {'frozen': True}" if hasattr(pydantic.BaseModel, "model_validate") else "class Config:\n        frozen = True"
    head = f"from pydantic import BaseModel\n\nclass Item(BaseModel):\n    id: int\n    {config}\n\n"
    with pytest.raises(heddle.CompileError, match="Item is frozen: id cannot be assigned"):
        run(head + twin.flow("i = Item(id=3)\ni.id = 4"))
    with pytest.raises(heddle.Unsupported, match="assigning an attribute: a workflow does not know what the code of the class 'Item' says"):
        run(head + twin.flow("i = await echo([Item(id=3), 4])\ni[0].id = 4"))


def test_run_outside_of_a_store_runs_in_memory() -> None:
    names = twin.module_of(twin.flow("return await add(x, 2)", params="x"), heddle)
    assert asyncio.run(names["Flow"]().run(3)) == 5


@heddle.workflow
class Unsorted(heddle.Workflow):
    async def run(self, b: int, a: int = 5) -> list[int]:
        return [b, a]


def test_inputs_need_not_be_in_the_order_of_their_names():
    async def main():
        async with heddle.open() as store:
            return [await store.run(Unsorted, 1, 2), await store.run(Unsorted, a=2, b=1), await store.run(Unsorted, 1)]

    assert asyncio.run(main()) == [[1, 2], [1, 2], [1, 5]]


@pytest.mark.parametrize("body", ["x = [zip([1], [2])]\nawait echo(1)", "x = []\nx.append(map(str, [1]))\nawait echo(1)",
                                  "x = self.made()\nawait echo(1)", "return self.taken(map(lambda v: v + 1, [1]))",
                                  "x = {'a': (reversed([1]), 2)}\nreturn 1", "raise ValueError(enumerate([1]))"])
def test_an_iterator_that_is_kept_is_unsupported(body: str) -> None:
    rest = "def made(self):\n    return zip([1], [2])\n\ndef taken(self, values):\n    return list(values)"
    with pytest.raises(heddle.Unsupported, match=r"an iterator .* that is kept: take its elements with list") as caught:
        run(twin.flow(body, rest))
    assert "in workflow Flow, <twin" in caught.value.__notes__[0]


def test_an_instance_with_an_iterator_can_be_loaded_again() -> None:
    body = "x = []\ntry:\n    x.append(zip([1], [2]))\nexcept heddle.Unsupported:\n    pass\nawait echo(1)\nreturn len(x)"
    names = twin.module_of(twin.flow(body), heddle)
    assert resume_everywhere(names["Flow"]) == 2


def test_views_of_a_dict_survive_a_restart() -> None:
    body = "d = {'a': 1}\nk = d.keys()\nself.i = [d.items()]\nawait echo(1)\nd['b'] = 2\nawait echo(2)\nreturn list(k), list(self.i[0])"
    names = twin.module_of(twin.flow(body), heddle)
    assert resume_everywhere(names["Flow"]) == 4


def test_one_call_under_two_arguments_of_gather_is_unsupported() -> None:
    with pytest.raises(heddle.Unsupported, match="one call twice"):
        run(twin.flow("c = echo(1)\nd = c\nreturn await asyncio.gather(c, d)"))


def test_what_is_no_workflow_is_said() -> None:
    @workflow
    class Base(Workflow):
        async def run(self) -> int:
            return 1

    class Child(Base):
        async def run(self) -> int:
            return 2

    class Plain:
        pass

    async def function() -> None:
        pass

    def said(what: Any) -> str:
        with heddle.open() as store, pytest.raises(TypeError) as error:
            asyncio.run(store.run(what))
        return str(error.value)
    assert said(Child) == "Child is no workflow: put @workflow above its class"
    assert "give a class that derives" in said(Plain) and "give a class that derives" in said(function)
    assert said(Base()) == "give the class, not an object of it: store.run(Base, ...)"
    with pytest.raises(TypeError, match="Child is no workflow"):
        Child()
    with pytest.raises(TypeError, match="Child is no workflow"):
        Child.explain()
    with pytest.raises(heddle.CompileError, match="Child is no workflow yet"):
        @workflow
        class Parent(Workflow):
            async def run(self) -> int:
                return await Child().run()


def test_what_cannot_be_stored_ends_its_instance_and_no_other() -> None:
    with pytest.raises(ValueError, match="Circular reference"):
        run(twin.flow("x = []\nx.append(x)\nreturn x"))
    with pytest.raises(ValueError, match="Circular reference"):
        run(twin.flow("x = []\nx.append(x)\nraise KeyError(x)"))

    async def main() -> None:
        text = twin.flow("x = ()\nfor i in range(250):\n    x = (x,)\nawait echo(1)\nreturn 5")
        module = twin.module_of(text + twin.flow("return await echo(await echo(7))").replace("Flow", "Good"), heddle)
        bad, good = module["Flow"], module["Good"]
        async with heddle.open() as store:
            runs = [store.run(cls) for _ in range(5) for cls in (bad, good)]
            results = await asyncio.gather(*runs, return_exceptions=True)
        assert results[1::2] == [7] * 5
        assert all(isinstance(error, heddle.Unsupported) and "cannot be stored" in str(error) for error in results[::2])
    asyncio.run(asyncio.wait_for(main(), 60))


def test_stars_of_an_action_that_nothing_can_be_taken_from() -> None:
    """The texts are those that docs/PYTHON.md gives as differences from CPython."""
    with pytest.raises(TypeError, match="^Value after \\* must be an iterable, not int$"):
        run(twin.flow("return await add(*5)"))
    with pytest.raises(TypeError, match="^'int' object is not a mapping$"):
        run(twin.flow("return await add(**5)"))


@pytest.mark.parametrize("body", ["x = Colour.RED\nx.y = 5", "x = Point\nx.y = 5", "x = ValueError(1)\nx.a = 2\ndel x.a"])
def test_what_other_workflows_would_see_is_not_changed(body: str) -> None:
    with pytest.raises(heddle.Unsupported, match="attribute"):
        run(twin.flow(body))


HIDING = """
from decimal import Decimal

@action
async def price():
    return Decimal("2")

"""


@pytest.mark.parametrize("body, rest", [
    ("p = await price()\ntry:\n    return p + 1\nexcept BaseException:\n    return 'hidden'", ""),
    ("p = await price()\ntry:\n    return p + 1\nexcept:\n    return 'hidden'", ""),
    ("return await asyncio.gather(self.part(), self.part(), return_exceptions=True)",
     "async def part(self):\n    p = await price()\n    return 1 if p else 2"),
    ("p = await price()\ntry:\n    q = p + 1\nfinally:\n    return 'hidden'", ""),
    ("p = await price()\ntry:\n    q = p + 1\nfinally:\n    await fail()", ""),
    ("p = await price()\nfor i in range(3):\n    try:\n        q = p + 1\n    finally:\n        continue\nreturn 'hidden'", ""),
    ("p = await price()\nwhile True:\n    try:\n        q = p + 1\n    finally:\n        try:\n            break\n        finally:\n            q = 2\nreturn 'hidden'", ""),
    ("p = await price()\ntry:\n    try:\n        q = p + 1\n    finally:\n        await echo(q)\nexcept UnboundLocalError:\n    return 'hidden'", ""),
    ("p = await price()\nasync with asyncio.timeout(5):\n    try:\n        q = p + 1\n    finally:\n        return 'hidden'", ""),
    ("return await self.part()", "async def part(self):\n    p = await price()\n    try:\n        q = p + 1\n    finally:\n        return 'hidden'"),
])
def test_nothing_hides_what_a_workflow_cannot_do(body, rest) -> None:
    with pytest.raises(heddle.Unsupported, match="the code of the class 'Decimal'"):
        run(HIDING + twin.flow(body, rest))


def test_the_caller_of_a_workflow_catches_what_it_cannot_do_as_an_exception() -> None:
    with pytest.raises(Exception, match=r"Decimal\(x\)") as raised:
        run(HIDING + twin.flow("p = await price()\nreturn p + 1"))
    assert type(raised.value) is heddle.Unsupported


@pytest.mark.parametrize("body", ["p = await price()\n    p + 1", "await refuse()"])
def test_a_workflow_catches_what_it_cannot_do_by_its_own_name(body) -> None:
    head = HIDING + "import heddle\n\n@action\nasync def refuse():\n    raise heddle.Unsupported('Decimal')\n\n"
    with pytest.raises(heddle.Unsupported, match="Decimal"):
        run(head + twin.flow(f"try:\n    {body}\nexcept Exception:\n    return 'hidden'"))
    assert run(head + twin.flow(f"try:\n    {body}\nexcept heddle.Unsupported:\n    return 'caught'")) == "caught"


@pytest.mark.parametrize("given, says", [
    ({"timeout": "3s"}, "timeout is a number of seconds or a timedelta, not '3s'"),
    ({"retry_on": "OSError"}, "retry_on takes a class of exceptions, or a tuple of them"),
    ({"retry_on": ["OSError"]}, "retry_on takes a class of exceptions, or a tuple of them"),
    ({"retry_on": 3}, "retry_on takes a class of exceptions, or a tuple of them"),
    ({"retries": "3"}, "retries is an int, not '3'"),
    ({"priority": 1.5}, "priority is an int, not 1.5")])
def test_a_wrong_option_is_named(given, says):
    with pytest.raises(TypeError, match=re.escape(says)):
        heddle.action(**given)


def test_a_timedelta_is_seconds():
    @heddle.action(timeout=timedelta(minutes=1), backoff=timedelta(seconds=2), retries=1)
    def act() -> None: ...

    assert (act.defaults.timeout, act.defaults.backoff) == (60.0, 2.0)


def test_keys_and_queues_of_starts_are_texts():
    with heddle.open() as store:
        with pytest.raises(TypeError, match=r"options\(key=...\) takes a str, not 17: write key='17'"):
            store.options(key=17)
