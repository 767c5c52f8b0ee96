"""Every refused construct: where the refusal points, what it says, and what it advises.

In a body, the text between « and » is what the caret must stand under."""
from __future__ import annotations

import asyncio
import linecache
import os
import pathlib
import subprocess
import sys
import traceback

import pytest

import heddle
import heddle.testing
import twin

REFUSED = [
    ("«import math»", "an import", "top of the file"),
    ("«def f():\n    pass»", "a function inside", "method of the workflow"),
    ("«class A:\n    pass»", "a class inside", "top of the file"),
    ("«global LIMIT»", "`global`", "an input"),
    ("«with echo(1):\n    pass»", "`with`", "in an action"),
    ("«async for x in echo(1):\n    pass»", "`async for`", "returns a list"),
    ("«yield 3»", "`yield`", "in a list"),
    ("x = «lambda: 3»", "a lambda", "helper method"),
    ("x = «(i for i in [1])»", "a generator", "Write a list"),
    ("x = sum«(await echo(i) for i in [1])»", "a generator that waits", "Write a list"),
    ("for x in «map(int, ['1', 'a'])»:\n    await echo(x)", "computes an element when its turn", "Write a list"),
    ("for x in «(1 // y for y in [1, 0])»:\n    await echo(x)", "computes an element when its turn", "Write a list"),
    ("for i, x in enumerate(«filter(str.upper, ['1'])»):\n    await echo(x)", "computes an element when its turn", "Write a list"),
    ("for x, y in «zip([1], [2, 3], strict=True)»:\n    await echo(x)", "only after the last turn", "Write list(...) around it"),
    ("for i, x in enumerate(«zip([1], [2, 3], strict=LIMIT)»):\n    pass", "only after the last turn", "Write list(...) around it"),
    ("x = [await echo(y) for y, z in «zip([1], [2, 3], strict=True)»]", "only after the last turn", "Write list(...) around it"),
    ("await asyncio.sleep(«datetime.timedelta(1)»)", "asyncio.sleep takes seconds, and is given a timedelta", ".total_seconds()"),
    ("d = datetime.timedelta(1)\nawait asyncio.wait_for(echo(1), timeout=«d»)", "asyncio.wait_for takes seconds", ".total_seconds()"),
    ("async with asyncio.timeout(«datetime.timedelta(1)»):\n    pass", "asyncio.timeout takes seconds", ".total_seconds()"),
    ("await heddle.signal('s', timeout=«datetime.timedelta(1)»)", "heddle.signal takes seconds", ".total_seconds()"),
    ("raise ExceptionGroup(«Word.A», [ValueError(1)])", "the message of an ExceptionGroup is a member of Word", ".value"),
    ("match await echo(1):\n    case «Point(a, b, c)»:\n        pass", "Point() accepts 2 positional patterns", "by name: Point(x=0)"),
    ("match datetime.date(2024, 1, 1):\n    case «3»:\n        pass", "a case compares with a date", "case x if x == 3"),
    ("xs = [datetime.date(2024, 1, 1)]\n«xs.remove(xs[0])»", "remove() of what code of the class date compares", "del xs[xs.index(x)]"),
    ("xs = [datetime.date(2024, 1, 1)]\nx = max(«*xs»)", "max() of objects with code of the class date is called with *", "max([...])"),
    ("xs = [(datetime.date(2024, 1, 1), [1])]\nx = «max(xs)»", "max() of values with a date in them", "sorted([...], reverse=True)[0]"),
    ("xs = [(1, datetime.date(2024, 1, 1))]\n«xs.sort()»", "sort() by objects", "xs[:] = sorted(xs"),
    ("x = «'{a}'.format(**{'a': datetime.date(2024, 1, 1)})»", "is called with * or **", "one by one"),
    ("x = {«(1, datetime.date(2024, 1, 1))»: 2}", "a date as a key", "str(...)"),
    ("x = «type('A', (), {})»", "makes a class", "top of the file"),
    ("x = await «Other(5)».run(3)", "Other() is given arguments", "Give them to run: `await Other().run(...)`."),
    ("x = await asyncio.gather(echo(1), «Other(k=await echo(1))».run(3))", "Other() is given arguments", "Give them to run"),
    ("d = {'x': 1}\nawait asyncio.gather(«echo(**d)», echo(2))", "a call with * or ** that is not awaited at once", "one by one"),
    ("d = [1]\nawait asyncio.gather(echo(2), asyncio.wait_for(«echo(*d)», 5))", "a call with * or ** that is not awaited at once", "one by one"),
    ("d = [1]\ncalls = [«echo(*d)»]\nawait asyncio.gather(*calls)", "that is not awaited at once", "one by one"),
    ("d = {'x': 1}\nt = asyncio.create_task(«echo(**d)»)\nawait t", "that is not awaited at once", "one by one"),
    ("t = self.helper(«echo(**{'x': 1})»)\nawait t", "that is not awaited at once", "one by one"),
    ("async with asyncio.TaskGroup() as g:\n    g.create_task(«echo(*[1])»)", "that is not awaited at once", "one by one"),
    ("x = [await echo(y) for y, z in zip(«map(int, '12')», [1])]", "computes an element when its turn", "Write a list"),
    ("x = «zip([1], [2])»", "an iterator, which cannot be kept", "list("),
    ("self.x = «map(str, [2])»", "an iterator, which cannot be kept", "list("),
    ("x: object = «reversed([2])»", "an iterator, which cannot be kept", "list("),
    ("x = Colour.RED in «Colour»", "`in` of the class Colour", "isinstance(x, Colour)"),
    ("x = Tagged(1)\nreturn «x.KIND»", "an attribute of the class Tagged", "Write Tagged.KIND."),
    ("async with asyncio.TaskGroup() as g:\n    t = g.create_task(echo(1))\nreturn «t.done()»", "done() of a task", "Await the task"),
    ("try:\n    await echo(1)\nexcept ExceptionGroup as g:\n    return «g.split(ValueError)»", "split of an ExceptionGroup", ".exceptions"),
    ("try:\n    await echo(1)\nexcept ExceptionGroup as g:\n    return «g.split((KeyError, OSError))»", "split of an ExceptionGroup", ".exceptions"),
    ("x = isinstance(3, «complex»)", "no object of the class complex", "Leave complex out"),
    ("x = isinstance(3, (int, «bytearray»))", "no object of the class bytearray", "in actions only"),
    ("x = «slice»", "no object of the class slice", "in actions only"),
    ("x = max([1], key=«{1: 2}.get»)", "the method get of an object is given", "lambda x: name.get(x)"),
    ("x = list(map(«'a'.join», *[[1]]))", "the method join of an object is given", "lambda x: name.join(x)"),
    ("await asyncio.gather(echo(1), «5»)", "takes calls, and 5 is none", "Leave it out"),
    ("try:\n    await echo(1)\nexcept ValueError as e:\n    «e.add_note('n')»", "add_note() of an exception", "into the text"),
    ("«echo(3)»", "not awaited", "`await`"),
    ("x = [«echo(3)»]", "not awaited", "asyncio.gather"),
    ("x = «ordinary(3)»", "ordinary function", "@action"),
    ("await «coroutine(3)»", "ordinary async function", "@action"),
    ("«print(3)»", "ordinary function", "heddle.log"),
    ("x = «time.time()»", "ordinary function", "heddle.now()"),
    ("x = «random.random()»", "ordinary function", "heddle.random()"),
    ("x = «uuid.uuid4()»", "ordinary function", "heddle.uuid()"),
    ("x = «datetime.datetime.now()»", "ordinary function", "heddle.now()"),
    ("x = «datetime.datetime.fromtimestamp(heddle.now())»", "ordinary function", "timedelta(seconds=heddle.now())"),
    ("x = «heddle.now().isoformat()»", "isoformat is no method", "heddle.now() is a float"),
    ("x = await «heddle.now()»", "heddle.now() is not awaited", "without `await`"),
    ("«LOGGER.info('x')»", "info is no method", "heddle.log"),
    ("x = «heddle.open('x')»", "ordinary function", "in actions"),
    ("x = await «asyncio.to_thread(ordinary, 3)»", "asyncio.to_thread is not supported", "runs in a thread"),
    ("x = «hash(3)»", "ordinary function", "differs from run to run"),
    ("x = «iter([1])»", "ordinary function", "Loop over"),
    ("x = «next([1])»", "ordinary function", "index"),
    ("await «Bare().run(3)»", "Bare is no workflow yet", "@workflow"),
    ("x = «time»", "module", "in an action"),
    ("x = «TABLE»", "list outside", "tuple"),
    ("x = «CHANGED»", "declares CHANGED as global", "input"),
    ("x = «99999999999999999999»", "beyond 64 bits", "action"),
    ("x = «3j»", "complex", "in an action"),
    ("x = «[1] @ [2]»", "multiplies matrices", "in an action"),
    ("x = [1]\n«x @= [2]»", "multiplies matrices", "in an action"),
    ("await asyncio.gather(«[echo(1), echo(2)]»)", "one by one", "asyncio.gather(*[...])"),
    ("return await asyncio.gather(«(echo(i) for i in [1])»)", "one by one", "asyncio.gather(*(...))"),
    ("x = «datetime.timezone.utc»", "no constant", "`timezone(timedelta(0))`"),
    ("await «asyncio.wait([echo(1)])»", "not supported", "asyncio.gather"),
    ("await «asyncio.shield(echo(1))»", "not supported", "asyncio.gather"),
    ("x = «asyncio.create_task(echo(1))»", "the task x is not awaited", "a later statement of the same block"),
    ("«asyncio.create_task(echo(1))»", "starts what nothing waits for", "task = asyncio.create_task"),
    ("x = [1, «asyncio.ensure_future(echo(1))»]", "starts what nothing waits for", "await the task"),
    ("t = «asyncio.create_task(3)»\nawait t", "create_task takes a call", "create_task(charge"),
    ("t = asyncio.create_task(echo(1))\nif 1:\n    await «t»", "the task t is not awaited", "same block"),
    ("t = asyncio.create_task(echo(1))\nx = [«t»]\nawait t", "the task t is not awaited", "same block"),
    ("t = asyncio.create_task(echo(1))\nx = 1 if LIMIT else await «t»", "the task t is not awaited", "same block"),
    ("t = asyncio.create_task(echo(1))\nx = (await echo(1)) + await «t»", "the task t is not awaited", "same block"),
    ("t = asyncio.create_task(echo(1))\nawait asyncio.wait_for(«t», 3)", "the task t is not awaited", "same block"),
    ("t = asyncio.create_task(echo(1))\n«t.cancel»()", "t.cancel of a task", "asyncio.timeout"),
    ("t = asyncio.create_task(echo(1))\nif «t.done»():\n    x = 1\nawait t", "t.done of a task", "asyncio.timeout"),
    ("a = asyncio.create_task(echo(1))\nd, p = await «asyncio.wait({a})»", "asyncio.wait is not supported", "asyncio.gather"),
    ("a = asyncio.create_task(echo(1))\nx = await «asyncio.shield(a)»", "asyncio.shield is not supported", "asyncio.timeout"),
    ("t = asyncio.create_task(echo(1))\nawait t\n«t.cancel»()", "t.cancel of a task", "asyncio.timeout"),
    ("t = asyncio.create_task(echo(1))\nawait echo(2)\nif LIMIT:\n    «return 3»\nawait t", "`return` before the task t is awaited", "Await t"),
    ("for i in [1]:\n    t = asyncio.create_task(echo(1))\n    await echo(2)\n    if i:\n        «break»\n    await t", "`break` before the task", "Await t"),
    ("t = asyncio.create_task(echo(1))\nif LIMIT:\n    «return 3»\nawait t", "`return` before the task t is awaited", "Await t"),
    ("x = «Colour['NO']»", "Colour has no member 'NO'", "Its members are RED, BLUE."),
    ("d = {}\nfor d[LIMIT] in «zip(d, [1])»:\n    pass", "the body may change what zip(d, [1]) goes through", "list(...)"),
    ("return await «Flow.helper(3)»", "the method Flow.helper is called without self", "Write Flow.helper(self, ...)."),
    ("return await «super(int, self)».helper(3)", "super(int, self) is not supported", "Write super().name(...)."),
    ("return await «super(Flow, self).helper»(3)", "no class above Flow has a method helper", "leave out super()"),
    ("match LIMIT:\n    case «int(1, 2)»:\n        pass", "int() accepts 1 positional pattern, and 2 are given", "int(x)"),
    ("x = 'RED'\ny = «Colour[x]»", "a subscript of the class Colour", "Colour(value)"),
    ("x = «list[int]»", "a subscript of the class list", "the class alone"),
    ("f = «echo»", "the action echo is no value", "`await echo(...)`"),
    ("x = «asyncio.Lock()»", "ordinary function", "Of asyncio there are"),
    ("x = «json.dumps(3)»", "ordinary function", "Call it in an action"),
    ("x = 1\nt = asyncio.create_task(echo(1))\nawait echo(2)\ndel «x»\nawait t", "deleted while the task t runs", "Set it to None"),
    ("a = asyncio.create_task(echo(1))\nawait echo(2)\nb = «asyncio.create_task(echo(3))»\nawait a\nawait b", "begins while a runs", "Await b before a"),
    ("ts = [«asyncio.create_task(echo(i))» for i in [1]]\nawait echo(2)\nawait asyncio.gather(*ts)", "begin earlier", "behind that statement"),
    ("ts = [asyncio.create_task(echo(i)) for i in [1]]\nfor t in «ts»:\n    await t", "the task ts is not awaited", "same block"),
    ("«async with x:\n    pass»\nx = 1", "`async with`", "asyncio.TaskGroup()"),
    ("async with asyncio.TaskGroup() as g:\n    g.create_task(echo(2))\n    «await echo(1)»", "`await` behind create_task", "behind the block"),
    ("async with asyncio.TaskGroup() as g:\n    for x in [1]:\n        g.create_task(echo(«await echo(1)»))", "`await` behind create_task", "behind the block"),
    ("async with asyncio.TaskGroup() as g:\n    g.create_task(echo(2))\n    async with «asyncio.TaskGroup()» as h:\n        h.create_task(echo(1))",
     "a TaskGroup, which waits for its tasks, behind create_task", "into a helper method"),
    ("async with asyncio.TaskGroup() as g:\n    async with «asyncio.TaskGroup()» as h:\n        g.create_task(echo(1))",
     "a TaskGroup, which waits for its tasks, behind create_task", "behind the outer block"),
    ("async with asyncio.TaskGroup() as g:\n    for i in [1]:\n        async with «asyncio.TaskGroup()» as h:\n            h.create_task(echo(1))\n"
     "        g.create_task(echo(2))", "a TaskGroup, which waits for its tasks, behind create_task", "behind the outer block"),
    ("«async with asyncio.timeout(5), asyncio.TaskGroup() as g:\n    g.create_task(echo(1))»", "one `async with` of several", "inside of the other"),
    ("async with asyncio.TaskGroup() as g:\n    x = «g»", "no value", "g.create_task"),
    ("async with asyncio.TaskGroup() as g:\n    «g.create_task(3)»", "takes a call", "create_task(charge"),
    ("x = 1\nasync with asyncio.timeout(1):\n    del «x»", "a variable is deleted", "Set it to None"),
    ("k = 1\nfor a in «(v * k for v in [1, 2])»:\n    k = 2", "computes an element", "Write a list"),
    ("xs = [1]\nys = xs\nfor a, b in «zip(xs, xs)»:\n    ys.append(a)", "may change", "list("),
    ("x = «echo(1)»\nreturn x", "not awaited", "`await`"),
    ("x = [«asyncio.wait_for(echo(1), 1)»]\nawait asyncio.gather(*x)", "kept to be awaited", "in a helper method"),
    ("await asyncio.gather(*[«asyncio.wait_for(echo(x), y)» for x in [1] for y in [1]])", "kept to be awaited", "in a helper method"),
    ("await asyncio.gather(*[«echo(*[x])» for x in [1]])", "a call with * or **", "one by one"),
    ("await asyncio.gather(*[asyncio.wait_for(«ordinary(x)», 1) for x in [1]])", "ordinary function", "@action"),
    ("x = «self»", "stands alone", "attributes"),
    ("x = «self.nothing»", "no attribute nothing", "Set it"),
    ("x = «self.helper»", "the method helper", "Call it"),
    ("x = await «self.plain(1)»", "is not async", "Leave out `await`"),
    ("x = «self.helper(1)»", "not awaited", "`await`"),
    ("x = await «self.helpr»(1)", "Flow has no method helpr", "Did you mean helper?"),
    ("x = «self.plian»(1)", "Flow has no method plian", "Did you mean plain?"),
    ("x = [«self.zzz»(y) for y in [1]]", "Flow has no method zzz", "Define it in the class"),
    ("x = await asyncio.gather(«self.helpr»(1), self.helper(2))", "Flow has no method helpr", "Did you mean helper?"),
    ("x = await «self.helper(1, 2)»", "helper(): too many positional arguments", "Its parameters"),
    ("await «add()»", "add(): missing a required argument: 'a'", "Its parameters"),
    ("await «echo(1).options(5)»", "keyword arguments", "retries"),
    ("await echo(1).options(colour=«5»)", "no option colour", "retries"),
    ("x = 3\nawait echo(1).options(timeout=«x»)", "an option is a constant", "constant of the module"),
    ("await «echo(1).options(retries=-1)»", "at least 0", "Correct"),
    ("try:\n    pass\nexcept «x»:\n    pass\nx = 3", "no class of exceptions", "by its name"),
    ("try:\n    await echo(1)\nexcept «asyncio.CancelledError»:\n    pass", "not raised again", "`raise`"),
    ("«raise»", "outside of an `except`", "Write the exception"),
    ("«try:\n    pass\nexcept* ValueError:\n    pass»", "`except*`", ".exceptions"),
    ("xs = [1]\nfor a, b in «zip(xs, xs)»:\n    xs.append(a)", "may change", "list("),
    ("x = Point(1)\n«x.total()»", "no method", "action"),
    ("x = «Other()»", "is a workflow", "await Other().run("),
    ("x = «Bad()»", "ordinary function", "action"),
    ("x = [1]\nx.sort(key=«self.plain»)", "the method plain", "Call it"),
    ("x = [1]\nx.sort(key=«ordinary»)", "cannot be given as a function", "a lambda of one expression"),
    ("x = list(map(«Point», [1]))", "the class Point is given as a function", "[Point(x) for x in ...]"),
    ("x = sorted(['1'], key=«decimal.Decimal»)", "the class decimal.Decimal is given as a function", "key=lambda x: decimal.Decimal(x)"),
    ("xs = [1]\nxs.sort(key=«Colour»)", "the class Colour is given as a function", "key=lambda x: Colour(x)"),
    ("x = list(filter(«Checked», [1]))", "the class Checked is given as a function", "[x for x in ... if Checked(x)]"),
    ("return «Hidden(1)».x", "code of the class Hidden says what the attributes", "use it in actions only"),
    ("return [«Placed(1)»]", "code of the class Placed says what the attributes", "descriptors of its fields"),
    ("try:\n    await echo(1)\nexcept «HiddenError»:\n    pass", "code of the class HiddenError says", "its __getattribute__"),
    ("match datetime.date(2026, 1, 1):\n    case datetime.date(year=«2026»):\n        pass", "a case looks at year of a date", "as x if x.year == ..."),
    ("try:\n    await echo(1)\nexcept ValueError as e:\n    «e.__cause__» = KeyError('k')\n    raise", "e.__cause__ is assigned", "raise ... from"),
    ("x = «max(Least(1), Least(2))»", "which code of that class compares", "sorted([...], reverse=True)[0]"),
    ("x = «min([Least(1), Least(2)])»", "which code of that class compares", "sorted([...])[0]"),
    ("x = {«Least(1)»: 1}", "a Least as a key", "str(...)"),
    ("x = «datetime.date.fromisoformat(*['2026-01-01'])»", "fromisoformat() of a date is called with *", "one by one"),
    ("return «Model(x=1).z»", "Model has no field z", "Its fields are x, y."),
    ("m = Model(x=1)\n«m.z» = 3", "Model has no field z", "Its fields are x, y."),
    ("try:\n    await echo(1)\nexcept Told as e:\n    return «e.table»", "table of the class Told is a dict", "that __init__ sets"),
    ("try:\n    await echo(1)\nexcept (OSError, Told) as e:\n    return «e.text»", "text of the class Told is a property", "that __init__ sets"),
    ("x = «...»", "no value", "None"),
    ("x = «(3).__doc__»", "__doc__", "in an action"),
    ("del «self.seen»\nself.seen = 1", "deleted", "None"),
    ("x = sorted([1], key=«lambda v, w=2: v»)", "defaults", "plain parameters"),
]

