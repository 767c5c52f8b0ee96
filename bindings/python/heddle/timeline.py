"""What an instance has done, on a line of time."""
from __future__ import annotations

import os
from typing import Any

from . import drawing

WIDTH = 500
"""Of the line, in pixels."""

COLOURS = {"done": "#4a4", "raise": "#c33", "retry": "#e90", "lost": "#c33", "start": "#666", "end": "#666"}


class Timeline:
    """Text at a prompt, a drawing in a notebook; ``save("x.svg")`` writes a file. ``entries`` are (seconds since the start,
    what, where)."""

    def __init__(self, id: str, entries: list[tuple[float, str, str]]) -> None:
        self.id = id
        self.entries = entries

    def __str__(self) -> str:
        lines = [self.id]
        lines += (f"  {at:>10.3f} s  {what:<8} {where}".rstrip() for at, what, where in self.entries)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        last = max((at for at, _, _ in self.entries), default=0) or 1
        label = max((len(where) for _, _, where in self.entries), default=1) * drawing.LETTER + 20
        parts = []
        for i, (at, what, where) in enumerate(self.entries):
            y, x = 20 + i * drawing.LINE, label + at / last * WIDTH
            colour = COLOURS.get(what, "#48c")
            parts.append(drawing.text(5, y + 4, where))
            parts.append(f'<line x1="{label}" y1="{y}" x2="{x:g}" y2="{y}" stroke="#ccc"/>')
            parts.append(f'<circle cx="{x:g}" cy="{y}" r="5" fill="{colour}"/>')
            parts.append(drawing.text(x + 9, y + 4, f"{what} {at:.3f} s"))
        return drawing.svg(label + WIDTH + 140, 20 + len(self.entries) * drawing.LINE, parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, in the form that its name ends in: .svg or .txt."""
        ending = drawing.ending_of(path, (".svg", ".txt"))
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._repr_svg_() if ending == ".svg" else str(self) + "\n")


def timeline_of(state: dict[str, Any], journal: list[dict[str, Any]]) -> Timeline:
    """From the journal, where the workflow keeps one; else its start, its open steps and its end."""
    began = state["started"]
    entries = [((entry["at"] - began) / 1000, entry["what"], _where(entry)) for entry in journal]
    if not journal:
        entries = [(0.0, "start", "")]
        entries += (((step.get("since") or began) / 1000 - began / 1000, step["state"], step["node"])
                    for step in state.get("steps", []))
        if state.get("finished"):
            entries.append(((state["finished"] - began) / 1000, "end", state["status"]))
    return Timeline(state["id"], sorted(entries, key=lambda entry: entry[0]))


def _where(entry: dict[str, Any]) -> str:
    again = f", attempt {entry['attempt']}" if entry.get("attempt", 1) > 1 else ""
    return f"{entry.get('node') or entry.get('signal', '')}{again}"
