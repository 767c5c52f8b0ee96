"""Every supported construct: what a workflow does on the engine is what CPython does with the same source.

constructs.txt has the bodies of run, separated by lines of "---"; behind a line "%%" stand further methods.
"""
from __future__ import annotations

import asyncio
import pathlib

import pytest

import twin
from heddle.store import Store
from heddle.testing.lab import CLOCK

CASES = (pathlib.Path(__file__).parent / "constructs.txt").read_text().rstrip("\n").split("\n---\n")


CLASSES = {
    "private names belong to the class in which they stand": """
class Mixin:
    __rate = 5
    def total(self):
        return self.__rate * self.__twice(2)
    def __twice(self, x):
        return 2 * x

class Base(Workflow):
    __rate = 7
    async def fetch(self):
        self.__seen = await echo(self.__rate)
        return self.__seen
    async def __own(self):
        return "base"
    async def who(self):
        return await self.__own()

@workflow
class _Flow(Base, Mixin):
    __rate = 9
    async def __own(self):
        return "flow"
    async def run(self):
        self.__seen = 1
        return self.__rate, self.total(), await self.fetch(), self.__seen, self._Base__seen, await self.who(), await self.__own()

Flow = _Flow
""",
    "a mixin may stand behind Workflow": """
class Mixin:
    LIMIT = 3
    async def m(self, x):
        return await echo(x + self.LIMIT)
    async def both(self):
        return "mixin"

@workflow
class Flow(Workflow, Mixin):
    async def both(self):
        return "flow", await super().both()
    async def run(self):
        return await self.m(1), await self.both(), await super().m(2)
""",
    "methods are called by their class, and by super with arguments": """
class A(Workflow):
    async def h(self, x=1):
        return "A", await echo(x)
    def plain(self, x):
        self.seen = x
        return "A", x

class B(A):
    async def h(self, x=2):
        return "B", await super(B, self).h(x)
    def plain(self, x):
        return "B", A.plain(self, x=x)

@workflow
class Flow(B):
    async def h(self, x=3):
        return "Flow", await A.h(self), await B.h(self, x), await super(B, self).h(x=5)
    async def run(self):
        calls = [A.h(self, 7), B.h(self, x=8)]
        return await self.h(), await asyncio.gather(*calls), super(B, self).plain(6), self.plain(9), self.seen, Flow.plain(self, 4), await Flow.h(self, 2)
""",
    "a child that raises StopIteration": """
class Stop(StopIteration):
    pass

@workflow
class Inner(Workflow):
    async def run(self, x):
        if x > 2:
            raise Stop(x)
        return x

@workflow
class Flow(Workflow):
    async def run(self):
        got = []
        try:
            await Inner().run(5)
        except RuntimeError as e:
            got.append((str(e), type(e.__cause__).__name__, e.__cause__.args))
        for e in await asyncio.gather(Inner().run(1), Inner().run(3), return_exceptions=True):
            got.append(repr(e))
        return got
""",
    "an argument that changes what another one names": """
@workflow
class Flow(Workflow):
    async def run(self):
        one, two, three = [1], [1], {"a": 1}
        got = [await echo((one, one.append(2))), await add((two, two), b=two.append(False) or (3,))]
        try:
            await add(three, three.pop("a"))
        except TypeError as e:
            got.append(str(e))
        return got, one, two, three
""",
    "a group of what a member of an enum is": """
class Word(str, enum.Enum):
    NONE = ""
    AB = "ab"

@workflow
class Flow(Workflow):
    async def run(self):
        got = []
        for word in Word.NONE, Word.AB:
            try:
                got.append(ExceptionGroup("g", word))
            except (TypeError, ValueError) as e:
                got.append(repr(e))
        return got
""",
    "names in other letters": """
@dataclass(frozen=True)
class Größe:
    höhe: int
    高さ: int = 2

class Paar(NamedTuple):
    größe: int
    länge: int

class Färbung(enum.Enum):
    GRÜN = 1

class Übel(Exception):
    pass

@workflow
class Flow(Workflow):
    async def run(self):
        one = Größe(höhe=1)
        sizes, got = await echo([one, Paar(3, länge=4)]), [repr(one), one == Größe(1), one.高さ, Paar(1, 2).größe, repr(Paar(1, 2))]
        for i in range(6):
            try:
                if i == 0:
                    sizes[0].höhe = 2
                elif i == 1:
                    sizes[0].高さ = 3
                elif i == 2:
                    del sizes[0].höhe
                elif i == 3:
                    raise Übel("ä")
                elif i == 4:
                    sizes[1].länge = 5
                else:
                    sizes[0].länge
            except (AttributeError, Übel) as e:
                got.append((str(e), repr(e), type(e).__name__))
        return got, repr(Färbung.GRÜN), str(Färbung.GRÜN), str(Größe).split(".")[-1], sizes == [one, Paar(3, 4)], sizes[1].länge
""",
    "a method that compares takes nothing by name": """
from decimal import Decimal

@workflow
class Flow(Workflow):
    async def run(self):
        xs = [Decimal(1)]
        try:
            return xs.index(Decimal(1), **await echo({"key": 1}))
        except TypeError as e:
            return str(e)
""",
    "classes whose code runs where an object is made": """
class Sets:
    def __setattr__(self, name, value):
        if value < 0:
            raise ValueError(f"{name} is negative")
        super().__setattr__(name, 2 * value)

@dataclass
class Checked(Sets):
    x: int

class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.x += 1
        return made

@dataclass
class Made(metaclass=Meta):
    x: int

class Begun(Pair):
    def __init__(self, *args):
        if args[0] < 0:
            raise ValueError("left is negative")

@workflow
class Flow(Workflow):
    async def run(self):
        got = [Checked(5), Made(1), Begun(1), (await echo(Checked(1))).x]
        for i in range(2):
            try:
                got.append(Checked(-1) if i else Begun(-1))
            except ValueError as e:
                got.append(str(e))
        return got
""",
    "annotations of fields tell of members of enums": """
import pydantic

class Level(enum.IntEnum):
    LOW = 1

class Config(pydantic.BaseModel):
    level: Level = Level.LOW

class Both(NamedTuple):
    config: Config

@workflow
class Flow(Workflow):
    async def run(self):
        return Config().level + 1, Both(Config(level=1)).config.level == 1, [3][Config().level - 1]
""",
    "attributes of classes of exceptions": """
class ShopError(Exception):
    code = 400
    kind = Colour.RED
    level = Rank.LOW
    note = None

class PayError(ShopError):
    code = 402
    def __init__(self, note=None):
        super().__init__(1)
        if note is not None:
            self.note = note

class Full(OSError):
    code = 5

@action
async def pay(i):
    if i == 4:
        raise ValueError("v")
    if i == 5:
        raise Full(28, "no space", "file")
    raise ShopError() if i == 0 else PayError() if i == 1 else PayError([i])

@workflow
class Flow(Workflow):
    async def run(self):
        made = PayError("n")
        got = [made.code, made.note, PayError().note]
        for i in range(6):
            try:
                await pay(i)
            except Full as full:
                got.append((full.errno, full.strerror, full.filename, full.code, full.args))
            except (ShopError, ValueError) as e:
                try:
                    got.append([e.code, e.code + 1, f"{e.kind}", e.kind is Colour.RED, e.level - 1, e.note, [e.note for _ in range(2)]])
                    if i == 3:
                        e.note.append("more")
                        e.code = 5
                        got.append((e.note, e.code))
                except AttributeError as error:
                    got.append(str(error))
        return got
""",
    "subclasses of models have fields of their own": """
import pydantic

class Model(pydantic.BaseModel):
    x: int

class Below(Model):
    z: int = 2

class Loose(pydantic.BaseModel):
    class Config:
        extra = "allow"

@action
async def give() -> Model:
    return Below(x=1)

@workflow
class Flow(Workflow):
    async def run(self):
        return (await give()).z, Loose(k=3).k
""",
    "members of an enum where elements are taken": """
class Told(enum.Enum):
    X = 1
    Y = 2
    def __str__(self):
        return "told"
    def __bool__(self):
        return False

@workflow
class Flow(Workflow):
    async def run(self):
        a, *b = Told
        found, numbers = {}, {5}
        found.update(dict.fromkeys(Told, 1))
        numbers.update(Rank)
        xs = []
        xs.extend(Told)
        xs += Rank
        texts = [f"{t}" for t in Told], "%s" % a, "%s-%d" % (a, 1), any(Told), {t: str(t) for t in Told}, "".join(Closed)
        low, high = Rank
        return a, b, found, xs, texts, numbers, {5}.union(Rank), low + high, Told is Told, [Told] == [Colour], type(a) == Told
""",
    "only keys are compared": """
import pydantic
from datetime import date
from decimal import Decimal

class Item(pydantic.BaseModel):
    x: int

@dataclass
class Less:
    x: int
    def __lt__(self, other):
        return self.x > other.x

@workflow
class Flow(Workflow):
    async def run(self):
        items, less = [Item(x=2), Item(x=1)], [Less(1), Less(2)]
        most = max(items, key=lambda i: i.x, default=None)
        most.x = 10
        least = min(Item(x=1), Item(x=0), key=lambda i: i.x)
        by_key = sorted({"k": items[0]}.values(), key=lambda i: i.x), sorted((i for i in items), key=lambda i: i.x, reverse=True)
        less.sort(key=lambda i: i.x, reverse=True)
        return items, most, least, by_key, less, sorted(less, key=lambda i: i.x), sorted(less, key=lambda i: (1, i)), max(less, key=len) if not less else 0
""",
    "least and greatest of what may be empty": """
from datetime import date
from decimal import Decimal

@workflow
class Flow(Workflow):
    async def run(self):
        xs = [Decimal(1), Decimal(3)]
        some = max(xs, default=None), min((x * 2 for x in xs), default=0), max([x for x in xs if x > 5], default="none"), sum(xs, start=Decimal(1))
        return some, sorted([date(2026, 1, 2), date(2026, 1, 1)], key=None), max([], default=None)
""",
    "a variable keeps its class when an operation fails": """
from datetime import timedelta
from decimal import Decimal

@workflow
class Flow(Workflow):
    async def run(self):
        got, x, y = [], Decimal(7), timedelta(1)
        for i in range(3):
            try:
                if i == 0:
                    x = x / 0
                elif i == 1:
                    x //= 0
                else:
                    y = y % 0
            except (ArithmeticError, TypeError) as e:
                got.append((type(e).__name__, x + 1, y * 2))
        return got
""",
    "dates that are made of texts": """
import datetime as dt
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

@workflow
class Flow(Workflow):
    async def run(self):
        got = [date.fromisoformat("2026-01-01") + timedelta(1), datetime.strptime(await echo("2026 5"), "%Y %m").month,
               dt.datetime.combine(date(2026, 1, 1), dt.time(3)), datetime.fromisoformat("2026-01-02T03:04:05+00:00").hour,
               [date.fromordinal(n) for n in range(1, 3)], Decimal.from_float(0.5) * 2, Fraction.from_float(0.5), date.fromisocalendar(2026, week=1, day=1)]
        for text in "2026-13-01", "x", 5:
            try:
                got.append(date.fromisoformat(text))
            except (ValueError, TypeError) as e:
                got.append(str(e))
        match got[0]:
            case date() as day if day.year == 2026:
                got.append("2026")
        return got
""",
    "order that @dataclass writes": """
@dataclass(order=True, frozen=True)
class Version:
    major: int
    minor: int = 0

@workflow
class Flow(Workflow):
    async def run(self):
        a, d = Version(1), {Version(1): 3, Version(2): 4}
        most = sorted([Version(3), a], reverse=True)[0]
        return d[a], Version(2) in d, {a, Version(1), most}, (a, 2) in {(Version(1), 2)}, d.get(most), a < most, sorted([most, a])
""",
    "a class of underscores mangles nothing": """
@workflow
class __(Workflow):
    __rate = 3
    async def run(self):
        __x = self.__rate
        return __x
Flow = __
""",
}


async def both(source: str) -> tuple[twin.Outcome, twin.Outcome]:
    plain = await twin.run_plain(source)
    async with Store(clock=CLOCK) as store:
        return plain, await twin.run_compiled(store, source)


@pytest.mark.parametrize("source", CLASSES.values(), ids=CLASSES)
def test_classes_do_what_python_does(source: str) -> None:
    plain, compiled = asyncio.run(both(source))
    assert twin.same(plain, compiled), f"Python {plain}\nheddle {compiled}"


@pytest.mark.parametrize("case", CASES, ids=[case.partition("\n")[0][:60] for case in CASES])
def test_a_workflow_does_what_python_does(case: str) -> None:
    body, _, rest = case.partition("\n%%\n")
    source = twin.flow(body, rest)
    plain, compiled = asyncio.run(both(source))
    assert twin.same(plain, compiled, ordered=not any(word in body for word in ("gather", "TaskGroup", "create_task"))), f"Python {plain}\nheddle {compiled}"
