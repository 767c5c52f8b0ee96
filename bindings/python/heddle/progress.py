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
    steps = state.get("steps", [])
    parts = [_part_of(step) for step in steps[:4]]
    more = len(steps) - 4 + state.get("more", 0)
    if more > 0:
        parts.append(f"and {more} more")
    return f"{state['id']}: {', '.join(parts) or state['status']}"


def cut(line: str, columns: int) -> str:
    """Shortens the line to so many columns: a line that wraps cannot be drawn over."""
    return line if len(line) <= columns else line[:max(columns - 3, 0)] + "..."


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

    def draw(self, text: str) -> None:
        if text == self.last:
            return
        self.to.write(f"\r\x1b[K{cut(text, _columns(self.to))}" if self.terminal else f"{text}\n")
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
            line.draw(line_of(await handle.state()))
            await asyncio.wait([over], timeout=SECONDS)
        line.draw(f"{handle.id}: {await handle.status()}")
        return await over
    finally:
        line.end()
        leave(over)
