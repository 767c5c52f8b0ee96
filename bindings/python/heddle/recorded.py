"""Values that a workflow may not compute itself, because they differ from run to run: time, chance, and what it says.

Inside of a workflow the compiler makes steps of these; elsewhere they are ordinary functions."""
from __future__ import annotations

import logging
import random as _random
import time as _time
import uuid as _uuid
from typing import Any, Optional

from .actions import Action, Options

logger = logging.getLogger("heddle.workflow")


def now() -> float:
    """Seconds since 1970, a float. In a workflow: at the moment the step is made; the value is stored. Not awaited.
    ``datetime(1970, 1, 1) + timedelta(seconds=heddle.now())`` is the datetime in UTC, also there."""
    return _time.time()


def uuid() -> str:
    """A new random id, as text. In a workflow it is stored. Not awaited."""
    return str(_uuid.uuid4())


def random() -> float:
    """A random number, at least 0.0 and less than 1.0. In a workflow it is stored. Not awaited."""
    return _random.random()


def log(message: object, *args: Any) -> None:
    """Writes a line to the logger "heddle.workflow". In a workflow it is a step, so that a line that was written is not
    written again when the workflow goes on after a crash. Not awaited. The level is INFO, which Python shows only if the
    program asks for it: ``logging.basicConfig(level=logging.INFO)``."""
    logger.info(str(message), *args)


async def signal(name: str, timeout: Optional[float] = None) -> Any:
    """Waits for a signal (``handle.signal(name, payload)``) and gives its payload; TimeoutError after ``timeout``
    seconds. Workflows only."""
    raise RuntimeError("heddle.signal() waits inside of a workflow; outside there is handle.signal(name, payload)")


def _write(message: str, args: list[Any]) -> None:
    logger.info(message, *args)


LOG: Action[[str, list[Any]], None] = Action(_write, "heddle.log", Options())
