"""Random workflows whose values are objects of the standard library and of classes with code of their own.

A source makes a few objects (by actions that say what they return, and by one that does not) and returns one expression of
them. Each is either what CPython gives, or refused, or Unsupported."""
from __future__ import annotations

import random

HEAD = '''
import enum, uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Optional, cast

class Rank(enum.IntEnum):
    LOW = 1
    HIGH = 2

class Zero(enum.IntEnum):
    NONE = 0

class Kind(str, enum.Enum):
    A = "a"
    EMPTY = ""

class Word(enum.StrEnum):
    A = "a"

class Perm(enum.Flag):
    R = 1
    W = 2

class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2

class Told(enum.Enum):
    X = 1
    def __str__(self):
        return "told"
    def __bool__(self):
        return False
    @property
    def label(self):
        return "label"

class Odd(int, enum.Enum):
    X = 3
    def __add__(self, other):
        return "odd"

class Same(enum.Enum):
    X = 1
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 1

@dataclass
class Plain:
    x: int
    y: int = 0

@dataclass(frozen=True)
class Ice:
    x: int

@dataclass
class Truth:
    x: int
    def __bool__(self):
        return self.x > 1

@dataclass
class Sized:
    x: int
    def __len__(self):
        return self.x

@dataclass
class Part:
    x: int
    y: int = field(default=0, compare=False)

@dataclass
class Hidden:
    x: int
    y: int = field(default=5, repr=False)

@dataclass
class Equal:
    x: int
    def __eq__(self, other):
        return True

@dataclass
class Shown:
    x: int
    def __str__(self):
        return "shown"

@dataclass(order=True)
class Ordered:
    x: int

@dataclass
class Bag:
    x: int
    def __iter__(self):
        return iter([self.x, 7])
    def __contains__(self, item):
        return item == 3
    def __getitem__(self, at):
        return at
    def __add__(self, other):
        return "sum"
    def __int__(self):
        return 4
    def __index__(self):
        return 1

@dataclass
class Prop:
    x: int
    @property
    def double(self):
        return 2 * self.x
    @double.setter
    def double(self, value):
        self.x = value

@dataclass(eq=False)
class ById:
    x: int

@dataclass(unsafe_hash=True)
class Hashed:
    x: int

@dataclass(frozen=True)
class OwnHash:
    x: int
    def __hash__(self):
        return 1

@dataclass
class Base:
    x: int

@dataclass
class Other:
    z: int = 1

@dataclass
class Both(Other, Base):
    pass

@dataclass(eq=False)
class Heir(Base):
    z: int = 2

@dataclass
class Setter:
    x: int
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value + 1)

class Shade(NamedTuple):
    x: int
    y: int = 2

class OwnPair(NamedTuple):
    x: int
    y: int = 2
    def __str__(self):
        return "own pair"
    def __bool__(self):
        return False
    def __iter__(self):
        return iter([1])

class Said(Exception):
    def __str__(self):
        return "said so"

class Coded(Exception):
    def __init__(self, code):
        super().__init__("code", code)
        self.code = code
    def __repr__(self):
        return f"<{self.code}>"

class Falsy(Exception):
    def __bool__(self):
        return False

class Mixed(Own, LookupError):
    pass
'''

OBJECTS: dict[str, list[str]] = {
    "Decimal": ["Decimal('0')", "Decimal('1')", "Decimal('1.0')", "Decimal('2.5')"],
    "datetime": ["datetime(2026, 1, 2, 3)", "datetime(2026, 1, 2, 3, tzinfo=timezone.utc)",
                 "datetime(2026, 1, 2, 4, tzinfo=timezone(timedelta(hours=1)))"],
    "date": ["date(2026, 1, 2)"], "time": ["time(0)", "time(3, 4)"], "timedelta": ["timedelta(0)", "timedelta(1)", "timedelta(hours=24)"],
    "uuid.UUID": ["uuid.UUID(int=1)", "uuid.UUID(int=2)"], "Path": ["Path('a/b')", "Path('.')"],
    "Fraction": ["Fraction(0)", "Fraction(1, 2)", "Fraction(1)"], "frozenset": ["frozenset()", "frozenset({1, 2})"],
    "Rank": ["Rank.LOW", "Rank.HIGH"], "Zero": ["Zero.NONE"], "Kind": ["Kind.A", "Kind.EMPTY"], "Word": ["Word.A"],
    "Perm": ["Perm.R", "Perm.W", "Perm(0)", "Perm(3)"], "Bits": ["Bits.ONE"], "Told": ["Told.X"], "Odd": ["Odd.X"], "Same": ["Same.X"],
    "Shade": ["Shade(1)"], "OwnPair": ["OwnPair(1)"], "Both": ["Both(1)"], "Heir": ["Heir(1, 2)", "Heir(1, 3)"],
    **{name: [f"{name}(1)", f"{name}(2)", f"{name}(0)"] for name in (
        "Plain", "Ice", "Truth", "Sized", "Part", "Hidden", "Equal", "Shown", "Ordered", "Bag", "Prop", "ById", "Hashed", "OwnHash",
        "Base", "Setter")}}