REST = '''
async def helper(self, a):
    return a

def plain(self, a):
    return a
'''

TOP = '''
import datetime
import decimal
import enum
import logging
import json
import pydantic
import random
import time
import uuid

LOGGER = logging.getLogger('x')
TABLE = [1, 2]
CHANGED = 1

def change():
    global CHANGED
    CHANGED = 2

def ordinary(x):
    return x

async def coroutine(x):
    return x

class Bad:
    pass

class Word(enum.StrEnum):
    A = "a"

@dataclass
class Tagged:
    x: int
    KIND = 7

@dataclass
class Checked:
    x: int
    def __setattr__(self, name, value):
        object.__setattr__(self, name, 2 * value)

@dataclass
class Hidden:
    x: int
    def __getattribute__(self, name):
        return 5

class Place:
    def __get__(self, owner, cls):
        return 3
    def __set__(self, owner, value):
        pass

@dataclass
class Placed:
    x: int = Place()

class Model(pydantic.BaseModel):
    x: int
    y: int = 0

@dataclass(order=True)
class Least:
    x: int

class Told(Exception):
    table = {}
    @property
    def text(self):
        return "t"

class HiddenError(Exception):
    def __getattribute__(self, name):
        return 5

class Bare(Workflow):
    async def run(self, x):
        return x

@workflow
class Other(Workflow):
    async def run(self, x):
        return x

'''


