"""Values across the boundary and back: plain ones in cells, all kinds in workflows."""
from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import sys
import types
import typing
import uuid
import zoneinfo

import pydantic
import pytest

import heddle
from heddle import _heddle, values

Point = collections.namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Item:
    name: str
    price: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: int


class Cart(pydantic.BaseModel):
    items: list[Item] = []
    owner: str = "nobody"


class Odd(ValueError):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def cross(v):
    return _heddle.loads(_heddle.dumps(v))


def same(a, b):
    """Equal in value and in type, all the way down; dicts in order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b) or math.isnan(a) and math.isnan(b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(x, y) and same(a[x], b[y]) for x, y in zip(a, b))
    return a == b


ONE_OF_EACH = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, "", "é\0𝄞", "\ud800x", b"",
    b"\0\xff", [], [1, [2]], {}, {"b": 1, "a": 2}, {1: "x", (1, 2): "y", None: "z"}, (), (1,), set(), {1, "a", (2,)},
    frozenset({1, 2}), range(1, 10, 2), Point(1, [2]), Colour.RED, Colour.BLUE, Level.LOW, Item("tea", 3.5), Frozen(7),
    Cart(items=[Item("a")], owner="b"), datetime.datetime(2026, 11, 17, 6, 40, 1, 5), datetime.date(2026, 1, 1),
    datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), datetime.time(12, 30), datetime.timedelta(-1, 5, 7),
    datetime.timezone(datetime.timedelta(hours=2)), datetime.timezone(datetime.timedelta(hours=1), "CET"),
    datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1), "CET")), uuid.UUID(int=5), decimal.Decimal("1.10"), decimal.Decimal("NaN"),
    fractions.Fraction(1, 3), pathlib.Path("/tmp/x"), pathlib.PurePosixPath("a"), int, Item,
    {"$tuple": [1]}, {"$keys": ["a"], "a": 1}, {"$$": 1, "$": 2}, {"type": "x", "message": "y"}, {"$error": "ValueError"},
]


@pytest.mark.parametrize("value", ONE_OF_EACH, ids=lambda v: f"{type(v).__name__}-{str(v)[:20]!a}")
def test_crosses_unchanged(value):
    back = cross([value, {"in": value}])
    if isinstance(value, decimal.Decimal) and value.is_nan():
        assert back[0].is_nan()
        return
    assert same(back, [value, {"in": value}]), back


def random_key(rng):
    return rng.choice([None, True, rng.randrange(-5, 5), rng.random(), random_text(rng), random_text(rng).encode(),
                       (1, random_text(rng)), Colour.RED, uuid.UUID(int=rng.getrandbits(128))])


def random_text(rng):
    alphabet = "abc$é𝄞\0\"\\ /~"
    return "".join(rng.choice(alphabet) for _ in range(rng.randrange(6)))


def random_value(rng, depth):
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(ONE_OF_EACH[:21] + [random_text(rng), rng.getrandbits(63), rng.uniform(-1e9, 1e9)])
    size = rng.randrange(5)
    kind = rng.randrange(9)
    inner = [random_value(rng, depth - 1) for _ in range(size)]
    if kind == 0:
        return tuple(inner)
    if kind == 1:
        return {random_key(rng) for _ in range(size)}
    if kind in (2, 3):
        return {random_text(rng): v for v in inner}
    if kind == 4:
        return {random_key(rng): v for v in inner}
    if kind == 5:
        return Item(random_text(rng), rng.random())
    if kind == 6:
        return Point(inner, random_text(rng))
    if kind == 7:
        return rng.choice(ONE_OF_EACH[22:-5])
    return inner


def test_random_values_cross_unchanged(rng):
    for _ in range(3000):
        value = random_value(rng, 4)
        assert same(cross(value), value) or "nan" in repr(value).lower(), value


def test_sets_and_dicts_keep_their_order(rng):
    for _ in range(300):
        keys = rng.sample(range(1000), 20)
        assert list(cross(dict.fromkeys(keys))) == keys
        names = [str(k) for k in keys]
        assert list(cross(dict.fromkeys(names))) == names


@pytest.mark.parametrize("value, message", [
    (object(), "object cannot cross into a workflow"),
    ({"a": [1, object()]}, "object cannot cross into a workflow at value['a'][1]"),
    ([2**63], "int beyond 64 bits cannot cross at value[0]"),
    ({"f": len}, "builtin_function_or_method cannot cross into a workflow at value['f']"),
    ({(1, 2): {"k": 1j}}, "complex cannot cross into a workflow at value[(1, 2)]['k']"),
    (collections.OrderedDict(a=1), "OrderedDict cannot cross into a workflow"),
])
def test_what_cannot_cross_names_its_place(value, message):
    with pytest.raises(TypeError, match="^" + __import__("re").escape(message) + "$"):
        _heddle.dumps(value)


def test_only_fields_of_a_dataclass_cross():
    """A ClassVar is no part of an object, and an InitVar is not kept."""
    @dataclasses.dataclass
    class Logged:
        x: int
        seed: dataclasses.InitVar[int] = 5
        LOG: typing.ClassVar[object] = object()

    made = Logged(1, 2)
    tag, _, fields = values.encode(made)
    assert (tag, fields) == ("$record", {"x": 1})
    store = heddle.open()
    cell = store.cell("main/x", Logged)
    cell.set(made)
    assert vars(cell()) == {"x": 1} and store.cell("main/x")() == {"x": 1}


def test_a_circle_is_refused():
    circle = []
    circle.append(circle)
    with pytest.raises(TypeError, match=r"^list contains itself at value\['c'\]\[0\]$"):
        _heddle.dumps({"c": circle})
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        _heddle.dumps(deep)


# ---- Exceptions


def test_an_exception_crosses_with_all_it_has():
    try:
        try:
            {}["k"]
        except KeyError as inner:
            raise Odd(7, "odd") from inner
    except Odd as error:
        error.when = datetime.date(2026, 1, 1)
        back = cross(error)
    assert type(back) is Odd and back.args == ("odd",) and str(back) == "odd"
    assert back.code == 7 and back.when == datetime.date(2026, 1, 1)
    assert type(back.__cause__) is KeyError and back.__cause__.args == ("k",)
    assert "raise Odd(7" in back.__traceback_text__


def test_an_exception_that_refers_to_itself_has_its_text_there():
    class Box:
        pass
    error, other, box = ValueError("e"), KeyError("k"), Box()
    error.me, error.all, error.item, box.error, error.box = error, [error], Item(error), error, box
    error.other, other.of, error.__cause__ = other, {"e": error}, other
    back = cross({"error": error})["error"]
    assert back.me == "ValueError('e')" and back.all == "[ValueError('e')]" and "Box object at" in back.box
    assert back.item == "Item(name=ValueError('e'), price=0.0)"
    assert type(back.other) is type(back.__cause__) is KeyError and back.other.of == back.__cause__.of == "{'e': ValueError('e')}"


def test_exceptions_in_attributes_of_others_cost_what_they_are():
    error = innermost = ValueError(0)
    for i in range(1, 25):
        outer = ValueError(i)
        outer.inner = [error]
        error = outer
    back, count = cross(error), 0
    while back.args != innermost.args:
        back, count = back.inner[0], count + 1
    assert count == 24


def test_an_exception_that_was_raised_while_another_was_handled_has_no_cause():
    try:
        try:
            {}["k"]
        except KeyError:
            raise ValueError("v")
    except ValueError as error:
        back = cross(error)
    assert back.__cause__ is None and "KeyError: 'k'" in back.__traceback_text__


def test_an_exception_crosses_with_what_is_in_its_slots():
    back = cross(ImportError("no", name="shop", path="/shop.py"))
    assert (back.msg, back.name, back.path) == ("no", "shop", "/shop.py")
    assert cross(AttributeError("no", name="x", obj=1)).name == "x"
    assert cross(OSError(2, "no", "a", None, "b")).filename2 == "b"


def test_a_time_keeps_its_zone():
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    for hour, fold in ((1, 0), (2, 0), (2, 1)):
        given = datetime.datetime(2024, 10, 27, hour, 30, fold=fold, tzinfo=berlin)
        back = cross(given)
        assert back.tzinfo is berlin and back.fold == fold and str(back + datetime.timedelta(days=1)) == str(given + datetime.timedelta(days=1))
    assert cross(datetime.time(2, 30, tzinfo=berlin)).tzinfo is berlin


def test_what_cannot_cross_in_an_exception_is_its_text():
    error = ValueError("x", object)
    error.lock = types
    back = cross(error)
    assert back.args == ("x", object) and "module 'types'" in back.lock


@pytest.mark.parametrize("error", [
    FileNotFoundError(2, "No such file", "a.txt"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), KeyError("k"),
    StopIteration(5), ExceptionGroup("two", [ValueError(1), KeyError(2)]), SystemExit(3), AssertionError(), OSError("plain"),
], ids=lambda e: type(e).__name__)
def test_built_in_exceptions(error):
    back = cross(error)
    assert type(back) is type(error) and str(back) == str(error)
    if isinstance(error, OSError):
        assert (back.errno, back.filename) == (error.errno, error.filename)
    if isinstance(error, ExceptionGroup):
        assert [type(e) for e in back.exceptions] == [ValueError, KeyError]


def test_a_class_that_is_not_there_is_a_record():
    name = "nowhere:Thing"
    back = _heddle.loads(b'{"$$record":"nowhere:Thing","a":1}')
    assert isinstance(back, values.Record) and back.a == 1 and name in repr(back)
    back = _heddle.loads(b'{"$$error":"KeyError","args":[1],"attrs":{"__class_name__":"nowhere:E"}}')
    assert type(back) is KeyError


def test_nothing_is_imported_for_a_stored_name():
    assert "antigravity" not in sys.modules
    _heddle.loads(b'{"$$record":"antigravity:x","a":1}')
    assert "antigravity" not in sys.modules


def test_unknown_forms_are_refused():
    with pytest.raises(ValueError, match=r"\$nonsense"):
        _heddle.loads(b'{"$$nonsense":1}')
    with pytest.raises(heddle.InputError):
        _heddle.loads(b'{"a":')


# ---- By annotation


def test_records_are_rebuilt_by_annotation_and_scalars_are_not():
    assert values.conform({"name": "a", "price": 1}, Item) == Item("a", 1)
    assert values.conform([{"name": "a"}], list[Item]) == [Item("a")]
    assert values.conform({"x": {"a": 1}}, dict[str, Frozen]) == {"x": Frozen(1)}
    assert values.conform({"owner": "b"}, Cart) == Cart(owner="b")
    assert values.conform({"name": "a"}, Item | None) == Item("a")
    assert values.conform("5", int) == "5" and values.conform(None, Item) is None


# ---- Cells


PLAIN = [None, True, 5, -2**63, 1.5, "é", b"\0", [1, [2, {}]], {"a": {"$x": 1}}, math.inf, heddle.Link(id="a", path="/x")]


def test_cells_hold_plain_data(rng):
    with heddle.open() as store:
        for i, value in enumerate(PLAIN[1:]):
            cell = store.cell(f"main/d{i}")
            cell.set(value)
            assert cell.raw() == value and type(cell.raw()) is type(value)
        for _ in range(300):
            value = random_plain(rng, 4)
            cell.set(value)
            assert cell.get() == value


def random_plain(rng, depth):
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(PLAIN[1:7] + [random_text(rng), rng.random()])
    size = rng.randrange(5)
    if rng.random() < 0.5:
        return [random_plain(rng, depth - 1) for _ in range(size)]
    return {random_text(rng): random_plain(rng, depth - 1) for _ in range(size)}


def test_what_a_cell_cannot_hold():
    with heddle.open() as store:
        cell = store.cell("main/x")
        for value, message in [({"a": {1}}, "set cannot be stored in a cell at value['a']"), ({1: 2}, "keys that are not str"),
                               ("\ud800", "lone surrogate"), ({"\udfff": 1}, "main/x: dict with a key that has a lone surrogate cannot be stored"), (2**64, "beyond 64 bits")]:
            with pytest.raises(TypeError, match=__import__("re").escape(message)):
                cell.set(value)
        deep: list = []
        for _ in range(600):
            deep = [deep]
        with pytest.raises(heddle.InputError, match="^main/x: .* more than 512 levels") as refused:
            cell.set(deep)
        assert refused.value.status == "HD_LIMIT"
        assert not cell.exists()
        cell.set((1, 2))
        assert cell() == [1, 2]


def test_a_value_is_passed_on_unconverted():
    with heddle.open() as store, heddle.open() as other:
        a, b = store.cell("main/a"), store.cell("main/b")
        a.set({"rows": [{"n": i} for i in range(3)], "x": "y"})
        whole = a.value()
        assert len(whole) == 2 and whole["x"] == "y" and whole["rows"][-1]["n"] == 2
        with pytest.raises(KeyError):
            whole["none"]
        with pytest.raises(IndexError):
            whole["rows"][9]
        b.set(whole)
        assert b() == a() and b.value() == whole and whole.json().startswith('{"rows"')
        b.set([whole["rows"], 5])
        assert b()[0] == a()["rows"]
        with pytest.raises(TypeError, match="another store"):
            other.cell("main/x").set(whole)
    with pytest.raises(heddle.Error, match="closed"):
        whole.get()


def test_models_in_cells():
    with heddle.open() as store:
        cart = store.cell("main/cart", Cart)
        assert cart() is None
        cart.set(Cart(items=[Item("tea", 2.0)], owner="me"))
        assert store.cell("main/cart")() == {"items": [{"name": "tea", "price": 2.0}], "owner": "me"}
        assert cart() == Cart(items=[Item("tea", 2.0)], owner="me")
        item = store.cell("main/item", Item)
        item.set(Item("a", 1))
        assert item() == Item("a", 1)
        rows = store.cell("main/items", list[Item])
        rows.set([Item("a"), Item("b")])
        assert rows() == [Item("a"), Item("b")]
        store.cell("main/cart#/owner").set(5)
        store.cell("main/cart#/items").set("no list")
        with pytest.raises(pydantic.ValidationError):
            cart()


def test_schemas_guide_reads():
    schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 5}, "s": {"type": "string"}}}
    with heddle.open() as store:
        cell = store.cell("main/x", schema=schema)
        store.cell("main/x").set({"s": "a", "more": 1})
        assert cell() == {"n": 5, "s": "a"}
        store.cell("main/x").set("text")
        assert cell() is None
        with pytest.raises(heddle.InputError, match="nonsense"):
            store.cell("main/x", schema={"nonsense": 1})


class Slotted(Exception):
    """Its code needs what does not cross."""

    def __init__(self, what: object) -> None:
        super().__init__("slotted")
        object.__setattr__(self, "_hidden", object())

    def __str__(self) -> str:
        return f"slotted {type(self._hidden).__name__}"


def test_an_exception_keeps_the_text_that_its_class_made():
    error = cross(Slotted(1))
    assert isinstance(error, Slotted) and str(error) == "slotted object" and error.args == ("slotted",)
    again = cross(error)
    assert isinstance(again, Slotted) and type(again).__mro__[1] is Slotted and str(again) == "slotted object"
    missing = cross(FileNotFoundError(2, "No such file", "f.txt"))
    assert str(missing) == "[Errno 2] No such file: 'f.txt'" and missing.filename == "f.txt"


def test_an_error_of_pydantic_crosses_as_what_it_is():
    pydantic = pytest.importorskip("pydantic")

    class Item(pydantic.BaseModel):
        id: int

    with pytest.raises(pydantic.ValidationError) as refused:
        Item(id="no number")
    found = cross(refused.value)
    assert isinstance(found, pydantic.ValidationError) and str(found) == str(refused.value)


def test_a_timezone_keeps_its_name():
    zone = datetime.timezone(datetime.timedelta(hours=1), "CET")
    for value in (zone, datetime.datetime(2026, 1, 1, tzinfo=zone), datetime.time(1, tzinfo=zone)):
        assert repr(cross(value)) == repr(value)


@dataclasses.dataclass
class Renamed:
    a: int
    c: int = 3


@dataclasses.dataclass
class Narrow:
    __slots__ = ("a",)
    a: int


def test_an_object_of_an_older_version_has_what_its_class_is_now():
    """The class had the fields a and b then."""
    old = {"a": 1, "b": 2}
    made = values.decode("$record", values.remember_class(Renamed), old)
    assert (made.a, made.b, made.c) == (1, 2, 3)
    slotted = values.decode("$record", values.remember_class(Narrow), old)
    assert slotted.a == 1 and not hasattr(slotted, "b")
