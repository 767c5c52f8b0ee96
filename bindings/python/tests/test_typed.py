"""Cells with a type: what is written is read back equal, or the write is refused."""
from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import functools
import typing
from dataclasses import dataclass, field

import pydantic
import pytest

import heddle


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"


class Text(str, enum.Enum):
    A = "a"


if hasattr(pydantic, "RootModel"):
    class Rows(pydantic.RootModel[list[int]]):
        pass
else:
    class Rows(pydantic.BaseModel):  # type: ignore[no-redef]
        __root__: list[int]


def rows(*given: int) -> Rows:
    return getattr(Rows, "model_validate", getattr(Rows, "parse_obj", None))(list(given))


class Model(pydantic.BaseModel):
    amount: decimal.Decimal = decimal.Decimal(0)
    span: datetime.timedelta = datetime.timedelta(0)
    pair: tuple = ()
    numbers: typing.Dict[int, str] = {}
    raw: bytes = b""
    any: typing.Any = None


class Aliased(pydantic.BaseModel):
    kind: str = pydantic.Field(alias="Kind")


class Doubling(pydantic.BaseModel):
    n: int

    if hasattr(pydantic, "field_validator"):
        @pydantic.field_validator("n")
        @classmethod
        def doubled(cls, n):
            return n * 2
    else:
        @pydantic.validator("n")
        def doubled(cls, n):
            return n * 2


@dataclass
class Inner:
    v: int
    t: tuple = ()


@dataclass
class Other:
    w: int


@dataclass(frozen=True)
class Outer:
    inner: Inner
    rows: list[Inner]
    maybe: typing.Optional[Inner] = None
    named: dict[str, Inner] = field(default_factory=dict)
    one: typing.Union[int, Inner, Other, None] = None
    many: tuple[Inner, ...] = ()
    pair: tuple[int, Inner] | None = None
    colour: Colour = Colour.RED
    colours: list[Colour] = field(default_factory=list)
    loose: object = None
    sequence: typing.Sequence[Inner] = ()


@dataclass
class Derived:
    a: int
    b: int = field(init=False, default=3)

    def __post_init__(self) -> None:
        self.a += 1

    @functools.cached_property
    def twice(self) -> int:
        return self.a * 2


@dataclass
class WithMore:
    a: int

    def __post_init__(self) -> None:
        self.more = self.a


def derived() -> Derived:
    made = Derived(1)
    made.b = made.twice
    return made


OUTER = Outer(Inner(1, (2, 3)), [Inner(2)], Inner(3), {"a": Inner(4)}, Other(5), (Inner(6),), (7, Inner(8)), Colour.GREEN, [Colour.RED],
              {"x": [1, b"\xff"]}, [Inner(9)])

class Cat(pydantic.BaseModel):
    kind: typing.Literal["cat"] = "cat"
    name: str = ""


class Dog(pydantic.BaseModel):
    kind: typing.Literal["dog"] = "dog"
    name: str = ""


Pet = typing.Annotated[typing.Union[Cat, Dog], pydantic.Field(discriminator="kind")]


@dataclass
class Paid:
    n: int
    kind: typing.Literal["paid"] = "paid"


@dataclass
class Owed:
    n: int
    kind: typing.Literal["owed"] = "owed"


READ_BACK = [
    (Pet, Dog(name="Rex")), (typing.Union[Cat, Dog], Dog()), (list[Pet], [Dog(), Cat()]), (typing.Union[list[Cat], list[Dog]], [Dog()]),
    (typing.Union[Paid, Owed], Owed(1)), (typing.Union[list[Paid], list[Owed], None], [Owed(1)]), (dict[str, Paid | Owed], {"a": Owed(2)}),
    (typing.Union[list[Inner], list[Other]], [Other(1)]),
    (Model, Model(amount=decimal.Decimal("12345678901234567.89"))), (Model, Model(amount=decimal.Decimal("1.10"))),
    (Model, Model(span=datetime.timedelta(days=3, microseconds=1), pair=(1, 2), numbers={1: "a"}, any=[{"a": 1.5}])),
    (Aliased, Aliased(Kind="x")), (Outer, OUTER), (Outer, dataclasses.replace(OUTER, one=Inner(5))),
    (Derived, derived()), (WithMore, None), (Colour, Colour.RED), (Colour, Colour.GREEN), (Text, Text.A), (tuple, (1, 2)),
    (tuple[Inner, ...], (Inner(1),)), (list[Inner], [Inner(1)]), (dict[str, Model], {"a": Model(amount=1)}),
    (typing.Optional[Inner], Inner(1)), (float, float("inf")), (Inner, Inner(1, (float("inf"),))),
    (typing.Annotated[list[Inner], "rows"], [Inner(1)]), (Rows, rows(1)), (typing.Optional[Rows], rows(1, 2)),
    (typing.Union[Rows, int], rows()), (typing.Union[Rows, int], 5), (typing.Union[Rows, Inner], Inner(1)), (list[Rows], [rows(1)])]


