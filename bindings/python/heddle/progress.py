"""A running workflow as one line in a terminal."""
from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from .flows import Handle

SECONDS = 0.1
"""Between two looks."""

ID_LEAST = 24
"""Columns that an id keeps."""


def _part_of(step: dict[str, Any]) -> str:
    """What one open step does, in a few words."""
    if step["state"] == "branches":
        fan = step.get("fan")
        return f"{fan['done']} of {fan['total']} branches" if fan else "branches"
    what = step.get("action") or step.get("signal") or step.get("workflow") or step["kind"].lower()
    again = f", attempt {step['attempt']}" if step.get("attempt", 1) > 1 else ""
    return f"{what} ({step['state']}{again})"


def line_of(state: dict[str, Any]) -> str:
    """What an instance does now, in one line."""
    return f"{state['id']}: {_does(state)}"


def _does(state: dict[str, Any]) -> str:
    steps = state.get("steps", [])
    parts = [_part_of(step) for step in steps[:4]]
    more = len(steps) - 4 + state.get("more", 0)
    if more > 0:
        parts.append(f"and {more} more")
    return ", ".join(parts) or str(state["status"])


def cut(line: str, columns: int) -> str:
    """Shortens the line to so many columns: a line that wraps cannot be drawn over."""
    return line if len(line) <= columns else line[:max(columns - 3, 0)] + "..."


def fit(id: str, does: str, columns: int) -> str:
    """One line of at most so many columns: a long id loses its middle, down to ID_LEAST columns, before anything else is cut."""
    room = max(columns - len(does) - 2, ID_LEAST)
    if len(id) > room:
        id = f"{id[:(room - 3) // 2]}...{id[len(id) - (room - 2) // 2:]}"
    return cut(f"{id}: {does}", columns)


def _columns(of: TextIO) -> int:
    """How many columns the terminal has, without the last one: some terminals wrap there."""
    try:
        return (os.get_terminal_size(of.fileno()).columns or 80) - 1
    except (OSError, ValueError):
        return 79


class _Line:
    """One line of a terminal, in which each text is drawn over the last one. Elsewhere each new text is a line of its
    own."""

    def __init__(self, to: TextIO) -> None:
        self.to, self.terminal, self.last = to, to.isatty(), ""

    def draw(self, id: str, does: str) -> None:
        text = f"{id}: {does}"
        if text == self.last:
            return
        self.to.write(f"\r\x1b[K{fit(id, does, _columns(self.to))}" if self.terminal else f"{text}\n")
        self.to.flush()
        self.last = text

    def end(self) -> None:
        """Ends the line, so that other output begins on a new one."""
        if self.terminal and self.last:
            self.to.write("\n")


def leave(task: asyncio.Future[Any]) -> None:
    """Cancels a task that nothing waits for any more. If it has ended, asyncio does not report its exception."""
    if not task.cancel() and not task.cancelled():
        task.exception()


async def shown(handle: Handle[Any]) -> Any:
    """Waits for the result, and shows meanwhile what the instance does."""
    over = asyncio.ensure_future(handle.result())
    line = _Line(sys.stderr)
    try:
        while not over.done():
            line.draw(handle.id, _does(await handle.state()))
            await asyncio.wait([over], timeout=SECONDS)
        line.draw(handle.id, await handle.status())
        return await over
    finally:
        line.end()
        leave(over)