def refusal(body: str, rest: str = REST, params: str = "") -> heddle.CompileError:
    with pytest.raises(heddle.CompileError) as caught:
        names = twin.module_of(TOP + twin.flow(body, rest, params), heddle)
        names["Flow"].ir()
    return caught.value


@pytest.mark.parametrize("case", REFUSED, ids=[case[0].partition("\n")[0] for case in REFUSED])
def test_a_refusal_points_at_the_construct(case: tuple[str, str, str]) -> None:
    body, reason, advice = case
    error = refusal(body.replace("«", "").replace("»", ""))
    before, _, rest = body.partition("«")
    marked = rest.partition("»")[0].partition("\n")[0]
    assert reason in error.reason, error
    assert advice is None or advice in error.advice, error
    assert error.text is not None and error.offset is not None
    assert error.text[error.offset - 1:].startswith(marked), error
    assert error.filename is not None and error.filename.startswith("<twin")


def test_a_refusal_reads_well() -> None:
    error = refusal("x = 1\ny = x + ordinary(x)")
    line = error.lineno
    assert str(error) == (f"{error.filename}:{line}:17: ordinary() is an ordinary function, which a workflow cannot call\n"
                          "    y = x + ordinary(x)\n"
                          "            ^^^^^^^^^^^\n"
                          "Make it an action: put @action before its definition, and await the call.")


