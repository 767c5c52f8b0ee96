"""heddle: durable workflows and reactive state in one SQLite file.

Workflows::

    from heddle import Workflow, action, workflow
    import heddle

    @action
    async def charge(order: int) -> str:
        return f"receipt-{order}"

    @workflow
    class Checkout(Workflow):
        async def run(self, order: int) -> str:
            return await charge(order)

    async with heddle.open("shop.db") as store:
        print(await store.run(Checkout, 17))

State that follows from other state::

    store = heddle.open("cart.db")
    items, total = store.cell("main/cart#/items"), store.cell("main/total")

    @store.computed(total)
    def add_up():
        return sum(item["price"] for item in items())

    @store.effect
    def show():
        print("the total is", total())

    items.set([{"price": 3}, {"price": 4}])
    store.settle()

docs/PYTHON.md is the manual.
"""
from __future__ import annotations

import os as _os
from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence

from . import _heddle, values
from ._heddle import (Error, FailedError, InputError, NoVerdictError, PendingError, RefusedError, StaleError,
                      TransientError, UsageError, Value)
from .cell import Cell
from .link import Link
from .space import Space
from .store import Event, File, Node, Store, Transaction

__version__ = _heddle.version


def _log(level: str, line: str) -> None:
    import logging

    logging.getLogger("heddle").log(getattr(logging, level.upper()), "%s", line)


_heddle.set_hooks(values.encode, values.decode, values.plain, Link, _log)
_os.register_at_fork(after_in_child=_heddle.after_fork)


def open(file: File = None, *, durability: str = "full", read_only: bool = False, must_exist: bool = False,
         keep_history: bool = False, principal: Optional[str] = None, session: Optional[str] = None, strict: bool = True,
         worker: bool = True, space: str = "main", inspect: bool = True, queues: Optional[Sequence[str]] = None,
         keep: Optional[Keep | timedelta] = None, shards: int = 0,
         derive: Optional[Literal["one", "each"]] = None) -> Store:
    """Opens a store: a SQLite file, which is created where it does not exist; ``postgresql://...`` for a database on a
    server; without a name one in memory.

    ``durability="normal"`` survives a crash of the program, but power loss may take the last commits. With
    ``strict=False`` a computation that writes outside of its output is warned of, not refused. With ``worker=False`` this
    program starts and watches workflows, and others run them. ``space`` is where workflows live.

    While a store in a file is open, ``heddle why FILE``, ``heddle stats FILE`` and ``heddle graph FILE`` in another
    terminal ask this program, through a socket beside the file that only this user and root may use; with
    ``inspect=False`` they cannot. ``queues``: the actions of this program do steps of these queues only; "" is the queue of
    steps that name none. Default: of all.

    ``keep``: how long instances of workflows stay in the store when they are over, a timedelta or a :class:`Keep`. It counts for
    ends that come while this program runs the workflows, and for classes without ``keep`` of their own. Default: for ever.

    ``shards``: into how many parts the instances of the space are divided, so that several programs run them, each some of
    the parts; four times as many as there are programs is a good number. The store keeps the number; 0 is that of the
    store, 1 in a new one.

    ``derive``: which program runs a computation that several programs on the store have. ``"one"``: one of them, and the
    others take its result over, for which they do not wait long. ``"each"``: this program runs its computations itself.
    Default: ``"one"`` on a server, ``"each"`` elsewhere.
    """
    return Store(file, durability=durability, read_only=read_only, must_exist=must_exist, keep_history=keep_history,
                 principal=principal, session=session, strict=strict, worker=worker, space=space, inspect=inspect,
                 queues=queues, keep=keep, shards=shards, derive=derive)


# What workflows need is loaded when it is first asked for.
_LATER = {
    "Action": "actions", "RetryPolicy": "actions", "action": "actions", "Workflow": "workflows", "workflow": "workflows",
    "CompileError": "compiler", "Unsupported": "unsupported", "log": "recorded", "now": "recorded", "random": "recorded",
    "signal": "recorded", "uuid": "recorded",
    "Attempt": "attempts", "attempt": "attempts", "Handle": "flows", "WorkflowCancelled": "flows", "Pattern": "patterns",
    "pattern": "patterns", "Piece": "patterns", "Build": "patterns", "Timeline": "timeline", "Schedule": "schedules",
    "Queue": "schedules", "Keep": "keeping",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'heddle' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f".{module}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """All names, also those that are loaded later: help() and completion show them."""
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from datetime import timedelta

    from .actions import Action, RetryPolicy, action
    from .attempts import Attempt, attempt
    from .compiler import CompileError
    from .flows import Handle, WorkflowCancelled
    from .keeping import Keep
    from .patterns import Build, Pattern, Piece, pattern
    from .recorded import log, now, random, signal, uuid
    from .schedules import Queue, Schedule
    from .timeline import Timeline
    from .unsupported import Unsupported
    from .workflows import Workflow, workflow

__all__ = ["Action", "Attempt", "Build", "Cell", "CompileError", "Error", "Event", "FailedError", "Handle", "InputError", "Keep", "Link",
           "NoVerdictError", "Node", "Pattern", "PendingError", "Piece", "Queue", "RefusedError", "RetryPolicy", "Schedule", "Space",
           "StaleError",
           "Store", "Timeline", "Transaction", "TransientError", "Unsupported", "UsageError", "Value", "Workflow", "WorkflowCancelled", "action", "attempt", "log",
           "now", "open", "pattern", "random", "signal", "uuid", "workflow"]
