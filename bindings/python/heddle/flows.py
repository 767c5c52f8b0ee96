"""Workflows of a store: registering, starting, running their actions in this process, waiting for their end.

What the compiler gives for a class of workflows is described in bindings/python/README.md (:class:`Compiled`).
"""
from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Callable, Generic, Mapping, Optional, Sequence, TypeVar, Union

from . import _heddle
from .actions import is_another, two_of_a_name
from .keeping import Keep, keep_of
from .running import Actions
from .registry import Compiled, has_any, kept_actions, known, own_actions

if TYPE_CHECKING:
    from .pictures import WorkflowGraph
    from .store import Store
    from .timeline import Timeline

T = TypeVar("T")
UNSERVED_SECONDS = 5.0
"""A program that has waited so long for a result logs which steps no worker serves."""


class WorkflowCancelled(_heddle.FailedError):
    """The instance that was waited for has been cancelled."""


class Flows:
    """The engine of a space, opened when a workflow is first asked for; that of the store's own space already when a program
    with workflows begins to drive the store."""

    def __init__(self, store: Store, space: str, observer: bool, serves: bool,
                 queues: Optional[tuple[str, ...]] = None, keep: Union[Keep, timedelta, None] = None, shards: int = 0) -> None:
        self.store = store
        self.space = space
        self.driver = store._driver_()
        self.actions = Actions(self)
        self.driver.busy.append(lambda: bool(self.actions.running))
        kept = keep_of(keep, "keep") or Keep()
        self.engine: _heddle.Engine = store._runtime.engine(
            self.actions.begin, self.actions.revoke, space=space, observer=observer, queues=queues,
            keep_ms=int(kept.seconds * 1000), keep_most=kept.most or 0, shards=shards)
        self.complete: Callable[[Any, Any], Any] = self.engine.complete
        self.fail: Callable[[Any, Any], Any] = self.engine.fail
        self.heartbeat: Callable[[Any], Any] = self.engine.heartbeat
        self.give_back: Callable[[Any], Any] = self.engine.give_back
        self.driver.moved.append(self.actions.moved)
        self.driver.ended.append(self.actions.ended)
        self.registered: dict[str, Compiled] = {}
        self._asked_for: dict[str, tuple[str, Any]] = {}
        """The actions of the workflows that were registered, by name, with the workflow that was the last to name it."""
        self._waiting: set[asyncio.Future[Any]] = set()
        """For results."""
        self.serves = serves and not observer
        if store.file and "://" not in store.file and not observer:  # a server has no place for a socket of its own
            self._listen_if_free()
        if has_any() and self.serves:
            self.serve({**own_actions(), **kept_actions()})
            for compiled in known():
                self.serve(compiled.actions)
            self._register_newest()

    # ---- Registering

    def _register_newest(self) -> None:
        """Children and what schedules start begin with this program's version of a workflow, also if the program does not ask
        for it. Of a workflow that is not in the store there are neither."""
        if self.store._runtime.in_transaction:
            return
        for compiled in known():
            if self.store.cell(f"{self.space}/workflow-name/{compiled.name}")() is not None:
                self.register(compiled)

    def serve(self, actions: Mapping[str, Any]) -> None:
        if not self.serves:
            return
        for name, given in actions.items():
            if self.actions.add(name, given):
                self.engine.action(name)

    def register(self, compiled: Compiled) -> None:
        if self.registered.get(compiled.name) is compiled:
            return
        self._check_names(compiled)
        before = dict(self.registered)
        self.registered[compiled.name] = compiled  # first: a child may have it as its own child
        try:
            self.serve(compiled.actions)
            for child in compiled.children:
                self.register(child)
            self.engine.register(compiled.ir)
        except BaseException:
            self.registered = before
            raise

    def _check_names(self, compiled: Compiled) -> None:
        """Two workflows that are used in one space must mean the same function by a name of an action."""
        for name, given in compiled.actions.items():
            workflow, other = self._asked_for.get(name, (compiled.name, given))
            if workflow != compiled.name and is_another(other, given):
                raise _heddle.UsageError(two_of_a_name(name, other, given))
        self._asked_for.update((name, (compiled.name, given)) for name, given in compiled.actions.items())

    def _listen_if_free(self) -> None:
        """Workers of this store may connect here, unless another program has the socket."""
        try:
            self.engine.serve(None)
        except _heddle.Error as refused:
            logging.getLogger("heddle").info("no workers can connect: %s", refused)

    def listen(self, socket: Optional[str] = None) -> str:
        """Workers of other processes may connect."""
        return self.engine.socket or self.engine.serve(socket)

    # ---- Where attempts end (running.Ends)

    @property
    def closed(self) -> bool:
        return self.store.closed

    @property
    def loop(self) -> Optional[asyncio.AbstractEventLoop]:
        return self.driver.loop

    def post(self, fn: Callable[[], None]) -> None:
        try:
            self.store._runtime.post(fn)
        except _heddle.Error:
            pass  # closed meanwhile: the step runs again when the space has an engine

    # ---- Instances

    def start(self, compiled: Compiled, args: Sequence[Any], kwargs: Mapping[str, Any], key: Optional[str],
              priority: int, queue: Optional[str] = None) -> str:
        self.register(compiled)
        # In the order of the store's objects: inputs have names, and no order to keep.
        given = dict(sorted(compiled.bind(args, kwargs).items()))
        id, _ = self.engine.start(compiled.name, given, key=key, priority=priority, queue=queue)
        return id

    async def stored(self) -> None:
        """Returns when what was said to instances is on disk, and if this program runs them, what they have done then, too.
        NoVerdictError: the server was away, and the store cannot say whether it has that."""
        told = self.driver.attach().create_future()
        self._waiting.add(told)
        told.add_done_callback(self._waiting.discard)
        unknown = _heddle.NoVerdictError("the server was away: whether this is stored is not known")
        self.engine.stored(lambda is_known: settle(told, None if is_known else unknown, None))
        await told

    async def result(self, id: str) -> Any:
        loop = self.driver.attach()
        self._check_started(id)
        told = loop.create_future()
        self._waiting.add(told)
        told.add_done_callback(self._waiting.discard)
        self.engine.then(id, lambda state, value: self._over(told, id, state, value))
        timer = loop.call_later(UNSERVED_SECONDS, self._warn_unserved, id)
        try:
            return await told
        finally:
            timer.cancel()

    def _check_started(self, id: str) -> None:
        """UsageError: a run has started the instance, so that it begins when the run ends."""
        if not self.driver.runtime.in_transaction:
            return
        try:
            self.engine.state(id)
        except _heddle.Error as error:
            if error.status == "HD_NOT_FOUND":
                raise _heddle.UsageError(
                    f"{id} cannot be waited for here: what a computation or an effect starts begins when it ends. To wait for the "
                    "result inside of it, start the instance in a task of its own: await asyncio.create_task(store.run(...))") from None

    def _warn_unserved(self, id: str) -> None:
        try:
            steps = [] if self.closed else self.engine.state(id).get("steps", [])
        except _heddle.Error:  # it is removed, or another program has it
            return
        for step in steps:
            if step["state"] == "no worker":
                queue = step.get("queue", {}).get("name")
                logging.getLogger("heddle").warning(
                    "%s waits: no worker serves the action %s%s", id, step.get("action"), f" of the queue {queue}" if queue else "")
                return

    def _over(self, told: asyncio.Future[Any], id: str, state: str, value: Any) -> None:
        if state == "done":
            settle(told, None, value)
        elif state == "failed" and isinstance(value, BaseException):
            self._note_place(value, id)
            settle(told, value, None)
        elif state == "cancelled":
            settle(told, WorkflowCancelled(f"{id} was cancelled"), None)
        elif state == "HD_NOT_FOUND":
            settle(told, _heddle.FailedError(f"there is no instance {id}: none was started, or it has been removed"), None)
        else:
            settle(told, _heddle.FailedError(f"{id} cannot be waited for: {state}"), None)

    def _note_place(self, error: BaseException, id: str) -> None:
        """Adds notes to the error that say where the workflow raised it, and what the traceback of the action was. The
        error's own traceback has frames of the caller only."""
        try:
            place = self.engine.state(id).get("failed_at", {}).get("at")
        except _heddle.Error:  # removed already
            place = None
        if place:
            error.add_note(f"in workflow {id.partition('/')[0]}, {place}")
        text = getattr(error, "__traceback_text__", "")
        if text:
            error.add_note("the action's own traceback:\n" + text.rstrip("\n"))

    def close(self) -> None:
        self.actions.close()
        for told in list(self._waiting):
            if not told.get_loop().is_closed():
                settle(told, _heddle.FailedError("the store was closed; the instance goes on when it is open again"), None)


