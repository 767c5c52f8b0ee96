"""Patterns: functions that build graphs; pieces: their instances, which the store remembers."""
from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _heddle
from .cell import Cell
from .version import version_of

if TYPE_CHECKING:
    from .store import Store

Build = _heddle.Build


class Pattern:
    """What ``@heddle.pattern`` makes of a function ``(b, argument=default, ...)``.

    The function runs once for each start of a piece. It makes cells with the methods of ``b``, each under a name that is
    unique in the pattern, and returns the cell of the result. Its parameters are the arguments of the piece, as cells.
    """

    def __init__(self, function: Callable[..., Optional[Cell[Any]]], name: Optional[str] = None) -> None:
        self.function = function
        self.name = name or function.__name__
        self.__doc__ = function.__doc__
        self.arguments = list(inspect.signature(function).parameters.values())[1:]
        self.version = version_of(function)

    def build(self, b: _heddle.Build) -> Optional[Cell[Any]]:
        """Builds one piece."""
        cells = {}
        for argument in self.arguments:
            otherwise = () if argument.default is argument.empty else (argument.default,)
            cells[argument.name] = b.argument(argument.name, *otherwise)
        return self.function(b, **cells)

    def __call__(self, b: _heddle.Build, name: str, **arguments: Cell[Any]) -> Cell[Any]:
        """Inside another pattern: builds this one into it, under a name, with these cells as its arguments. It must be
        registered in the store, by ``store.use(pattern)`` or a piece of it."""
        cell: Cell[Any] = b.use(name, self.name, arguments)
        return cell

    def __repr__(self) -> str:
        return f"<pattern {self.name}>"


def pattern(function: Callable[..., Any]) -> Pattern:
    """Makes a function a pattern."""
    return Pattern(function)


class Piece:
    """A piece that runs: what ``store.piece`` returns."""

    def __init__(self, store: Store, number: int, id: str) -> None:
        self._runtime = store._runtime
        self._number = number
        self.id = id

    @property
    def result(self) -> Cell[Any]:
        """The cell that the pattern returned."""
        return self._runtime.piece_cell(self._number, None, Cell)

    def cell(self, name: str) -> Cell[Any]:
        """The cell of a name in the pattern."""
        return self._runtime.piece_cell(self._number, name, Cell)

    def argument(self, name: str) -> Cell[Any]:
        """An argument, to be read or written."""
        return self._runtime.piece_cell(self._number, "", Cell)["arguments"][name]

    def stop(self) -> None:
        """Stops it; its documents stay."""
        self._runtime.piece_end(self._number, False)

    def remove(self) -> None:
        """Stops it and deletes its documents."""
        self._runtime.piece_end(self._number, True)

    def __repr__(self) -> str:
        return f"<piece {self.id}>"