@pytest.mark.parametrize(("params", "rest", "shown", "advice"), [
    ("x: decimal.Decimal = decimal.Decimal(3)", "", "decimal.Decimal(3)", "`x: Optional[Decimal] = None`, and in run `if x is None: x = decimal.Decimal(3)`"),
    ("n, *, x=Point(1)", "", "Point(1)", "`x: Optional[Point] = None`, and in run `if x is None: x = Point(1)`"),
    ("x=TABLE", "", "TABLE", "make the object in run"),
    ("", "def given(self, a, x=datetime.timedelta(1)):\n    return x", "datetime.timedelta(1)", "and in given `if x is None: x = datetime.timedelta(1)`"),
    ("", "def given(self, a, x={}):\n    return x", "{}", "make the object in given"),
])
def test_the_default_of_an_input_is_refused_where_it_stands(params: str, rest: str, shown: str, advice: str) -> None:
    error = refusal("return self.given(1)" if rest else "return 1", rest or REST, params)
    assert error.reason.startswith("the default of x is a ") and advice in error.advice, error
    assert error.text is not None and error.text[(error.offset or 0) - 1:].startswith(shown), error


def test_a_refusal_shows_nothing_of_the_compiler() -> None:
    assert refusal("await echo()").__suppress_context__


def test_run_without_self_is_refused() -> None:
    with pytest.raises(heddle.CompileError, match="run has no parameter self"):
        twin.module_of("@workflow\nclass Flow(Workflow):\n    async def run():\n        return 1\n", heddle)


