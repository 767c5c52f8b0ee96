"""What an instance has done, on a line of time."""
from __future__ import annotations

import math
import os
from typing import Any, Optional, Sequence

from . import drawing

WIDTH = 500
"""Of the line, in pixels."""

COLOURS = {"done": "#4a4", "raise": "#c33", "retry": "#e90", "lost": "#c33", "start": "#666", "end": "#666"}


class Timeline:
    """Text at a prompt, a drawing in a notebook; ``save("x.svg")`` writes a file. ``entries`` are (seconds since the start,
    what, where)."""

    def __init__(self, id: str, entries: list[tuple[float, str, str]], begins: Sequence[Optional[float]] = ()) -> None:
        self.id = id
        self.entries = entries
        self._begins = begins
        """For each entry when what it tells of began; None: that is not known."""

    def __str__(self) -> str:
        lines = [self.id]
        lines += (f"  {at:>10.3f} s  {what:<8} {where}".rstrip() for at, what, where in self.entries)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        last = max((at for at, _, _ in self.entries), default=0) or 1
        label = max((len(where) for _, _, where in self.entries), default=1) * drawing.LETTER + 20
        bottom = 30 + len(self.entries) * drawing.LINE
        parts = []
        for at in _ticks(last):
            x = label + at / last * WIDTH
            parts.append(f'<line x1="{x:g}" y1="20" x2="{x:g}" y2="{bottom - 10}" stroke="#ddd"/>')
            parts.append(drawing.text(x, 14, f"{at:g} s", "middle"))
        for i, (at, what, where) in enumerate(self.entries):
            y, x = 38 + i * drawing.LINE, label + at / last * WIDTH
            began = self._begins[i] if i < len(self._begins) else None
            took = ""
            parts.append(drawing.text(5, y + 4, where))
            if began is not None:
                took = f", took {at - began:.3f} s"
                parts.append(f'<rect x="{label + began / last * WIDTH:g}" y="{y - 4}" width="{(at - began) / last * WIDTH:g}" '
                             f'height="8" fill="{_colour(what)}" fill-opacity="0.4"/>')
            parts.append(f'<circle cx="{x:g}" cy="{y}" r="5" fill="{_colour(what)}"/>')
            parts.append(drawing.text(x + 9, y + 4, f"{what} {at:.3f} s{took}"))
        return drawing.svg(label + WIDTH + 230, bottom, parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, in the form that its name ends in: .svg or .txt."""
        ending = drawing.ending_of(path, (".svg", ".txt"))
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._repr_svg_() if ending == ".svg" else str(self) + "\n")


def _colour(what: str) -> str:
    return COLOURS.get(what, "#48c")


def _ticks(last: float) -> list[float]:
    """Round times from 0 on, at most ten after it."""
    step = 10.0 ** math.floor(math.log10(last))
    step = next(part for part in (step / 10, step / 5, step / 2, step) if last / part <= 10)
    return [round(i * step, 9) for i in range(int(last / step + 1e-9) + 1)]


def timeline_of(state: dict[str, Any], journal: list[dict[str, Any]]) -> Timeline:
    """From the journal, where the workflow keeps one; else its start, its open steps and its end."""
    began = state["started"]
    if journal:
        journal = sorted(journal, key=lambda entry: int(entry["at"]))
        entries = [((entry["at"] - began) / 1000, entry["what"], _where(entry)) for entry in journal]
        return Timeline(state["id"], entries, _begins_of(journal, began))
    entries = [(0.0, "start", "")]
    entries += (((step.get("since") or began) / 1000 - began / 1000, step["state"], step["node"]) for step in state.get("steps", []))
    if state.get("finished"):
        entries.append(((state["finished"] - began) / 1000, "end", state["status"]))
    return Timeline(state["id"], sorted(entries, key=lambda entry: entry[0]))


def _begins_of(journal: list[dict[str, Any]], began: int) -> list[Optional[float]]:
    """The journal tells when steps end. The steps of one task come one after the other, so that a step began when the one
    before it ended, if the journal has that one; the first step of the instance began with it."""
    ended: dict[tuple[str, int], int] = {("0", 0): began}
    begins: list[Optional[float]] = []
    for entry in journal:
        task, _, number = str(entry.get("step", "")).rpartition(".")
        before = ended.get((task, int(number) - 1)) if number.isdigit() else None
        again = entry.get("attempt", 1) > 1
        begins.append(None if before is None or again else (before - began) / 1000)
        if number.isdigit():
            ended[task, int(number)] = entry["at"]
    return begins


def _where(entry: dict[str, Any]) -> str:
    again = f", attempt {entry['attempt']}" if entry.get("attempt", 1) > 1 else ""
    return f"{entry.get('node') or entry.get('signal', '')}{again}"