def settle(future: asyncio.Future[Any], error: Optional[BaseException], value: Any) -> None:
    """Ends a future, unless it has ended already: the task that waited may have been cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):
        made = RuntimeError("coroutine raised StopIteration")
        made.__cause__ = error
        future.set_exception(made)
    else:
        future.set_exception(error)


class Handle(Generic[T]):
    """One instance of a workflow."""

    def __init__(self, flows: Flows, id: str) -> None:
        self._flows = flows
        self.id = id

    async def status(self) -> str:
        """"queued", "running", "paused", "done", "failed", "cancelled" or "stalled"."""
        self._flows.driver.attach()
        status: str = self._flows.engine.state(self.id)["status"]
        return status

    async def state(self) -> dict[str, Any]:
        """What the instance is and does now: its steps, since when, until when."""
        self._flows.driver.attach()
        return self._flows.engine.state(self.id)

    async def result(self) -> T:
        """Waits for the end: the result, or the exception that the workflow raised."""
        result: T = await self._flows.result(self.id)
        return result

    async def cancel(self) -> None:
        """Raises CancelledError where the instance waits; its clean-up runs."""
        self._flows.driver.attach()
        self._flows.engine.cancel(self.id)
        await self._flows.stored()

    async def signal(self, name: str, payload: Any = None) -> None:
        """Gives the signal to the wait for it, or keeps it for the next one."""
        self._flows.driver.attach()
        self._flows.engine.signal(self.id, name, payload)
        await self._flows.stored()

    async def pause(self) -> None:
        """It begins no step until resume()."""
        self._flows.driver.attach()
        self._flows.engine.pause(self.id)
        await self._flows.stored()

    async def resume(self) -> None:
        """A paused instance goes on."""
        self._flows.driver.attach()
        self._flows.engine.resume(self.id)
        await self._flows.stored()

    async def rerun(self, node: Optional[str] = None) -> None:
        """Runs an instance that is over again, from a node or from the beginning."""
        self._flows.driver.attach()
        self._flows.engine.rerun(self.id, node)
        await self._flows.stored()

    async def remove(self) -> None:
        """Deletes an instance that is over, with its journal. Its key may be used again."""
        self._flows.driver.attach()
        self._flows.engine.remove(self.id)
        await self._flows.stored()

    async def journal(self) -> list[dict[str, Any]]:
        """What the instance has done, if its workflow keeps a journal: ``journal = "steps"`` in the class."""
        self._flows.driver.attach()
        entries: list[dict[str, Any]] = self._flows.engine.journal(self.id)
        return entries

    async def timeline(self) -> Timeline:
        """What the instance has done and when: text at a prompt, a drawing in a notebook. Every step stands there if the
        class says ``journal = "steps"``; else only its start, its open steps and its end."""
        from .timeline import timeline_of

        return timeline_of(await self.state(), await self.journal())

    async def graph(self) -> WorkflowGraph:
        """The graph of the version that it runs, with where it stands or where it failed."""
        from .pictures import WorkflowGraph

        version = (await self.state())["version"]
        instance, ir = (self._flows.store.cell(f"{self._flows.space}/{name}")()
                        for name in (f"workflow/{self.id}", f"workflow-version/{version}"))
        return WorkflowGraph(ir, instance)

    def __repr__(self) -> str:
        return f"<instance {self.id}>"

