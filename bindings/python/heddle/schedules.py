"""Workflows that start at certain times: ``store.schedule``."""
from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Callable, Literal, Optional, ParamSpec, TypeVar, Union

from .registry import Runs, compiled_of

if TYPE_CHECKING:
    from .flows import Flows

P = ParamSpec("P")
T = TypeVar("T")
Seconds = Union[float, timedelta]
Moment = Union[float, datetime]
Overlap = Literal["skip", "queue", "allow", "cancel"]
CatchUp = Literal["last", "all", "none"]


def seconds(given: Optional[Seconds]) -> float:
    """As a number; None is 0."""
    return 0.0 if given is None else given.total_seconds() if isinstance(given, timedelta) else float(given)


def moment(given: Optional[Moment]) -> float:
    """As seconds since 1970; None is 0, and what is before 1970 is just after. A datetime without a zone is of this machine's
    zone, as everywhere in Python."""
    if given is None:
        return 0.0
    return max(given.timestamp() if isinstance(given, datetime) else float(given), 0.001)


class Schedule:
    """A schedule of a store, by its name: what :meth:`Store.schedule` returns. :meth:`start` stores it; the other methods
    are about one that is stored. The program that runs the space's workflows starts the instances, each once."""

    def __init__(self, flows: Flows, name: str, times: dict[str, Any]) -> None:
        self._flows, self.name, self._times = flows, name, times

    async def start(self, workflow: Callable[..., Runs[P, T]], *args: P.args, **inputs: P.kwargs) -> Schedule:
        """Stores it, or replaces the one of its name: from now on instances of the workflow start with these inputs."""
        compiled = compiled_of(workflow)
        self._flows.driver.attach()
        self._flows.register(compiled)
        given = dict(sorted(compiled.bind(args, inputs).items()))
        self._flows.engine.schedule_put(self.name, compiled.name, given, **self._times)
        await self._flows.stored()
        return self

    async def state(self) -> dict[str, Any]:
        """What it is: its times, ``next`` (ms since 1970), ``last``, ``running``, how many it has ``started`` and
        ``skipped``, ``error``."""
        nothing: dict[str, Any] = {"last": None, "running": None, "started": 0, "skipped": 0, "error": None}
        return {**nothing, **self._flows.engine.schedule(self.name)}

    async def pause(self) -> None:
        """Times that come while it is paused are not made up for."""
        self._flows.driver.attach()
        self._flows.engine.schedule_pause(self.name)
        await self._flows.stored()

    async def resume(self) -> None:
        """Its times count again."""
        self._flows.driver.attach()
        self._flows.engine.schedule_resume(self.name)
        await self._flows.stored()

    async def trigger(self) -> None:
        """A time out of turn, now; also of one that is paused."""
        self._flows.driver.attach()
        self._flows.engine.schedule_trigger(self.name)
        await self._flows.stored()

    async def remove(self) -> None:
        """Deletes it. The instances that it has started stay."""
        self._flows.driver.attach()
        self._flows.engine.schedule_remove(self.name)
        await self._flows.stored()

    def __repr__(self) -> str:
        return f"<schedule {self.name}>"


class Queue:
    """A queue of steps, by its name: what :meth:`Store.queue` returns. ``@action(queue="gpu")`` puts steps into it."""

    def __init__(self, flows: Flows, name: str) -> None:
        self._flows, self.name = flows, name

    async def set(self, *, most: int = 0, paused: bool = False) -> None:
        """Stores for all programs: at most ``most`` of its steps are with workers at once (0: any number); none is begun
        while it is paused."""
        self._flows.driver.attach()
        if not 0 <= most < 1 << 32:
            raise ValueError(f"most is a number of steps, or 0 for any number, not {most!r}")
        self._flows.engine.queue_put(self.name, most, paused)
        await self._flows.stored()

    async def state(self) -> dict[str, Any]:
        """``most`` and ``paused``; in the program that runs the instances also how many steps are ``ready`` and
        ``running``, and how many ``workers`` there are."""
        return self._flows.engine.queue(self.name)

    def __repr__(self) -> str:
        return f"<queue {self.name}>"
