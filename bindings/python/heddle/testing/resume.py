"""Killing a workflow at each of its steps."""
from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import tempfile
from typing import Any, Callable, Optional

from .. import _heddle
from ..running import Served
from ..registry import compiled_of
from ..store import Store
from .lab import CLOCK, Lab, Still


def _copy(file: str, to: str) -> None:
    """The store as the disk has it now, without the lease of the program that is still here."""
    with sqlite3.connect(file) as source, sqlite3.connect(to) as target:
        source.backup(target)
    source.close()
    target.close()
    with Store(to) as store:
        lease = store.cell("main/lease/workflow")
        if lease.exists():
            lease.remove()


class _Point:
    """Dies at the nth attempt: before the action runs, or after it, when nothing of it is stored yet."""

    def __init__(self, at: int, after: bool) -> None:
        self.at, self.after = at, after
        self.seen = 0
        self.reached: asyncio.Event = asyncio.Event()

    async def _never(self) -> None:
        self.reached.set()
        await asyncio.Event().wait()

    def wrap(self, lab: Lab) -> None:
        by_name = lab.store._flows_().actions.by_name
        by_name.update({name: _Doomed(self, action) for name, action in by_name.items()})


class _Exit(BaseException):
    """SystemExit of an action in a thread, which is its own. An async action, such as _Doomed, would end the program."""

    __heddle_of__ = SystemExit


class _Doomed:
    """An action that the point may stop."""

    is_async = True

    def __init__(self, point: _Point, action: Served) -> None:
        self.point, self.action, self.name = point, action, action.name

    async def invoke(self, args: Any) -> Any:
        self.point.seen += 1
        here = self.point.seen == self.point.at
        if here and not self.point.after:
            await self.point._never()
        try:
            return await self.action.invoke(args) if self.action.is_async else \
                await asyncio.to_thread(self.action.invoke, args)
        except SystemExit as error:
            if self.action.is_async:
                raise
            raise _Exit(*error.args) from None
        finally:
            if here and self.point.after:
                await self.point._never()


async def _end(running: Any) -> None:
    """Waits for the end. What a workflow raises does not end the loop, not even SystemExit."""
    try:
        await running
    except BaseException:  # _outcome asks for it
        pass


async def _until_killed(lab: Lab, point: _Point, workflow: Any, args: tuple[Any, ...], inputs: dict[str, Any]) -> bool:
    """False: it ended before."""
    flows = lab.store._flows_()
    flows.register(compiled_of(workflow))
    point.wrap(lab)
    over = asyncio.ensure_future(_end(lab.store.options(key="killed").run(workflow, *args, **inputs)))
    dead = asyncio.ensure_future(point.reached.wait())
    await asyncio.wait([over, dead], return_when=asyncio.FIRST_COMPLETED)
    killed = not over.done()
    for task in (over, dead):
        task.cancel()
    await asyncio.gather(over, dead, return_exceptions=True)
    return killed


def _outcome(lab: Lab, workflow: Any, args: tuple[Any, ...], inputs: dict[str, Any]) -> Any:
    try:
        return lab.wait(lab._run(lab.store.options(key="killed"), workflow, args, inputs))
    except (Still, KeyboardInterrupt):
        raise
    except BaseException as error:  # CancelledError and SystemExit are ends of a workflow, too
        return type(error), str(error)


def _stored(outcome: Any) -> Any:
    """What would be stored of it: two exceptions are equal there if their class, arguments and attributes are. What their
    tracebacks were does not count."""
    def without_tracebacks(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_tracebacks(part) for key, part in value.items() if key != "__traceback_text__"}
        return [without_tracebacks(part) for part in value] if isinstance(value, list) else value
    return without_tracebacks(json.loads(_heddle.dumps(outcome)))


def resume_everywhere(workflow: Any, *args: Any, setup: Optional[Callable[[], object]] = None, **inputs: Any) -> int:
    """Runs the workflow once without a fault. Then it kills the program at each step, once before the action and once
    after it, and lets another program go on from what is on disk; each time the workflow must end in the same way. Returns
    how often it was killed: twice for each attempt at an action, so 0 if the workflow begins none. ``setup`` is called before
    each run. Actions run on the test's loop; those that do something outside of the store do it again in every run. No signals
    are given: RuntimeError as from :meth:`Lab.run` if the workflow waits for one without a timeout."""
    with tempfile.TemporaryDirectory(prefix="heddle-") as folder:
        if setup:
            setup()
        with Lab(os.path.join(folder, "whole.db")) as whole:
            expected = _outcome(whole, workflow, args, inputs)
        kills = 0
        for at in range(1, 10_000):
            if not _killed_at(folder, at, workflow, args, inputs, expected, setup):
                return kills
            kills += 2
    raise AssertionError("the workflow has more than 10,000 steps")


def _killed_at(folder: str, at: int, workflow: Any, args: tuple[Any, ...], inputs: dict[str, Any], expected: Any,
               setup: Optional[Callable[[], object]]) -> bool:
    for after in (False, True):
        first, second = (os.path.join(folder, f"{at}-{after}-{part}.db") for part in "ab")
        if setup:
            setup()
        with Lab(first, clock=CLOCK) as lab:
            if not lab.wait(_dies(lab, first, second, at, after, workflow, args, inputs)):
                return False
            died = lab.now
        with Lab(second, clock=died) as lab:             # no time passes between the two programs
            outcome = _outcome(lab, workflow, args, inputs)
        when = "after" if after else "before"
        assert outcome == expected or _stored(outcome) == _stored(expected), f"killed {when} step {at} it ended with {outcome!r}, not with {expected!r}"
    return True


async def _dies(lab: Lab, first: str, second: str, at: int, after: bool, workflow: Any, args: tuple[Any, ...],
                inputs: dict[str, Any]) -> bool:
    if not await _until_killed(lab, _Point(at, after), workflow, args, inputs):
        return False
    _copy(first, second)
    return True
