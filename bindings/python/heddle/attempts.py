"""The attempt at a step that an action runs in."""
from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any, Callable, Optional


class Attempt:
    """One attempt at one step: what ``heddle.attempt()`` gives inside an action."""

    __slots__ = ("id", "number", "action", "revoked", "_token", "_beat", "_task", "_timer")

    def __init__(self, id: str, number: int, action: str, token: Any, beat: Callable[[Any], None]) -> None:
        self.id = id
        """The same in every attempt at the step: give it to what the action calls, as its idempotency key."""
        self.number = number
        """1, 2, ..."""
        self.action = action
        """The action's name."""
        self.revoked = False
        """The engine does not wait for this attempt any more: a long action looks now and then, and returns."""
        self._token = token
        self._beat = beat
        self._task: Optional[asyncio.Task[None]] = None
        """Of an async action."""
        self._timer: Optional[asyncio.TimerHandle] = None
        """Of its heartbeats."""

    def heartbeat(self) -> None:
        """Says that the action is still at work. Async actions need not: that is done for them."""
        self._beat(self._token)

    def __repr__(self) -> str:
        return f"<attempt {self.number} at {self.id}>"


_current: ContextVar[Optional[Attempt]] = ContextVar("heddle.attempt", default=None)


def attempt() -> Attempt:
    """The attempt that the calling action runs in."""
    found = _current.get()
    if found is None:
        raise RuntimeError("heddle.attempt() is for actions, while a workflow runs them")
    return found
