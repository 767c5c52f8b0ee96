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
    "Perm": ["Perm.R", "Perm.W"], "Bits": ["Bits.ONE"], "Told": ["Told.X"], "Odd": ["Odd.X"], "Same": ["Same.X"],
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
       "{a}.total_seconds()", "tuple({a})", "dict([{a}])", "range(3).index({a})", "{a} in range(5)", "{a} in 'abc'", "list(Rank)", "len(Kind)",
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


ACTIONS = "".join(f"""
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


class Objects:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def given(self, name: str) -> str:
        if self.random.random() < 0.15:
            return f"{name} = {self.random.choice(PLAIN)}"
        cls = self.random.choice(list(OBJECTS))
        which = self.random.randrange(len(OBJECTS[cls]))
        if cls in ("Rank", "Kind", "Perm", "Told", "Plain", "Truth", "Decimal", "timedelta") and self.random.random() < 0.2:
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