EXCEPTIONS = ("Said('a')", "Coded(3)", "Falsy()", "Mixed('m')", "FileNotFoundError(2, 'No such file', 'f.txt')", "KeyError('k')",
              "OSError(2, 'gone')", "UnicodeDecodeError('utf-8', b'x', 0, 1, 'bad')", "ValueError()", "ExceptionGroup('g', [ValueError(1)])",
              "ImportError('no', name='n')", "StopIteration(3)")
PLAIN = ("0", "1", "2.5", "'a'", "''", "None", "[]", "[1, 2]", "True", "(1, 2)", "{'a': 1}")

ONE = ("bool({a})", "not {a}", "1 if {a} else 2", "str({a})", "repr({a})", "f'{{{a}}}'", "f'{{{a}!r}}'", "f'{{{a}:>5}}'", "'%s' % ({a},)",
       "'{{}}'.format({a})", "len({a})", "list({a})", "[i for i in {a}]", "sorted([{a}, {a}])", "{{{a}: 1}}[{a}]", "{a} in {{{a}}}",
       "-{a}", "+{a}", "abs({a})", "int({a})", "float({a})", "round({a})", "{a}.x", "{a}.year", "{a}.days", "{a}.hex", "{a}.name",
       "{a}.value", "{a}.label", "{a}.double", "{a}.parent", "{a}.missing", "{a}.y", "isinstance({a}, int)", "isinstance({a}, str)",
       "isinstance({a}, Base)", "isinstance({a}, Other)", "isinstance({a}, enum.Enum)", "isinstance({a}, tuple)", "isinstance({a}, dict)",
       "type({a}).__name__", "[{a}]", "({a}, 1)", "str([{a}])", "{a} is None", "any([{a}])", "max([{a}])", "sum([{a}])", "{a}[0]", "{a}[0:1]",
       "[10, 20, 30][{a}]", "[10, 20, 30][:{a}]", "'ab'.join([{a}])", "'abc'.startswith({a})", "{a}.upper()", "{a}.isoformat()",
       "{a}.total_seconds()", "tuple({a})", "dict([{a}])", "range(3).index({a})", "{a} in range(5)", "{a} in 'abc'", "list(Rank)", "len(Kind)", "dict.fromkeys(Told)", "'-'.join(Word)",
       "'%s' % {a}", "sorted([{a}, 1], key=lambda v: 1)", "min({a}, 2, key=lambda v: v is 2)",
       "[r.name for r in Perm]", "{a}()", "bytes({a})", "enumerate({a}) is None", "set([{a}]) == {{{a}}}", "[*{a}]", "{{**{a}}}", "(lambda v: v)({a})",
       "sorted([1], key=lambda v: {a})", "list(map(str, [{a}]))", "list(filter(None, [{a}]))", "all(v for v in [{a}])")
TWO = ("{a} == {b}", "{a} != {b}", "{a} < {b}", "{a} >= {b}", "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} // {b}", "{a} % {b}",
       "{a} | {b}", "{a} & {b}", "{a} ** {b}", "{a} in [{b}]", "[{a}] == [{b}]", "({a}, 1) < ({b}, 2)", "{a} in {b}", "{a} and {b}", "{a} or {b}",
       "max({a}, {b})", "sorted([{a}, {b}])", "{{{a}: 1}}.get({b})", "len({{{a}, {b}}})", "[{a}, {b}].index({b})", "[{a}].count({b})",
       "divmod({a}, {b})", "{a} == {b} == {a}", "{a} < {b} < 3", "{{'k': {a}}} == {{'k': {b}}}", "sum([{a}, {b}])", "{a} is {b}", "{b} if {a} else {a}")
CAUGHT = ("str({a})", "repr({a})", "f'{{{a}}}'", "{a}.args", "bool({a})", "{a} == {a}", "{a}.filename", "{a}.code", "isinstance({a}, OSError)",
          "isinstance({a}, LookupError)", "isinstance({a}, Own)", "type({a}).__name__", "[str(i) for i in [{a}]]", "{a}.missing", "not {a}",
          "str({a}.__cause__)", "{a}.errno", "{a}.name", "{a}.reason", "{{{a}: 1}}[{a}]", "len({a})", "{a} < {a}")