def test_columns_count_characters() -> None:
    error = refusal("x = 'äöü' + ordinary(1)")
    assert error.text is not None and error.text[(error.offset or 0) - 1:].startswith("ordinary")


class Undecorated(heddle.Workflow):
    async def run(self) -> int:
        return 1


@heddle.workflow
class Decorated(heddle.Workflow):
    async def run(self) -> int:
        return 1


class Derived(Decorated):
    async def run(self) -> int:
        return 2


@pytest.mark.parametrize("cls", [Undecorated, Derived])
def test_a_class_without_its_decorator_is_told_what_it_lacks(cls: type[heddle.Workflow]) -> None:
    with heddle.testing.Lab() as lab:
        for use in (lambda: lab.run(cls), lambda: lab.store.register(cls), cls.ir, cls.explain, cls.graph):
            with pytest.raises(TypeError, match=f"^{cls.__name__} is no workflow: put @workflow above its class$"):
                use()


def test_a_class_without_run_is_refused_at_its_line() -> None:
    with pytest.raises(heddle.CompileError) as caught:
        @heddle.workflow
        class Idle(heddle.Workflow):
            async def runs(self) -> None: ...

    error = caught.value
    assert error.reason == "class Idle has no `async def run(self, ...)`" and "inputs" in error.advice
    assert error.filename == __file__ and error.text is not None and error.text.strip() == "class Idle(heddle.Workflow):"


