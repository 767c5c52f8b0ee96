"""The workflows of a space: starting, looking, schedules, queues. A store has those of its own space, and ``store.space(name)``
those of others."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, ParamSpec, Sequence, TypeVar

from ._heddle import UsageError

if TYPE_CHECKING:
    from datetime import timedelta

    from .flows import Flows, Handle
    from .keeping import Keep
    from .registry import Runs
    from .schedules import CatchUp, Moment, Overlap, Queue, Schedule, Seconds
    from .store import Store

STATUSES = ("queued", "running", "paused", "done", "failed", "cancelled", "stalled")
T = TypeVar("T")
P = ParamSpec("P")


class Workflows:
    """What a store and a space of it have in common."""

    def _flows_(self, serves: bool = True) -> Flows:
        raise NotImplementedError

    def _opened_(self) -> Optional[Flows]:
        """None: nothing of the space's workflows was used so far."""
        raise NotImplementedError

    @property
    def shards(self) -> int:
        """So many shards of the space this program runs now; 0: another program runs its workflows, or none."""
        return self._flows_().engine.stats()["shards"]

    def register(self, *workflows: Any) -> None:
        """Workflows that others start by name (the command line, other programs), and whose instances go on here."""
        from .registry import compiled_of

        for workflow in workflows:
            self._flows_().register(compiled_of(workflow))

    def options(self, *, key: Optional[str] = None, priority: int = 0, progress: bool = False,
                queue: Optional[str] = None) -> Starter:
        """``await store.options(key="order-17").start(Checkout, order)``: two starts with one key are one instance.
        Higher priorities go first; ``queue`` is that of the steps that name none; ``progress`` shows a line in the terminal."""
        for name, value in (("key", key), ("queue", queue)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"options({name}=...) takes a str, not {value!r}: write {name}={str(value)!r}")
        return Starter(self, key, priority, progress, queue)

    async def start(self, workflow: Callable[..., Runs[P, T]], *args: P.args, **inputs: P.kwargs) -> Handle[T]:
        """Starts an instance; it is stored when this returns."""
        return await Starter(self).start(workflow, *args, **inputs)

    async def run(self, workflow: Callable[..., Runs[P, T]], *args: P.args, **inputs: P.kwargs) -> T:
        """Starts an instance and waits for its result; raises what the workflow raises."""
        return await Starter(self).run(workflow, *args, **inputs)

    def start_within(self, workflow: Callable[..., Runs[P, T]], *args: P.args, **inputs: P.kwargs) -> Handle[T]:
        """In a handler, an effect or a transaction: starts an instance if that commits, and only then. Not awaited. The
        program registers the workflow before: ``store.register(Checkout)``."""
        return Starter(self).start_within(workflow, *args, **inputs)

    def handle(self, id: str) -> Handle[Any]:
        """The instance of this id, "name/key"."""
        from .flows import Handle

        return Handle(self._flows_(), id)

    def instances(self, workflow: Any = None, *, status: Optional[str] = None, after: Optional[str] = None,
                  limit: int = 0) -> list[tuple[str, str]]:
        """``(id, status)`` of instances, in order of id: of this workflow, with this status, with an id behind ``after``, at
        most ``limit``. ``status="failed"`` finds those whose exceptions nobody waited for."""
        from .registry import compiled_of

        if status is not None and status not in STATUSES:
            raise ValueError(f"status is one of {', '.join(STATUSES)}, not {status!r}")
        name = workflow if workflow is None or isinstance(workflow, str) else compiled_of(workflow).name
        return self._flows_().engine.list(status=status, name=name, after=after, limit=limit)

    async def prune(self, older_than: Seconds, workflow: Any = None, *, status: Optional[str] = None) -> int:
        """Deletes instances that ended longer ago than that, with their journals; returns how many. ``workflow`` and
        ``status`` ("done", "failed", "cancelled") choose. The keys of those that are gone may be used again."""
        from .schedules import seconds

        flows = self._flows_()
        flows.driver.attach()
        until = (flows.store._runtime.now() - seconds(older_than)) * 1000
        removed = 0
        for id, state in self.instances(workflow, status=status):
            if state in ("done", "failed", "cancelled") and flows.engine.state(id).get("finished", until) < until:
                flows.engine.remove(id)
                removed += 1
        return removed

    def schedule(self, name: str, *, cron: Optional[str] = None, zone: Optional[str] = None, every: Optional[Seconds] = None,
                 begin: Optional[Moment] = None, until: Optional[Moment] = None, jitter: Optional[Seconds] = None,
                 overlap: Overlap = "skip", catch_up: CatchUp = "last", window: Optional[Seconds] = None,
                 priority: int = 0) -> Schedule:
        """``await store.schedule("nightly", cron="30 2 * * *", zone="Europe/Berlin").start(Report)``: starts a workflow at
        certain times, whichever program runs the space then. ``store.schedule("nightly")`` alone is the one that is stored.
        A program may store its schedules at each start: one with the same times goes on where it was.

        ``cron`` is minute, hour, day of the month, month, day of the week, or @hourly, @daily, ...; ``every`` is an interval
        instead. ``overlap`` says what is done while the instance before is not over: "skip", "queue" one, "allow", "cancel"
        it. ``catch_up`` says which of the times are started that came while no program ran: the "last", "all", "none" that
        is late by more than ``window`` (60 seconds)."""
        from .schedules import Schedule, moment, seconds

        times = {"cron": cron, "zone": zone, "every": seconds(every), "begin": moment(begin), "until": moment(until),
                 "jitter": seconds(jitter), "overlap": overlap, "catch_up": catch_up, "window": seconds(window),
                 "priority": priority}
        return Schedule(self._flows_(), name, times)

    def schedules(self) -> list[str]:
        """The names of the schedules that are stored."""
        return self._flows_().engine.schedules()

    def queue(self, name: str) -> Queue:
        """The queue of this name. ``await store.queue("gpu").set(most=2)`` bounds how many of its steps run at once."""
        from .schedules import Queue

        return Queue(self._flows_(), name)

    def serve(self, socket: Optional[str] = None) -> str:
        """Lets workers in other processes connect (``heddle-worker``); returns the socket's path."""
        return self._flows_().listen(socket)