CHANGES = ("{a}.x = 5", "{a}.double = 8", "{a}.new = 1", "del {a}.x", "{a} += 1", "{a} |= {b}", "{a}.year = 3")


ENUMS = ("Rank", "Zero", "Kind", "Word", "Perm", "Bits", "Told", "Odd", "Same")


def _action(cls: str) -> str:
    return "give_" + cls.replace(".", "_")


_ACTIONS = "".join(f"""
@action
async def {_action(cls)}(which) -> {cls}:
    return [{', '.join(made)}][which]
""" for cls, made in OBJECTS.items()) + f"""
@action
async def thing(cls, which):
    return {{{', '.join(f'{cls!r}: [{", ".join(made)}]' for cls, made in OBJECTS.items())}}}[cls][which]

@action
async def boom(which):
    raise [{', '.join(EXCEPTIONS)}][which]
"""


HOLDERS = "".join(f"""
@dataclass
class Hold_{cls.replace(".", "_")}:
    one: {cls}
    more: list[{cls}]
    maybe: Optional[{cls}] = None
""" for cls in OBJECTS)

HELD = (
    ("a, b = await asyncio.gather({c0}, {c1})",),
    ("xs = await asyncio.gather(*[{give}(i) for i in range({n})])", "a, b = xs[0], xs[-1]"),
    ("calls = [{c0}, {c1}]", "xs = await asyncio.gather(*calls)", "[a, b] = xs"),
    ("a, b = await asyncio.gather({c0}, {c1}, return_exceptions=True)",),
    ("xs = [await {c0}, await {c1}]", "a = xs[0]", "for b in xs:", "    pass"),
    ("d = {{'k': await {c0}, 'l': await {c1}}}", "a = d['k']", "b = d.get('l')"),
    ("d: dict[str, {cls}] = {{}}", "d['k'] = await {c0}", "a = d['k']", "for _, b in d.items():", "    pass"),
    ("d = dict()", "d['k'] = await {c0}", "a, b = list(d.values())[0], d.pop('k')"),
    ("t = (await {c0}, 1, await {c1})", "a, _, b = t"),
    ("xs = []", "for i in range({n}):", "    xs.append(await {give}(i))", "a, *rest = xs", "b = rest[0] if rest else a"),
    ("xs: list[{cls}] = []", "xs += [await {c0}]", "a = xs[0]", "b = xs.pop()"),
    ("a = await self.make({w0})", "b = self.pick([a, await {c1}])"),
    ("self.kept = await {c0}", "a = self.kept", "b = await {c1}"),
    ("h = {hold}(await {c0}, [await {c1}])", "a, b = h.one, h.more[0]"),
    ("h = {hold}(await {c0}, [])", "h.maybe = await {c1}", "a, b = h.one, h.maybe"),
    ("task = asyncio.create_task({c0})", "b = await {c1}", "a = await task"),
    ("a = b = await asyncio.wait_for({c0}, 5)",),
    ("xs = [await {give}(i) for i in range({n})]", "a, b = [(x, y) for x in xs for y in reversed(xs)][0]"),
    ("xs = [await {c0}, await {c1}]", "a = b = None", "for i, x in enumerate(xs):", "    if i == 0:", "        a = x", "    else:", "        b = x"),
    ("xs = [await {c0}, await {c1}]", "a, b = list(zip(xs, xs[1:]))[0]"),
    ("xs = [await {c0}, None]", "a, b = xs[0], xs[1]"),
    ("a = cast({cls}, await thing({cls!r}, {w0}))", "b: {cls} = await thing({cls!r}, {w1})"),
    ("xs: list[{cls}] = await asyncio.gather(thing({cls!r}, {w0}), thing({cls!r}, {w1}))", "a, b = xs"),
    ("xs: list[{cls}] = [await thing({cls!r}, i) for i in range({n})]", "a, b = xs[0], xs[-1]"),
    ("xs: list[{cls}] = []", "xs.append(await thing({cls!r}, {w0}))", "a = b = xs[0]"),
    ("d: dict[str, {cls}] = {{}}", "d['k'] = await thing({cls!r}, {w0})", "a = b = d['k']"),
    ("t: tuple[{cls}, int] = (await thing({cls!r}, {w0}), 1)", "a = b = t[0]"),
    ("a = 0", "a += await {c0}", "b = await {c1}"),
    ("match {hold}(await {c0}, [await {c1}]):", "    case {hold}(one=a, more=[b, *_]):", "        pass"),
    ("match (await {c0}, (1, await {c1})):", "    case [a, (int(), b)] as both:", "        pass"),
    ("match {{'k': await {c0}, 'l': await {c1}}}:", "    case {{'k': a, **rest}}:", "        b = rest['l']"),
    ("match {hold}(await {c0}, [await {c1}]):", "    case {hold}(a, []) | {hold}(a, [_]) as h:", "        b = h.more[-1]"),
    ("match await {c0}:", "    case {cls}() | None as a if a == a or True:", "        pass", "    case a:", "        pass", "b = await {c1}"),
    ("self.rows = []", "self.note(await {c0})", "self.note(await {c1})", "a, b = self.rows"),
    ("self.by = {{}}", "self.put('k', await {c0})", "a = self.by['k']", "self.put('k', await {c1})", "b = self.by.get('k')"),
    ("rows = [[await {c0}, await {c1}], [await {c1}, await {c0}]]", "(a, _), (b, _) = zip(*rows)"),
    ("d = dict([('k', await {c0}), ('l', await {c1})])", "a, b = d['k'], d['l']"),
    ("a = {name}.same(await {c0})", "b = self.same(await {c1})"),
)
"""How two objects of one class come to be a and b. Everything says its class, or is made of what does."""
OVER = ("[{e} for a in [a, b]]", "[{e} for a, b in [(a, b), (b, a)]]", "[{e} for a in (a,) if a == b]", "{{str(i): {e} for i, a in enumerate([a, b])}}",
        "sorted([a, b], key=lambda a: {e})", "max([a, b], key=lambda a: {e})", "', '.join([str(a) for a in [a, b]])", "', '.join(str(a) for a in [a, b])",
        "sum([a, b])", "sum(a for a in [b])", "sum([a], b)", "a or b", "a and b", "not a or not b", "[a, b] == [b, a]", "a in [b]", "b in (a, 1)", "str([a, b])",
        "f'{{[a]}}'", "'%s and %s' % (a, b)", "'{{}} {{}}'.format(a, b)", "[a, b].index(b)", "[a, b].count(a)", "{{'k': a}} == {{'k': b}}",
        "sorted([a, b])", "min(a, b)", "max([b, a])", "sorted([a, b], reverse=True)[0] == a", "[x for x in [a, b] if x]", "len([a, b])",
        "any([a, b])", "all([a, b])", "any(x == a for x in [b])", "(lambda: a)() if False else a", "{{a: 1}}", "len({{a, b}})", "{{'x': 1}}.get(a)", "set([a])",
        "list(map(str, [a, b]))", "(a, b) < (b, a)", "a if a else b", "[a, b].remove(a)", "isinstance(a, {cls})", "isinstance(a, (int, {cls}))",
        "isinstance(a, str)", "type(a) is {cls}", "type(a).__name__", "self.pick([b, a])", "[self.pick([x]) for x in [a, b]]", "round(a)", "round(a, 1)",
        "a.quantize(exp=b)", "a.quantize(b, rounding='ROUND_DOWN')", "a.replace(year=2000)", "a.isoformat(timespec='hours')",
        "{hold}(a, [b]) == {hold}(b, [a], a)", "[{hold}(a, [])] != [{hold}(a, [])]", "{hold}(a, []) in [{hold}(b, [])]", "f'{{{hold}(a, [b])}}'",
        "str([{hold}(a, [])])", "sorted([(a, 2), (b, 1)])", "sorted([1, 2], key=lambda i: (a, -i))", "sorted([(i, x) for i, x in enumerate([a, b])])",
        "sum({{'k': a, 'l': b}}.values())", "max({{'k': a, 'l': b}}.values())", "sorted({{'k': a, 'l': b}}.values())", "any({{'k': a}}.values())",
        "a in {{'k': b}}.values()", "sum(reversed([a, b]))", "max((a, 1), (b, 2))", "min([(a, 'x'), (b, 'y')])", "max((i, a) for i in [1, 1])",
        "min(zip([a, b], [2, 1]))", "max([((a, 1), 2), ((b, 0), 3)])", "[{hold}(a, [b]), {hold}(b, [])].index({hold}(b, []))", "max(*[a, b])",
        "[{hold}(a, [])].count({hold}(b, []))", "[({hold}(a, []), 1)].index(({hold}(b, []), 1))", "[(a, 1), (b, 2)].index((b, 2))", "[a, 1].index(1)",
        "'{{x}}|{{x!r:>9}}'.format(x=a)", "'{{a}}'.format_map({{'a': a}})", "'{{a}}'.format(**{{'a': a}})", "{{(a, 1): 2}}", "{{(1, (b,))}}",
        "min({hold}(a, []), {hold}(b, []), key=lambda h: h.one)", "min({{'k': a}}.values(), key=lambda v: {e})",
        "max([a, b], default=None)", "min([], default=a)", "sum([a], start=b)", "sorted([a, b], key=lambda v: 1)", "max(a, b, key=lambda v: 1)",
        "[a, b].sort(key=lambda v: 1)", "list(map({cls}, [1, 2]))", "sorted([2, 1], key={cls})", "a")


