"""Cells: addresses in a store, read by calling them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Generic, Optional, TypeVar, cast

from . import _heddle, values
from .typed import model_of

if TYPE_CHECKING:
    from .store import Node, Store

T = TypeVar("T")


class Cell(_heddle.Cell, Generic[T]):
    """A document of a store, or a place in one.

    ``cell()`` reads it. Inside a computation, an effect or a handler the read is a dependency; inside a transaction it
    is what the transaction sees. ``cell.set(value)`` writes it: in a run or a transaction with that, otherwise as a
    transaction of its own. ``cell["items"][3]`` is the cell of a part.

        async for value in cell:        # now, and whenever it changes
            ...
    """

    if TYPE_CHECKING:  # what the extension does, with the type of the value

        def __call__(self) -> T: ...

        def get(self) -> T:
            """The same as calling the cell."""

        def pull(self) -> T:
            """Brings what computes it up to date first, also if nothing else needs it. Not inside a run."""

        def set(self, value: T, /) -> None:
            """Writes it."""

        def child(self, key: str | int, /) -> Cell[Any]:
            """The cell of a key or an index; ``cell[key]`` is the same."""

        def __getitem__(self, key: str | int) -> Cell[Any]: ...

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "__orig_class__":  # of typing: Cell[int]
            return super().__setattr__(name, value)
        raise AttributeError(f"a cell has no attribute {name} that could be set: cell.set(...) writes its value, "
                             f"cell[{name!r}].set(...) that of a part")

    @property
    def store(self) -> Store:
        """The store that it belongs to."""
        return cast("Store", self.runtime.store)

    def follow(self, link: Any) -> Cell[Any]:
        """The cell that a link points at, seen from here."""
        return cast("Cell[Any]", self.at_link(link))

    def through(self, schema: dict[str, Any]) -> Cell[Any]:
        """The same address, read through a JSON Schema: what it describes, with its defaults; None where it does not
        match."""
        return cast("Cell[Any]", self.with_schema(schema))

    def sink(self, fn: Callable[[T], object], *, name: Optional[str] = None, confirmed: bool = False,
             group: int = 0) -> Node:
        """Calls ``fn`` with the value, now and whenever it changes, but not for what ``fn`` itself writes. The options are
        those of :meth:`Store.sink`."""
        return self.store.sink(self, fn, name=name, confirmed=confirmed, group=group)

    def __aiter__(self) -> AsyncIterator[T]:
        return self.values()

    async def values(self, *, confirmed: bool = False, group: int = 0) -> AsyncIterator[T]:
        """``async for value in cell.values(confirmed=True)``: values as they come; ``async for value in cell`` is the same
        without options, which are those of :meth:`Store.sink`. Of several changes between two turns of the loop the last
        one counts. The loop ends when the store is closed."""
        import asyncio

        store = self.store
        store._driver_().attach()
        changed = asyncio.Event()
        latest: list[Any] = []

        def note(value: Any) -> None:
            latest[:] = [value]
            changed.set()

        plain: Cell[Any] = store._runtime.cell(Cell, self)  # if the class cannot read a value, the loop raises
        node = plain.sink(note, confirmed=confirmed, group=group)
        store._at_close.add(changed.set)
        try:
            while latest or not store.closed:
                await changed.wait()
                changed.clear()
                if latest:
                    value = latest.pop()
                    yield value if self.load is None or value is None else self.load(value)
        finally:
            store._at_close.discard(changed.set)
            if not store.closed:
                node.stop()


def result_of(cls: Any, cell: str) -> Callable[[Any], Any]:
    """A function that makes an object of the class from a value in the document of an instance. Values of workflows
    that are no plain JSON are stored in forms of their own: values.revive."""
    load = model_of(cls, cell)[0]

    def revived(data: Any) -> Any:
        value = values.revive(data)
        if isinstance(value, values.Record):  # this program does not have the class: its fields are data
            value = values.record_fields(value)
        return load(value) if load is not None and isinstance(value, (dict, list)) else value

    return revived


def is_of_instance(name: str) -> bool:
    """Whether the name is of a place in the document of an instance: "main/workflow/Checkout/17#/result"."""
    return name.partition("#")[0].partition("/")[2].startswith("workflow/")
