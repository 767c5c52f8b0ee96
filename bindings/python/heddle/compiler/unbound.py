"""Variables that are read where nothing on any way has assigned them.

CPython raises UnboundLocalError there; the engine refuses a graph with such a read, because a hand-written one is a
mistake. So that the workflow behaves as in CPython, these variables are deleted at the beginning: they then exist, and
have no value.
"""
from __future__ import annotations

from .graph import Form, Graph

_EXPRESSION_KEYS = ("do", "args", "when", "over", "while", "give", "seconds", "until", "timeout", "value", "limit")


def _scan(form: Form, reads: set[str]) -> None:
    """Names in an expression. Variables of comprehensions and lambdas are not told from others: that errs on the safe
    side."""
    if isinstance(form, list):
        if len(form) == 2 and form[0] == "name" and isinstance(form[1], str):
            reads.add(form[1])
            return
        for part in form:
            if isinstance(part, list):
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
    if isinstance(form, list):
        if len(form) == 3 and form[0] == ":=" and isinstance(form[1], str):
            assigns.add(form[1])
        for part in form:
            if isinstance(part, list):
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
    """Variables of which some read cannot come after an assignment, in the order of their names."""
    sets = {node["id"]: _of_node(node) for node in graph.nodes}
    assigned: dict[str, set[str]] = {name: set() for name in sets}
    assigned[graph.nodes[0]["id"]] |= set(params)
    successors: dict[str, list[tuple[str, str]]] = {}
    for edge in graph.edges:
        successors.setdefault(edge[0], []).append((edge[1], edge[2] if len(edge) > 2 else ""))
    work = [graph.nodes[0]["id"]]
    seen: set[str] = set()
    while work:
        at = work.pop()
        out = assigned[at] | sets[at][1]
        for to, _ in successors.get(at, ()):
            if to not in seen or not out <= assigned[to]:
                seen.add(to)
                assigned[to] |= out
                work.append(to)
    missing: set[str] = set()
    for name, (reads, assigns) in sets.items():
        missing |= reads - assigned[name] - assigns
    return sorted(name for name in missing if not name.startswith("%"))