ACTIONS = _ACTIONS + HOLDERS


class Objects:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def given(self, name: str) -> str:
        if self.random.random() < 0.15:
            return f"{name} = {self.random.choice(PLAIN)}"
        cls = self.random.choice(list(OBJECTS))
        which = self.random.randrange(len(OBJECTS[cls]))
        if cls in ("Rank", "Kind", "Perm", "Told", "Plain", "Truth", "Setter", "Decimal", "timedelta") and self.random.random() < 0.2:
            return f"{name} = {OBJECTS[cls][which]}"
        return f"{name} = await {_action(cls)}({which})" if self.random.random() < 0.6 else f"{name} = await thing({cls!r}, {which})"

    def expression(self) -> str:
        template = self.random.choice(ONE) if self.random.random() < 0.5 else self.random.choice(TWO)
        names = ["a", "b"]
        self.random.shuffle(names)
        return template.format(a=names[0], b=names[1])

    def same_class(self, first: str) -> str:
        """Often both are of one class: then operators have something to say."""
        return first.replace("a = ", "b = ", 1) if self.random.random() < 0.3 else self.given("b")

    def workflow(self, name: str) -> str:
        """The source of one class; the same seed gives the same source."""
        first = self.given("a")
        lines = [first, self.same_class(first)]
        kind = self.random.random()
        if kind < 0.15:
            which = self.random.randrange(len(EXCEPTIONS))
            caught = self.random.choice(("Exception", "BaseException", "LookupError", "OSError", "Own", "(ValueError, Own)"))
            lines += ["try:", f"    await boom({which})", f"except {caught} as e:", f"    return {self.random.choice(CAUGHT).format(a='e')}"]
        elif kind < 0.25 and not any(cls in first for cls in ENUMS):  # what changes a member stays for the next source
            lines += [self.random.choice(CHANGES).format(a="a", b="b"), "return a"]
        elif kind < 0.35:
            lines += [f"if {self.expression()}:", "    return 'yes'", "return 'no'"]
        elif kind < 0.4:
            lines += ["try:", f"    return {self.expression()}", "except Exception as e:", "    return type(e).__name__, str(e)"]
        lines.append(f"return {self.expression()}")
        return "\n".join(["@workflow", f"class {name}(Workflow):", "    async def run(self):", *(f"        {line}" for line in lines), "", ""])


