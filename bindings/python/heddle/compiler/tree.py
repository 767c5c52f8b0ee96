"""Walks of the syntax tree. The compiler asks for the nodes below a statement again and again, so they are kept with it."""
from __future__ import annotations

import ast

_KEPT = "heddle_below"


def walk(node: ast.AST) -> list[ast.AST]:
    """The node and all below it, in the order of the source."""
    known: list[ast.AST] | None = node.__dict__.get(_KEPT)
    if known is None:
        known = [node]
        for child in ast.iter_child_nodes(node):
            known += walk(child)
        node.__dict__[_KEPT] = known
    return known