def test_what_cannot_be_awaited_says_where() -> None:
    body = "x = [1]\nawait asyncio.gather(x)"
    names = twin.module_of(TOP + twin.flow(body, REST, ""), heddle)
    with pytest.raises(TypeError, match="object list can't be used in 'await' expression") as caught:
        asyncio.run(names["Flow"]().run())
    file, line, column = caught.value.__notes__[0].rpartition(" ")[2].split(":")
    assert linecache.getline(file, int(line))[int(column) - 1:].startswith("x)"), caught.value.__notes__


def test_source_that_cannot_be_read_is_refused() -> None:
    names = {"Workflow": heddle.Workflow, "workflow": heddle.workflow}
    with pytest.raises(heddle.CompileError, match="cannot be read") as refused:
        exec("@workflow\nclass W(Workflow):\n    async def run(self):\n        return 1\n", names)
    assert "^" not in str(refused.value)


def test_a_run_without_self_is_told_so() -> None:
    text = "from heddle import Workflow, workflow\n\n@workflow\nclass W(Workflow):\n    async def run(n):\n        return n\n"
    with pytest.raises(heddle.CompileError, match="n is the object that a method belongs to: write `self` before it"):
        twin.module_of(text, heddle)["W"].ir()


def test_a_name_below_the_class_is_resolved_when_it_is_used() -> None:
    names = twin.module_of(twin.flow("return LATER, await later(1)") + "LATER = 3\n\n@action\nasync def later(x):\n    return x\n",
                           heddle)
    assert names["Flow"].ir()["name"] == "Flow"
    for body in ("return await later(1)", "task = asyncio.create_task(later(1))\nreturn await task", "call = later(1)\nreturn await call",
                 "return await asyncio.gather(*[later(x) for x in [1]])", "return await Below().run()"):
        names = twin.module_of(twin.flow(body) + "@action\nasync def later(x):\n    return x\n\n@workflow\nclass Below(Workflow):\n"
                               "    async def run(self):\n        return 1\n", heddle)
        assert names["Flow"].ir()["name"] == "Flow"
    names = twin.module_of(twin.flow("return await nowhere(1)"), heddle)
    with pytest.raises(heddle.CompileError, match="the name nowhere is not defined"):
        names["Flow"].ir()
    names = twin.module_of(twin.flow("return NOWHERE"), heddle)
    with pytest.raises(heddle.CompileError, match="the name NOWHERE is not defined"):
        names["Flow"].ir()


HOOKS = {
    "__setattr__": "def __setattr__(self, name, value):\n    pass",
    "__getattribute__": "def __getattribute__(self, name):\n    return 9",
    "__getattr__": "def __getattr__(self, name):\n    return 9",
    "__new__": "def __new__(cls):\n    return super().__new__(cls)",
}


@pytest.mark.parametrize("name", HOOKS)
def test_code_that_the_engine_would_not_call_is_refused(name: str) -> None:
    error = refusal("return 1", HOOKS[name])
    assert error.reason == f"{name} of a workflow, which the engine does not call" and error.text == f"    {HOOKS[name].splitlines()[0]}\n"


def test_a_metaclass_that_makes_objects_is_refused() -> None:
    source = """
class Meta(type):
    def __call__(cls):
        return super().__call__()

@workflow
class Flow(Workflow, metaclass=Meta):
    async def run(self):
        return 1
"""
    with pytest.raises(heddle.CompileError, match="the metaclass Meta makes the objects of Flow"):
        twin.module_of(source, heddle)


def test_an_async_init_is_refused() -> None:
    assert refusal("return 1", "async def __init__(self):\n    pass").reason == "__init__ is async"


def test_what_a_decorator_or_a_lambda_made_is_refused_where_it_stands() -> None:
    wraps = "@_wrapped\ndef h(self, x):\n    return x"
    top = "import functools\ndef _wrapped(f):\n    @functools.wraps(f)\n    def made(*args):\n        return f(*args)\n    return made\n"
    for rest, shown in ((wraps, "@functools.wraps(f)"), ("h = lambda self, x: x", "h = lambda self, x: x")):
        with pytest.raises(heddle.CompileError, match="is not a plain `def`") as caught:
            twin.module_of(top + twin.flow("return self.h(1)", rest, ""), heddle)
        assert caught.value.text is not None and caught.value.text.strip() == shown


def test_a_workflow_that_is_made_with_arguments_says_so() -> None:
    with pytest.raises(TypeError, match=r"Decorated\(\) is given arguments, but the engine makes the object that runs"):
        Decorated(5)  # type: ignore[call-arg]


def test_a_property_is_refused() -> None:
    assert "prop is a property" in refusal("return self.prop", rest="@property\ndef prop(self):\n    return 1").reason


def test_a_decorated_method_is_refused() -> None:
    error = refusal("return self.h(1)", rest="@__import__('functools').lru_cache\ndef h(self, x):\n    return x")
    assert error.reason == "h is not a plain `def` or `async def` method" and "decorator" in error.advice


def test_a_list_of_the_class_is_named() -> None:
    assert refusal("self.xs = self.xs + [1]", rest="xs = [1]").reason == "self.xs is a list outside of the workflow, which others may change"