class Held(Objects):
    """Objects in containers, of helpers, of several calls at once: annotations tell of all of them."""

    def workflow(self, name: str) -> str:
        cls = self.random.choice(list(OBJECTS))
        count = len(OBJECTS[cls])
        first, second = self.random.randrange(count), self.random.randrange(count)
        give = _action(cls)
        words = {"name": name, "cls": cls, "give": give, "n": count, "w0": first, "w1": second, "c0": f"{give}({first})", "c1": f"{give}({second})",
                 "hold": "Hold_" + cls.replace(".", "_")}
        lines = [line.format(**words) for line in self.random.choice(HELD)]
        made = self.random.choice(OVER).format(e=self.expression(), **words) if self.random.random() < 0.6 else self.expression()
        kind = self.random.random()
        if kind < 0.2:
            lines += [f"if {made}:", "    return 'yes'", "return 'no'"]
        elif kind < 0.4:
            lines += ["try:", f"    return {made}", "except Exception as e:", "    return type(e).__name__, str(e)"]
        elif kind < 0.5:
            lines += ["total = a", "for x in [a, b]:", f"    total {self.random.choice('+-*|')}= x", "return total"]
        lines.append(f"return {made}")
        helpers = [f"async def make(self, which: int) -> {cls}:", f"    return await {give}(which)", f"def pick(self, xs: list[{cls}]) -> {cls}:",
                   "    return xs[-1]", f"def note(self, x: {cls}) -> None:", "    self.rows.append(x)", f"def put(self, k: str, x: {cls}) -> None:",
                   "    self.by[k] = x", "@staticmethod", f"def same(x: {cls}) -> {cls}:", "    return x"]
        return "\n".join(["@workflow", f"class {name}(Workflow):", "    async def run(self):", *(f"        {line}" for line in lines),
                          *(f"    {line}" for line in helpers), "", ""])
