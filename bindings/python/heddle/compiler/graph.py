"""Nodes and edges of one function, made from top to bottom.

What has been made so far ends in *ends*: edges that lead nowhere yet. The next node takes them all; where several meet,
a MERGE stands before it. Statements gather in one CALC until another kind of node follows. Without ends nothing is
reached, and nothing is added: code behind a ``return`` is compiled for its refusals only.
"""
from __future__ import annotations

import ast
from typing import Any, Optional

from .refusal import Source

Form = Any
"""An expression, statement or target of docs/EXPRESSIONS.md."""

_WHOLE = frozenset({"name", "const", "type", "func"})
_PARTS = {"attr": 1, "lambda": 2, ":=": 2}
"""Forms with one part that is an expression."""


def variable_of(form: Form) -> Optional[str]:
    """The variable that an expression names; None: it is something else."""
    return form[1] if isinstance(form, list) and form[0] == "name" else None


def parts_of(form: Form) -> list[Form]:
    """The expressions and clauses in an expression. Lists that are no expressions, as of arguments, are not taken for some:
    ``f(name="x")`` has the pair ``["name", "x"]``."""
    if not isinstance(form, list) or form[0] in _WHOLE:
        return []
    if form[0] in _PARTS:
        return [form[_PARTS[form[0]]]]
    if form[0] in ("call", "new"):
        return _arguments(form[2:])
    return [form[1], *_arguments(form[3:])] if form[0] == "method" else form[1:]


def _arguments(given: list[Form]) -> list[Form]:
    named = given[1] if len(given) > 1 else []
    return [*(given[0] if given else []), *(pair[1] for pair in named or ())]


End = tuple[str, Optional[str], int]

NOWHERE = "%nowhere"
_SILENT = frozenset({"ENTRY", "MERGE"})


class Handler:
    """A HANDLER to be: it becomes a node when something that can raise has named it."""

    def __init__(self, outer: Optional[Handler]) -> None:
        self.outer = outer
        self.raisers: list[str] = []


class Graph:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.nodes: list[dict[str, Form]] = []
        self.edges: list[list[Form]] = []
        self.handler: Optional[Handler] = None
        self.path = ""
        self._ends: list[End] = []
        self._pending: list[Form] = []
        self._pending_at: Optional[ast.AST] = None
        self._used: set[str] = set()
        self._labels: set[str] = set()

    # ---- ends

    def take(self) -> list[End]:
        """All ends; the caller gives them back later, or to another node."""
        self.flush()
        ends, self._ends = self._ends, []
        return ends

    def give(self, ends: list[End]) -> None:
        self.flush()
        self._ends = [*self._ends, *ends]

    def behind(self, node: str, kind: str, index: int = 0) -> None:
        """What is made next follows this edge."""
        self.flush()
        self._ends = [] if node == NOWHERE else [(node, kind, index)]

    @property
    def is_reached(self) -> bool:
        return bool(self._ends)

    # ---- nodes

    def name(self, label: str) -> str:
        """An id: the path of the blocks around, then the label, with a number where it is taken."""
        wanted = found = self.path + label
        number = 2
        while found in self._used:
            found, number = f"{wanted}.{number}", number + 1
        self._used.add(found)
        return found

    def label(self, word: str) -> str:
        """A name for a statement and its blocks, unique where it stands."""
        found, number = word, 2
        while self.path + found in self._labels:
            found, number = f"{word}.{number}", number + 1
        self._labels.add(self.path + found)
        return found

    def do(self, statement: Form, at: ast.AST) -> None:
        """One more statement for the CALC at the end."""
        if not self._ends:
            return
        if not self._pending:
            self._pending_at = at
        self._pending.append(statement)

    def flush(self) -> None:
        if self._pending:
            statements, self._pending = self._pending, []
            assert self._pending_at is not None
            self.add("CALC", self._pending_at, "calc", do=statements)

    def add(self, kind: str, at: ast.AST, label: str, **keys: Form) -> str:
        """A node behind all ends; it is the only end from now on."""
        self.flush()
        if not self._ends and kind != "ENTRY":
            return NOWHERE
        if len(self._ends) > 1 and kind not in ("MERGE", "BARRIER"):
            self.add("MERGE", at, "merge")
        found = self._record(kind, at, label, keys)
        for origin, edge, index in self._ends:
            self.edge(origin, found, edge, index)
        self._ends = [(found, None, 0)]
        return found

    def _record(self, kind: str, at: ast.AST, label: str, keys: dict[str, Form]) -> str:
        found = self.name(label)
        self.nodes.append({"id": found, "kind": kind, "at": self.source.at(at), **keys})
        if self.handler is not None and kind not in _SILENT:
            self.handler.raisers.append(found)
        return found

    def edge(self, origin: str, to: str, kind: Optional[str] = None, index: int = 0) -> None:
        if index:
            self.edges.append([origin, to, kind, index])
        else:
            self.edges.append([origin, to, kind] if kind else [origin, to])

    def one_end(self, at: ast.AST) -> None:
        """Makes a MERGE where the ends could not be the ends of an edge with a kind of its own."""
        self.flush()
        if len(self._ends) > 1 or any(kind for _, kind, _ in self._ends):
            self.add("MERGE", at, "merge")

    def lead(self, to: str, kind: str, at: ast.AST) -> None:
        """Leads all ends to a node that is there, by an edge of this kind."""
        self.one_end(at)
        for origin, _, _ in self._ends:
            self.edge(origin, to, kind)
        self._ends = []

    def handle(self, handler: Handler, at: ast.AST, label: str, clauses: list[Form]) -> str:
        """The HANDLER node of what named it; NOWHERE if nothing did. It has no ends: its clauses do."""
        assert not self._ends and not self._pending
        if not handler.raisers:
            return NOWHERE
        inner, self.handler = self.handler, handler.outer
        found = self._record("HANDLER", at, label, {"clauses": clauses})
        self.handler = inner
        for raiser in handler.raisers:
            self.edge(raiser, found, "EXCEPT")
        return found