def test_a_mutable_default_is_refused() -> None:
    assert "all calls share" in refusal("return xs", params="xs=[]").reason
    assert "all calls share" in refusal("return self.h()", rest="def h(self, xs=[]):\n    return xs").reason


def test_a_traceback_shows_the_advice() -> None:
    """The interpreter prints a SyntaxError by its parts, not by its text."""
    error = refusal("x = time.time()")
    shown = "".join(traceback.format_exception_only(error))
    assert "x = time.time()" in shown and shown.rstrip().endswith(error.advice)


OWN = """
from datetime import datetime
from pathlib import Path

@dataclass
class Order:
    id: int

    @property
    def total(self):
        return [self.id]

    def __bool__(self):
        return self.id > 0

    def __iter__(self):
        return iter([self.id])

    def __add__(self, other):
        return self

@dataclass
class Line:
    price: int = 1

class Missing(Exception):
    def __str__(self):
        return "missing"

@action
async def order() -> Order:
    return Order(1)

"""


@pytest.mark.parametrize("body, position, reason", [
    ("o = await order()\nreturn o.total", "8:16", "the attribute total of a Order runs code of that class"),
    ("for x in await order():\n    pass", "7:18", "a loop of a Order runs code of that class"),
    ("o = await order()\nreturn [x for x in o]", "8:28", "a loop of a Order runs code of that class"),
    ("o = await order()\nreturn 1 + o", "8:16", "an operator of a Order runs code of that class"),
    ("return (await order()) or 3", "7:17", "whether a Order is true, code of that class says"),
    ("return max([datetime(2026, 1, 1)], key=lambda d: d)", "7:16", "max() by keys that are objects with code of their own"),
    ("o = await order()\nreturn sum(o)", "8:16", "sum() of a Order runs code of that class"),
    ("x = Line(2)\ndel x.price", "8:13", "price of a Line is deleted, and Line.price shows in its place"),
    ("e = Missing(1)\ne.code = 1", "8:9", "assigning code of a Missing runs code of that class"),
    ("p = Path('a')\nreturn p.exists()", "8:16", "exists() of a Path runs code of that class"),
    ("d = datetime(2026, 1, 1)\nreturn 1 < datetime(2026, 1, 1) < d", "8:16", "a chain of comparisons with an object whose class has code for them"),
])
def test_what_code_of_a_class_says_and_no_step_can_do(body, position, reason):
    names = twin.module_of(OWN, heddle)
    with pytest.raises(heddle.CompileError) as refused:
        twin.more(names, "\n\n\n" + twin.flow(body))
    assert refused.value.reason == reason and f"{refused.value.lineno}:{refused.value.offset}" == position


def test_the_advice_for_a_truth_whose_value_is_used_keeps_the_value():
    names = twin.module_of(OWN, heddle)
    with pytest.raises(heddle.CompileError) as refused:
        twin.more(names, twin.flow("return (await order()) or 3"))
    assert refused.value.advice == "Compare it, or give it a name before."
    twin.more(names, twin.flow("o = await order()\nreturn (o or 3).id"))
    assert asyncio.run(names["Flow"]().run()) == 1


@pytest.mark.parametrize("name, what", [("total", "property"), ("slot", "method"), ("explain", "method")])
def test_a_method_or_property_that_is_set_is_refused_where_it_is_set(name, what):
    rest = "@property\ndef total(self):\n    return 1\n\n@total.setter\ndef total(self, value):\n    self.other = value\n\ndef slot(self):\n    return 1\n"
    with pytest.raises(heddle.CompileError) as refused:
        twin.module_of(twin.flow(f"x = 1\nself.{name} = 5\nreturn x", rest), heddle)
    assert (refused.value.reason, refused.value.advice) == (f"{name} is a {what} of the class, and is set on self", "Use another name.")
    assert refused.value.text.strip() == f"self.{name} = 5"


def test_the_advice_for_max_gives_the_first_of_equals():
    names = twin.module_of(OWN, heddle)
    body = "xs = [(datetime(2026, 1, 1), 'a'), (datetime(2026, 1, 1), 'b')]\nreturn "
    with pytest.raises(heddle.CompileError) as refused:
        twin.more(names, twin.flow(body + "max(xs, key=lambda x: x[0])"))
    advice = refused.value.advice
    assert advice == "Write sorted(..., key=..., reverse=True)[0]."
    twin.more(names, twin.flow(body + "sorted(xs, key=lambda x: x[0], reverse=True)[0]"))
    assert asyncio.run(names["Flow"]().run())[1] == "a"


def test_what_a_step_of_python_does():
    names = twin.module_of(OWN, heddle)
    twin.more(names, twin.flow("o = await order()\nif o:\n    return f'{datetime(2026, 5, 4):%d.%m.}', Path('a') / 'b', not o"))
    shown = asyncio.run(names["Flow"]().run())
    assert (shown[0], str(shown[1]), shown[2]) == ("04.05.", "a/b", False)


def test_an_object_that_cannot_cross_is_no_error_of_the_workflow():
    names = twin.module_of(OWN, heddle)
    twin.more(names, twin.flow("try:\n    return datetime(2026, 5, 4).isocalendar()\nexcept TypeError:\n    return 3"))
    with pytest.raises(heddle.Unsupported, match="IsoCalendarDate cannot cross into a workflow: do it in an action"):
        asyncio.run(names["Flow"]().run())


