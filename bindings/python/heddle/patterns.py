"""Patterns: functions that build graphs; pieces: their instances, which the store remembers."""
from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, Optional, overload

from . import _heddle
from .cell import Cell
from .version import is_async, version_of

if TYPE_CHECKING:
    from .store import Store

Build = _heddle.Build


class Pattern:
    """What ``@heddle.pattern`` makes of a function ``(b, argument=default, ...)``.

    The function runs once for each start of a piece. It makes cells with the methods of ``b``, each under a name that is
    unique in the pattern, and returns the cell of the result. Its parameters are the arguments of the piece, as cells.
    """

    def __init__(self, function: Callable[..., Optional[Cell[Any]]], name: Optional[str] = None,
                 version: Optional[str] = None) -> None:
        if is_async(function):
            raise TypeError(f"a pattern is an ordinary function, and {getattr(function, '__name__', 'this one')} is async: it only builds")
        self.function = function
        self.name = name or function.__name__
        self.__doc__ = function.__doc__
        self.arguments = list(inspect.signature(function).parameters.values())[1:]
        self._version = version

    @property
    def version(self) -> str:
        """Of its code. Nodes of a piece run again if it is another one than at their last run."""
        return self._version or version_of(self.function)

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


@overload
def pattern(function: Callable[..., Any]) -> Pattern: ...
@overload
def pattern(*, name: Optional[str] = None, version: Optional[str] = None) -> Callable[[Callable[..., Any]], Pattern]: ...


def pattern(function: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None, version: Optional[str] = None) -> Any:
    """Makes a function a pattern: ``@heddle.pattern`` or ``@heddle.pattern(version="2")``.

    ``name`` is what pieces remember it by, that of the function if none is given. ``version`` stands for its code; without it
    the functions of the module that it calls by name count, too. A change of the code makes all nodes of its pieces run again."""
    if function is None:
        return lambda decorated: Pattern(decorated, name, version)
    return Pattern(function, name, version)


class Piece:
    """A piece that runs: what ``store.piece`` returns."""

    def __init__(self, store: Store, number: int, id: str, space: str = "main") -> None:
        self._runtime = store._runtime
        self._number = number
        self._space = space
        self._stopped = False
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
        self._stopped = True

    def remove(self) -> None:
        """Stops it and deletes its documents, also if it was stopped before."""
        if self._stopped:
            self._number = self._runtime.piece(self._space, self.id, None, {})
        self._runtime.piece_end(self._number, True)

    def __repr__(self) -> str:
        return f"<piece {self.id}>"
