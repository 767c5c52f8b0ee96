"""Models of pydantic 2. Debian 12 has pydantic 1: where 2 is missing, a stand-in has its interface."""
from __future__ import annotations

import asyncio
import inspect

import pydantic
import pytest

import heddle
from heddle import Workflow, action, workflow

if hasattr(pydantic.BaseModel, "model_validate"):
    BaseModel, ValidationError = pydantic.BaseModel, pydantic.ValidationError
else:
    class ValidationError(ValueError):  # type: ignore[no-redef]
        """Like that of pydantic_core: only from_exception_data makes one, and it has no arguments."""

        def __new__(cls, title, line_errors):
            made = ValueError.__new__(cls)
            made.title, made._errors = title, line_errors
            return made

        def __init__(self, *args):
            pass

        @classmethod
        def from_exception_data(cls, title, line_errors):
            return cls(title, line_errors)

        def errors(self):
            return [{**part, "msg": "wrong", "url": "https://example.invalid"} for part in self._errors]

        def __str__(self):
            return f"{len(self._errors)} validation error for {self.title}"

    class BaseModel:  # type: ignore[no-redef]
        model_fields: dict = {}

        def __init_subclass__(cls):
            hints = inspect.get_annotations(cls, eval_str=True)
            cls.model_fields = {**cls.model_fields, **{name: (hint, getattr(cls, name, ...)) for name, hint in hints.items()}}

        def __init__(self, **given):
            for name, (hint, default) in self.model_fields.items():
                value = given.pop(name, default)
                if hint is int and not isinstance(value, int):
                    raise ValidationError.from_exception_data(type(self).__name__, [
                        {"type": "int_parsing", "loc": (name,), "input": value}])
                self.__dict__[name] = value
            self.__dict__.update(given)

        @classmethod
        def model_validate(cls, data):
            return data if isinstance(data, cls) else cls(**data)

        @classmethod
        def model_construct(cls, **given):
            made = cls.__new__(cls)
            made.__dict__.update(given)
            return made

        def model_dump(self, mode="python", **options):
            return dict(self.__dict__)

        def __eq__(self, other):
            return type(self) is type(other) and self.__dict__ == other.__dict__


class Item(BaseModel):
    id: int
    name: str = "tea"


@action
async def same(x):
    return x


@action
async def refuse() -> None:
    Item(id="seven")


@workflow
class Passes(Workflow):
    async def run(self, item):
        return await same(item)


@workflow
class Makes(Workflow):
    async def run(self, n: int):
        made = Item(id=n)
        made.name = await same("cup")
        try:
            Item(id="x")
        except ValueError as error:
            return [made, made.id, type(error).__name__]


@workflow
class Typed(Workflow):
    async def run(self, item: Item) -> int:
        return item.id + 1


@workflow
class Refuses(Workflow):
    async def run(self) -> None:
        await refuse()


def run(flow, *args):
    async def main():
        async with heddle.open() as store:
            return await store.run(flow, *args)
    return asyncio.run(main())


def test_models_cross():
    assert run(Passes, Item(id=3)) == Item(id=3)
    assert run(Passes, [Item(id=3, name="x")]) == [Item(id=3, name="x")]


def test_models_are_made_and_checked_by_their_own_code():
    assert run(Makes, 4) == [Item(id=4, name="cup"), 4, "ValidationError"]


def test_inputs_become_models():
    assert run(Typed, {"id": 3}) == 4
    with pytest.raises(ValidationError):
        run(Typed, {"id": "x"})


def test_a_validation_error_crosses():
    with pytest.raises(ValidationError, match="1 validation error for Item") as raised:
        run(Refuses)
    assert raised.value.title == "Item" and raised.value.errors()[0]["input"] == "seven"
    assert "in refuse" in raised.value.__traceback_text__ or not hasattr(raised.value, "__traceback_text__")


def test_models_in_cells():
    with heddle.open() as store:
        cell = store.cell("main/item", Item)
        cell.set(Item(id=5))
        assert cell() == Item(id=5) and store.cell("main/item")() == {"id": 5, "name": "tea"}


class Stubborn(KeyError):
    """Nothing but its own code can make one."""

    def __new__(cls, a, b, c):
        return KeyError.__new__(cls)


@action
async def stubborn() -> None:
    raise Stubborn(1, 2, 3)


@workflow
class Stubbornly(Workflow):
    async def run(self) -> None:
        await stubborn()


def test_an_exception_that_cannot_be_made_again_is_one_of_the_class_above():
    with pytest.raises(KeyError) as raised:
        run(Stubbornly)
    assert raised.value.args == (1, 2, 3)
