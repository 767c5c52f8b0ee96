"""Small drawings: SVG without a library, in a notebook or in a file."""
from __future__ import annotations

import os
import re
from html import escape
from typing import Iterable, NamedTuple, Sequence

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


class Box(NamedTuple):
    """A node of a graph: what stands in it, the second line smaller."""

    name: str
    below: str = ""
    fill: str = "#fff"
    dashed: bool = False

    @property
    def width(self) -> float:
        return max(len(self.name) * LETTER, len(self.below) * LETTER * 0.85) + 16

    @property
    def height(self) -> float:
        return LINE - 8 + (12 if self.below else 0)

    def drawn(self, x: float, y: float, width: float) -> str:
        dashes = ' stroke-dasharray="4 3"' if self.dashed else ""
        below = text(x + width / 2, y + 28, self.below, "middle").replace("<text ", '<text font-size="10" fill="#555" ') if self.below else ""
        return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{self.height:g}" rx="4" fill="{self.fill}" stroke="#666"{dashes}/>'
                + text(x + width / 2, y + 14, self.name, "middle") + below)


def _arrow(points: Sequence[tuple[float, float]], back: bool) -> str:
    """A line through the points, level in each of them, with a head at its end."""
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x1, y1), (x2, y2) in zip(points, points[1:]):
        middle = (x1 + x2) / 2
        path += f" L{x2:g} {y2:g}" if y1 == y2 else f" C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"
    x, y = points[-1]
    dashes = ' stroke-dasharray="4 3"' if back else ""
    return (f'<path d="{path}" fill="none" stroke="#888"{dashes}/>'
            f'<path d="M{x - 7:g} {y - 4:g} L{x:g} {y:g} L{x - 7:g} {y + 4:g} z" fill="#888"/>')


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


class _Layout:
    """Boxes in columns from left to right. An arrow that passes a column has a place of its own there, between the boxes; all
    arrows from one box share it. What leads back goes below everything."""

    def __init__(self, boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> None:
        self.boxes, self.level = boxes, columns(len(boxes), edges)
        self.width = max((box.width for box in boxes), default=0)
        self.edges = [(a, b) for a, b in dict.fromkeys(edges) if a != b]
        self.at: dict[tuple[int, int], float] = {}
        """The middle of each box, and of each place that an arrow passes: by box, and column."""
        self.height = self._place()

    def _before(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """What leads to each place, one column to the left."""
        before: dict[tuple[int, int], list[tuple[int, int]]] = {(a, self.level[a]): [] for a in range(len(self.boxes))}
        for a, b in self.edges:
            for column in range(self.level[a] + 1, self.level[b] + 1):
                target = (b if column == self.level[b] else a, column)
                before.setdefault(target, []).append((a, column - 1))
        return before

    def _place(self) -> float:
        before, bottom = self._before(), 0.0
        for column in range(max(self.level, default=0) + 1):
            places = [place for place in before if place[1] == column]
            wish = {place: sum(self.at[p] for p in before[place]) / len(before[place]) if before[place] else 0 for place in places}
            y = 10.0
            for place in sorted(places, key=lambda place: wish[place]):
                height = self.boxes[place[0]].height if self.level[place[0]] == column else LINE / 2
                y = max(y, wish[place] - height / 2)
                self.at[place] = y + height / 2
                y += height + 10
            bottom = max(bottom, y)
        return bottom

    def left(self, column: int) -> float:
        return 10 + column * (self.width + GAP)

    def points(self, a: int, b: int, lane: float) -> list[tuple[float, float]]:
        first, last = self.level[a], self.level[b]
        points = [(self.left(first) + self.width, self.at[a, first])]
        for column in range(first + 1, last):
            points += [(self.left(column), self.at[a, column]), (self.left(column) + self.width, self.at[a, column])]
        if last <= first:
            points += [(points[0][0] + GAP / 3, lane), (self.left(last) - GAP / 3, lane)]
        return [*points, (self.left(last), self.at[b, last])]


def graph(boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> str:
    """Boxes in columns from left to right, with arrows between them; an arrow is a pair of indices."""
    of = _Layout(boxes, edges)
    parts, lane = [], of.height
    for a, b in of.edges:
        back = of.level[b] <= of.level[a]
        parts.append(_arrow(of.points(a, b, lane), back))
        lane += 8 * back
    parts += [box.drawn(of.left(of.level[i]), of.at[i, of.level[i]] - box.height / 2, of.width) for i, box in enumerate(boxes)]
    return svg(of.left(max(of.level, default=0)) + of.width + GAP / 2, lane + 10, parts)