class Space(Workflows):
    """Another space of a store, for workflows: what :meth:`heddle.Store.space` returns. It has an engine and leases of its own, so
    one process may run the workflows of some spaces, and another those of others."""

    def __init__(self, store: Store, name: str, queues: Optional[tuple[str, ...]], keep: Optional[Keep | timedelta], shards: int) -> None:
        self.store = store
        self.name = name
        self._given = (queues, keep, shards)
        self._flows: Optional[Flows] = None

    def _flows_(self, serves: bool = True) -> Flows:
        if self._flows is None:
            from .flows import Flows

            queues, keep, shards = self._given
            self._flows = Flows(self.store, self.name, self.store._observer, serves, queues, keep, shards)
        return self._flows

    def _opened_(self) -> Optional[Flows]:
        return self._flows

    def __repr__(self) -> str:
        return f"<space {self.name} of {self.store!r}>"


class Starter:
    """How an instance is started: what :meth:`Store.options` returns."""

    def __init__(self, space: Workflows, key: Optional[str] = None, priority: int = 0, progress: bool = False,
                 queue: Optional[str] = None) -> None:
        self._space, self._key, self._priority, self._progress, self._queue = space, key, priority, progress, queue

    async def start(self, workflow: Callable[..., Runs[P, T]], *args: P.args, **inputs: P.kwargs) -> Handle[T]:
        """Starts an instance; it is stored when this returns."""
        handle = self._begin(workflow, args, inputs)
        await handle._flows.stored()
        return handle

    def start_within(self, workflow: Callable[..., Runs[P, T]], *args: P.args, **inputs: P.kwargs) -> Handle[T]:
        """In a handler, an effect or a transaction: see :meth:`Workflows.start_within`."""
        from .flows import Handle
        from .registry import compiled_of

        compiled = compiled_of(workflow)
        flows = self._space._opened_()
        if flows is None or flows.registered.get(compiled.name) is not compiled:
            raise UsageError(f"{compiled.name} is not registered, and that cannot be done in a transaction: call "
                             f"store.register({compiled.name}) before")
        if not flows.store._runtime.in_transaction:
            raise UsageError("start_within belongs into a handler, an effect or a transaction: elsewhere await store.start(...)")
        return Handle(flows, flows.start(compiled, args, inputs, self._key, self._priority, self._queue))

    def _begin(self, workflow: Any, args: tuple[Any, ...], inputs: Mapping[str, Any]) -> Handle[Any]:
        from .flows import Handle
        from .registry import compiled_of

        flows = self._space._flows_()
        flows.driver.attach()
        return Handle(flows, flows.start(compiled_of(workflow), args, inputs, self._key, self._priority, self._queue))

    async def run(self, workflow: Callable[..., Runs[P, T]], *args: P.args, **inputs: P.kwargs) -> T:
        """Starts an instance and waits for its result; raises what the workflow raises."""
        self._space._flows_().driver.attach_outside("store.run(...)")
        handle: Handle[T] = self._begin(workflow, args, inputs)
        if not self._progress:
            return await handle.result()
        from .progress import shown

        result: T = await shown(handle)
        return result
