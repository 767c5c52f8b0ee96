"""Variables that are read where nothing on any way has assigned them.

CPython raises UnboundLocalError there; the engine refuses a graph with such a read, because a hand-written one is a
mistake. So that the workflow behaves as in CPython, these variables are deleted at the beginning: they then exist, and
have no value.
"""
from __future__ import annotations

from collections import deque
from typing import Iterable

from .graph import Form, Graph, parts_of, variable_of

_EXPRESSION_KEYS = ("do", "args", "when", "over", "while", "give", "seconds", "until", "timeout", "value", "limit")


def _scan(form: Form, reads: set[str]) -> None:
    """Names in an expression. Variables of comprehensions and lambdas are not told from others: that errs on the safe
    side."""
    name = variable_of(form)
    if name is not None:
        reads.add(name)
    for part in parts_of(form):
        _scan(part, reads)


def _targets(form: Form, reads: set[str], assigns: set[str]) -> None:
    if not isinstance(form, list) or not form:
        return
    if form[0] == "name":
        assigns.add(form[1])
    elif form[0] in ("tuple", "*"):
        for part in form[1:]:
            _targets(part, reads, assigns)
    else:
        _scan(form, reads)


def _walruses(form: Form, assigns: set[str]) -> None:
    if isinstance(form, list) and form[0] == ":=":
        assigns.add(form[1])
    for part in parts_of(form):
        _walruses(part, assigns)


def _statement(form: Form, reads: set[str], assigns: set[str]) -> None:
    if form[0] == "assign":
        _scan(form[1], reads)
        for target in form[2:]:
            _targets(target, reads, assigns)
    elif form[0] == "aug":
        _scan(form[2], reads)
        _scan(form[3], reads)
        _targets(form[2], reads, assigns)
    else:
        for part in form[1:]:
            _scan(part, reads)
    _walruses(form, assigns)


def _of_node(node: dict[str, Form]) -> tuple[set[str], set[str]]:
    reads: set[str] = set()
    assigns: set[str] = set()
    for key in _EXPRESSION_KEYS:
        value = node.get(key)
        if key == "do":
            for statement in value or ():
                _statement(statement, reads, assigns)
        elif key in ("args", "when"):
            for form in value or ():
                _scan(form, reads)
                _walruses(form, assigns)
        elif value is not None and not (key == "timeout" and node["kind"] == "ACTION"):
            _scan(value, reads)
            _walruses(value, assigns)
    for _, form in node.get("named", ()):
        _scan(form, reads)
        _walruses(form, assigns)
    _targets(node.get("into"), reads, assigns)
    for clause in node.get("clauses", ()):
        assigns.add(clause["as"])
    return reads, assigns


def unbound_reads(graph: Graph, params: list[str]) -> list[str]:
    """Variables of which some read cannot come after an assignment, in the order of their names. Sets of variables are
    bits of integers here: the graph of a long function has thousands of nodes."""
    bits: dict[str, int] = {}

    def mask(names: Iterable[str]) -> int:
        return sum(1 << bits.setdefault(name, len(bits)) for name in names)
    reads: dict[str, int] = {}
    assigns: dict[str, int] = {}
    for node in graph.nodes:
        found = _of_node(node)
        reads[node["id"]], assigns[node["id"]] = mask(found[0]), mask(found[1])
    assigned = _assigned_before(graph, assigns, mask(params))
    missing = 0
    for at, before in assigned.items():
        missing |= reads[at] & ~before & ~assigns[at]
    return sorted(name for name, bit in bits.items() if missing >> bit & 1 and not name.startswith("%"))


def _assigned_before(graph: Graph, assigns: dict[str, int], params: int) -> dict[str, int]:
    """What some way to each node has assigned."""
    successors: dict[str, list[str]] = {}
    for edge in graph.edges:
        successors.setdefault(edge[0], []).append(edge[1])
    assigned = dict.fromkeys(assigns, 0)
    first = graph.nodes[0]["id"]
    assigned[first] = params
    work, seen = deque([first]), {first}
    while work:
        at = work.popleft()
        out = assigned[at] | assigns[at]
        for to in successors.get(at, ()):
            if to not in seen or out & ~assigned[to]:
                seen.add(to)
                assigned[to] |= out
                work.append(to)
    return assigned
