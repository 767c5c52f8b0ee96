"""Small drawings: SVG without a library, in a notebook or in a file."""
from __future__ import annotations

import os
import re
from html import escape
from typing import Iterable, Sequence

LETTER, LINE, GAP = 7, 28, 60
"""Widths of a letter, heights of a row, between columns: in pixels."""


def ending_of(path: str | os.PathLike[str], known: Iterable[str]) -> str:
    """The ending of a file's name, such as ".svg". ValueError: it is not one of the known ones."""
    ending = os.path.splitext(os.fspath(path))[1]
    if ending not in known:
        raise ValueError(f"the name ends in one of {', '.join(known)}, not in {ending!r}")
    return ending


def svg(width: float, height: float, parts: Sequence[str]) -> str:
    """A drawing of these parts, on a ground of its own: a notebook may be dark."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" font-family="sans-serif" '
            f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>')


_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(_NOT_IN_XML.sub("?", words))}</text>'


def box(x: float, y: float, width: float, words: str, fill: str = "#fff") -> str:
    return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{LINE - 8}" rx="4" fill="{fill}" stroke="#666"/>'
            + text(x + width / 2, y + 14, words, "middle"))


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    middle = (x1 + x2) / 2
    return f'<path d="M{x1:g} {y1:g} C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}" fill="none" stroke="#999"/>'


def columns(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For each node how far it is from those that nothing leads to; what goes round in a circle stays where it is."""
    level = [0] * count
    for _ in range(count):
        changed = False
        for before, after in edges:
            if level[after] <= level[before] < count - 1 and before != after:
                level[after], changed = level[before] + 1, True
        if not changed:
            break
    return level


def graph(names: Sequence[str], edges: Sequence[tuple[int, int]], fills: Sequence[str]) -> str:
    """Nodes in columns from left to right, with arrows between them."""
    level = columns(len(names), edges)
    width = max((len(name) for name in names), default=1) * LETTER + 16
    rows: dict[int, int] = {}
    at: list[tuple[float, float]] = []
    for column in level:
        row = rows.get(column, 0)
        rows[column] = row + 1
        at.append((10 + column * (width + GAP), 10 + row * LINE))
    parts = [arrow(at[a][0] + width, at[a][1] + 10, at[b][0], at[b][1] + 10) for a, b in edges]
    parts += [box(x, y, width, name, fill) for (x, y), name, fill in zip(at, names, fills)]
    return svg(20 + (max(level, default=0) + 1) * (width + GAP), 20 + max(rows.values(), default=1) * LINE, parts)
