"""A running workflow as one line in a terminal."""
from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from .flows import Handle

SECONDS = 0.1
"""Between two looks."""


def line_of(state: dict[str, Any]) -> str:
    """What an instance does now, in one line."""
    parts = []
    for step in state.get("steps", [])[:4]:
        what = step.get("action") or step.get("signal") or step.get("kind", "").lower()
        fan = step.get("fan")
        done = f" {fan['done']}/{fan['total']}" if fan else ""
        again = f", attempt {step['attempt']}" if step.get("attempt", 1) > 1 else ""
        parts.append(f"{what}{done} ({step['state']}{again})")
    more = len(state.get("steps", [])) - 4 + state.get("more", 0)
    if more > 0:
        parts.append(f"and {more} more")
    return f"{state['id']}: {', '.join(parts) or state['status']}"


async def shown(handle: Handle[Any], to: TextIO = sys.stderr) -> Any:
    """Waits for the result, and shows meanwhile what the instance does. Where it is no terminal: only changes."""
    over = asyncio.ensure_future(handle.result())
    terminal, last = to.isatty(), ""
    while not over.done():
        line = line_of(await handle.state())
        if line != last:
            to.write(f"\r\x1b[K{line}" if terminal else f"{line}\n")
            to.flush()
            last = line
        await asyncio.wait([over], timeout=SECONDS)
    if terminal:
        to.write("\r\x1b[K")
    to.write(f"{handle.id}: {await handle.status()}\n")
    return await over
