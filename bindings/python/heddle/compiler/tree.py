"""Walks of the syntax tree. The compiler asks for the nodes below a statement again and again, so they are kept while it
compiles a workflow."""
from __future__ import annotations

import ast

_below: dict[ast.AST, list[ast.AST]] = {}


def walk(node: ast.AST) -> list[ast.AST]:
    """The node and all below it, in the order of the source."""
    known = _below.get(node)
    if known is None:
        known = [node]
        for child in ast.iter_child_nodes(node):
            known += walk(child)
        _below[node] = known
    return known


def forget() -> None:
    """The workflow is compiled."""
    _below.clear()