@pytest.mark.parametrize("cls, value", READ_BACK, ids=lambda v: getattr(v, "__name__", None))
def test_what_is_written_is_read_back(cls, value):
    with heddle.open() as store:
        cell = store.cell("main/x", cls)
        cell.set(value)
        assert cell() == value and repr(cell()) == repr(value)


@pytest.mark.skipif(not hasattr(pydantic, "ConfigDict"), reason="pydantic 2")
def test_a_strict_model_is_read_as_from_json():
    class Strict(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=True) if hasattr(pydantic, "ConfigDict") else {}
        day: datetime.date
        tags: typing.Tuple[str, ...] = ()

    with heddle.open() as store:
        cell = store.cell("main/x", list[Strict])
        cell.set([Strict(day=datetime.date(2026, 1, 1), tags=("a",))])
        assert cell()[0].day == datetime.date(2026, 1, 1) and cell()[0].tags == ("a",)


REFUSED = [
    (Model, Model(any={1: 2}), "main/x: value['any'] cannot be stored as it is: {1: 2} would be read as {'1': 2}"),
    (Model, Model(any=datetime.date(2026, 1, 1)), "main/x: value['any'] cannot be stored as it is"),
    (Model, Model(raw=b"\xff"), "Model.raw: 'utf-8' codec"), (Doubling, Doubling(n=1), "main/x: value['n'] cannot"),
    (Outer, dataclasses.replace(OUTER, loose=Inner(1)), "main/x: value['loose'] cannot"),
    (Outer, dataclasses.replace(OUTER, loose=[Text.A]), "main/x: value['loose'][0] cannot"),
    (Outer, dataclasses.replace(OUTER, sequence=(Inner(1),)), "main/x: value['sequence'] cannot"),
    (Outer, dataclasses.replace(OUTER, loose={1: 2}), "main/x: dict with keys that are not str cannot be stored at value['loose']"),
    (Outer, dataclasses.replace(OUTER, loose={1}), "main/x: set cannot be stored in a cell at value['loose']"),
    (WithMore, WithMore(1), "main/x: value cannot be stored as it is"), (Inner, Other(1), "main/x: Other(w=1) cannot be stored as Inner"),
    (Colour, 5, "main/x: 5 cannot be stored as Colour"), (list[Inner], [{"t": []}], "there is no 'v', for which Inner has no default"),
    (Inner, 5, "main/x: 5 cannot be stored as Inner: 5 is no data of Inner"), (typing.Optional[Inner], [1], "[1] is no data of Inner"),
    (Outer, dataclasses.replace(OUTER, rows=[None, 5]), "5 is no data of Inner"), (Model, 5, "main/x: 5 cannot be stored as Model")]


@pytest.mark.parametrize("cls, value, message", REFUSED)
def test_what_would_be_read_as_something_else_is_refused(cls, value, message):
    with heddle.open() as store:
        cell = store.cell("main/x", cls)
        with pytest.raises(TypeError) as refused:
            cell.set(value)
        assert message in str(refused.value) and str(refused.value).startswith("main/x: ")
        assert not cell.exists()


def test_a_dict_may_be_written_for_an_object():
    with heddle.open() as store:
        cell = store.cell("main/x", list[Inner])
        cell.set([{"v": 1}])
        assert cell() == [Inner(1)]


def test_a_class_that_has_changed_reads_what_it_has_fields_for():
    with heddle.open() as store:
        store.cell("main/x").set({"v": 1, "gone": 2})
        assert store.cell("main/x", Inner)() == Inner(1)
        store.cell("main/x").set({"t": []})
        with pytest.raises(heddle.InputError, match="main/x cannot be read as Inner: there is no 'v', for which Inner has no default"):
            store.cell("main/x", Inner)()
        store.cell("main/x").set(7)
        with pytest.raises(heddle.InputError, match="main/x cannot be read as Colour: 7 is not a valid Colour"):
            store.cell("main/x", Colour)()
        store.cell("main/x").set({"amount": "none"})
        with pytest.raises(pydantic.ValidationError) as refused:
            store.cell("main/x", Model)()
        assert refused.value.__notes__ == ["main/x cannot be read as Model"]


def test_async_for_raises_what_a_read_raises():
    @dataclass
    class One:
        a: int

    async def main():
        async with heddle.open() as store:
            store.cell("main/x").set({"a": 1})
            seen = []
            with pytest.raises(heddle.InputError, match="main/x cannot be read as .*One"):
                async for value in store.cell("main/x", One):
                    seen.append(value)
                    store.cell("main/x").set({"b": 1})
            assert seen == [One(1)] and not store.nodes()

    asyncio.run(main())


def test_a_computation_of_a_typed_cell_is_held_to_its_type():
    told = []
    with heddle.open() as store:
        store.on_error(lambda name, error: told.append(str(error)))
        cell = store.cell("main/x", Outer)
        store.computed(cell)(lambda: dataclasses.replace(OUTER, loose=Inner(1)))
        cell.sink(lambda value: None)
        store.settle()
    assert told and told[0].startswith("main/x: value['loose'] cannot be stored as it is")