def test_an_attribute_of_an_exception_with_a_text_of_its_own():
    names = twin.module_of(OWN, heddle)
    twin.more(names, twin.flow("try:\n    raise Missing(1)\nexcept Missing as e:\n    e.code = 1"))
    with pytest.raises(heddle.Unsupported, match="assigning 'code' of a 'Missing', whose text code of the class makes: give it to the con"):
        asyncio.run(names["Flow"]().run())


def test_a_dataclass_may_take_what_its_objects_do_not_keep():
    names = twin.module_of(OWN + "import dataclasses\n@dataclass\nclass Seeded:\n    x: int\n    seed: dataclasses.InitVar[int] = 5\n", heddle)
    twin.more(names, twin.flow("s = Seeded(1, seed=await echo(2))\nreturn s, await echo(Seeded(3))"))
    assert [vars(part) for part in asyncio.run(names["Flow"]().run())] == [{"x": 1}, {"x": 3}]


def test_a_method_of_an_object_takes_arguments_by_name():
    names = twin.module_of(OWN + "from decimal import Decimal, ROUND_HALF_UP\n", heddle)
    twin.more(names, twin.flow("d = datetime(2026, 5, 4, 12, 30)\n"
                               "x = Decimal('2.345').quantize(Decimal('0.01'), rounding=ROUND_HALF_UP)\n"
                               "return d.replace(day=LIMIT, hour=int(await echo(1))).isoformat(timespec='minutes'), x + 1"))
    assert str(asyncio.run(names["Flow"]().run())) == "('2026-05-05T01:30', Decimal('3.35'))"
    twin.more(names, twin.flow("try:\n    return datetime(2026, 5, 4).replace(da=1)\nexcept TypeError as e:\n    return str(e)"))
    assert asyncio.run(names["Flow"]().run()) == "'da' is an invalid keyword argument for replace()"
    for call in ("replace(**{'day': 1})", "replace(*[2026])"):
        with pytest.raises(heddle.CompileError, match="replace\\(\\) of a datetime is called with"):
            twin.more(names, twin.flow(f"return datetime(2026, 5, 4).{call}"))


def test_a_step_takes_the_elements_of_a_view_of_a_dict():
    names = twin.module_of(OWN + "from decimal import Decimal\n", heddle)
    twin.more(names, twin.flow("d = {'a': Decimal('1.5'), 'b': Decimal(2)}\n"
                               "s = sum(d.values(), Decimal('0.25')), max(d.values()), any(d.values()), sorted(d.values(), reverse=True)\n"
                               "return *s, Decimal('2.0') in d.values(), sum(reversed([d['a'], d['b']]))"))
    assert str(asyncio.run(names["Flow"]().run())) == "(Decimal('3.75'), Decimal('2'), True, [Decimal('2'), Decimal('1.5')], True, Decimal('3.5'))"


@pytest.mark.parametrize("body", ["f = Point\nreturn list(map(f, [1, 2]))", "return sorted([2, 1], key=[Colour][0])",
                                  "f = Checked if LIMIT else int\nxs = [1]\nxs.sort(key=f)"])
def test_a_class_that_turns_out_to_be_given_as_a_function(body: str) -> None:
    names = twin.module_of(TOP + twin.flow(body), heddle)
    with pytest.raises(heddle.Unsupported, match="<twin.*: a class that is given as a function"):
        asyncio.run(names["Flow"]().run())


def test_a_copy_of_an_object_that_is_equal_to_itself_only_is_not_looked_for() -> None:
    names = twin.module_of(TOP + "@dataclass(eq=False)\nclass Single:\n    x: int\n\n" + twin.flow(
        "a = Single(1)\nif LIMIT:\n    return [datetime.date(2026, 1, 1), a].index(a)"), heddle)
    with pytest.raises(heddle.Unsupported, match="'date'"):
        asyncio.run(names["Flow"]().run())


def test_objects_with_attributes_that_code_makes_do_not_cross() -> None:
    names = twin.module_of(TOP + twin.flow("return await hidden()", "", "") + "@action\nasync def hidden():\n    return Placed(3)\n", heddle)
    with pytest.raises(TypeError, match="Placed cannot cross into a workflow"):
        asyncio.run(names["Flow"]().run())


def test_methods_of_members_of_enums():
    names = twin.module_of("", heddle)
    twin.more(names, twin.flow("try:\n    Colour.RED.pop()\nexcept AttributeError as e:\n    pass\nreturn Kind.B.upper()"))
    with pytest.raises(heddle.Unsupported):
        asyncio.run(names["Flow"]().run())
    twin.more(names, twin.flow("k = Kind.B\nreturn k.upper(), [k.name for k in Kind], len(Rank)"))
    assert asyncio.run(names["Flow"]().run()) == ("YZ", ["A", "B"], 2)


def test_the_interpreter_shows_the_place_and_the_advice_and_no_frames_of_the_compiler(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "flow.py"
    program.write_text("from heddle import Workflow, workflow\n\n@workflow\nclass Flow(Workflow):\n"
                       "    async def run(self) -> None:\n        print(3)\n", encoding="utf-8")
    package = os.path.dirname(os.path.dirname(heddle.__file__))
    out = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120,
                         env={**os.environ, "PYTHONPATH": package})
    assert f'File "{program}", line 6\n    print(3)\n    ^' in out.stderr
    assert "heddle.log" in out.stderr.splitlines()[-1]
    assert "compiler/" not in out.stderr
