"""A store: one file (or one piece of memory), and this program's view of it."""
from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import weakref
from typing import (TYPE_CHECKING, Any, Awaitable, Callable, Coroutine, Iterable, Iterator, Literal, Mapping, Optional, ParamSpec,
                    Protocol, Sequence, TypeVar, Union, cast, overload)

from . import _heddle
from .cell import Cell, is_of_instance, result_of
from .space import Space, Workflows
from .typed import model_of
from .why import Graph, Why, WhyNot

if TYPE_CHECKING:
    import asyncio
    import logging
    from datetime import timedelta

    from .driver import Driver
    from .flows import Flows
    from .keeping import Keep
    from .patterns import Pattern, Piece
    from .schedules import Moment, Seconds

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
File = Union[str, "os.PathLike[str]", None]


def _logger() -> logging.Logger:
    """Loaded when there is something to say."""
    import logging

    return logging.getLogger("heddle")


def _program() -> Optional[str]:
    """The name of this program for the heddle command; None: that of the process."""
    folder, name = os.path.split(sys.argv[0]) if sys.argv else ("", "")
    return os.path.basename(folder) if name == "__main__.py" else name or None


class Transaction:
    """``with store.transaction() as tx:`` -- reads and writes inside are one commit, or none.

    The commit is visible to this program at once, and stored a moment later; it is refused if what was read has been
    changed by another program meanwhile. A refusal is logged, and the next :meth:`Store.sync` or :meth:`Store.close`
    raises it; :meth:`Store.transact` runs a function again instead.

    Nothing may be awaited inside: other tasks, and the store itself, run meanwhile, and what they do is no part of the
    transaction. If one of them uses the store then, the transaction is aborted, and its task gets a UsageError from its next
    use of the store, at the latest from the end of the block.
    """

    def __init__(self, store: Store, group: int = 0) -> None:
        self._store = store
        self._group = _group(group)
        self._task: Optional[asyncio.Task[Any]] = None
        """The task that opened it; None: it was opened outside of tasks, where nothing can be awaited."""
        self._lost = False
        """It was aborted, since something else used the store while it was open."""

    def __enter__(self) -> Transaction:
        self._store._runtime.begin(self._group)
        self._task = _current_task()
        if self._task is not None:
            self._store._guarded.append(self)
            self._store._runtime.guard = self._store._guard
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Any) -> None:
        if self._task is not None:
            self._store._guarded.remove(self)
            if not self._store._guarded:
                self._store._runtime.guard = None
        if self._lost:
            if kind is None:
                raise self._refusal()
        elif kind is None:
            self._store._runtime.commit()
        elif self._store._runtime.in_transaction:
            self._store._runtime.abort()

    def _refusal(self) -> _heddle.UsageError:
        name = "" if self._task is None else f" of {self._task.get_name()}"
        return _heddle.UsageError(f"the transaction{name} was aborted, because other code used the store while it was open. "
                                  "Do not await inside `with store.transaction()`")


def _shown(file: Optional[str]) -> str:
    """Of an address host and database, as user and parameters may have a password."""
    if file is None:
        return "memory"
    scheme, mark, rest = file.partition("://")
    return scheme + mark + rest.partition("?")[0].rpartition("@")[2] if mark else file


def _check_function(fn: Any, what: str) -> None:
    """TypeError: what was given cannot be called."""
    if not callable(fn):
        raise TypeError(f"{what} takes a function, not {fn!r}")


def _check_no_generator(fn: Any, what: str) -> None:
    """TypeError: a call of the function runs nothing of it."""
    from .version import is_generator

    if is_generator(fn):
        raise TypeError(f"{what} takes a function that returns its result, and {getattr(fn, '__name__', 'this one')} yields: "
                        "a call would run nothing of it")


def _milliseconds(given: Seconds) -> int:
    """Of a gate or a hold."""
    seconds = given if isinstance(given, (int, float)) else given.total_seconds()
    if not 0 <= seconds <= 4_294_967:
        raise ValueError(f"the time is a number of seconds, at least 0 and at most 4,294,967 (49 days), not {seconds!r}")
    return round(seconds * 1000)


def _check_plain(fn: Any, what: str, instead: str) -> None:
    """TypeError: it is no function, or an async one, whose result nothing would await; or one that yields."""
    from .version import is_async

    _check_function(fn, what)
    _check_no_generator(fn, what)
    if is_async(fn):
        raise TypeError(f"{what} takes an ordinary function, and {getattr(fn, '__name__', 'this one')} is async: {instead}")


def _group(number: int) -> int:
    """A change group; 0: none."""
    if not 0 <= number < 1 << 64:
        raise ValueError(f"a change group is a number from 0 to 2**64 - 1, not {number}")
    return number


_IN_TRANSACTION = "nothing may be awaited inside of it"
_IN_HANDLER = "nothing would await it. Let it start a workflow with store.start_within, or write into a cell what an async effect does"


def _current_task() -> Optional[asyncio.Task[Any]]:
    """None: no loop runs here, or the caller is a callback of the loop."""
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio.current_task() if asyncio is not None else None
    except RuntimeError:
        return None


def _loop_runs() -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


class Node:
    """A computation, effect or sink that is registered."""

    def __init__(self, store: Store, handle: int, name: str) -> None:
        self._store = store
        self._handle = handle
        self.name = name

    def stop(self) -> None:
        """Removes it."""
        self._store._runtime.unregister(self._handle)

    def request(self) -> None:
        """Demands one run if it is invalid, also if nothing reads its output."""
        self._store._runtime.node_set(self._handle, "request")

    def debounce(self, seconds: Seconds) -> None:
        """It runs when nothing that it reads has changed for so long. 0 ends that."""
        self._store._runtime.node_set(self._handle, "debounce", _milliseconds(seconds))

    def throttle(self, seconds: Seconds) -> None:
        """At most one run in so many seconds. 0 ends that."""
        self._store._runtime.node_set(self._handle, "throttle", _milliseconds(seconds))

    def why(self) -> Why:
        """What caused its last run, and what caused that: prints as a tree."""
        causes = self._store._runtime.why(self._handle)
        runs = 0 if causes else sum(row["runs"] for row in self._store.nodes() if row["node"] == self._handle)
        return Why(self.name, causes, runs)

    def why_not(self) -> WhyNot:
        """Why it does not run now."""
        return WhyNot(self.name, *self._store._runtime.why_not(self._handle))

    def __repr__(self) -> str:
        return f"<node {self.name}>"


class Registered(Protocol[R_co]):
    """A function that a store runs as a computation or an effect: the function itself, which has its node."""

    node: Node
    __name__: str

    def __call__(self) -> R_co: ...


class Event:
    """What a handler gets."""

    __slots__ = ("payload", "id", "time", "attempt", "posted", "missed")

    def __init__(self, payload: Any, id: str, time: float, attempt: int, posted: bool, missed: int = 0) -> None:
        self.payload = payload
        self.id = id
        """Durable: the same however often the event is delivered."""
        self.time = time
        """Seconds since 1970; 0: the sender gave none."""
        self.attempt = attempt
        """1, 2, ...: the handler runs again if what it read has been changed by another program."""
        self.posted = posted
        """Whether it was posted, not sent."""
        self.missed = missed
        """Of a periodic one: so many periods before this one had no event."""

    def __repr__(self) -> str:
        return f"<event {self.id} {self.payload!r}>"


class Handler:
    """A handler of a stream that is registered."""

    def __init__(self, store: Store, handle: int, name: str) -> None:
        self._store, self._handle, self.name = store, handle, name

    def stop(self) -> None:
        self._store._runtime.off(self._handle)
        self._store._handlers.pop(self._handle, None)


class Hold:
    """Nodes of a name do not run for the first time before it ends: ``with store.hold("prices"): ...``"""

    def __init__(self, store: Store, name: Optional[str], seconds: float) -> None:
        self._store = store
        self._id = store._runtime.hold(name, _milliseconds(seconds))

    def end(self) -> None:
        self._store._runtime.end_hold(self._id)

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


_open: weakref.WeakSet[Store] = weakref.WeakSet()
"""Stores that may be open."""
_SPACE = re.compile(r"[^\x00-\x1f\x7f/@#]+")  # as in the name of a cell, "space/id": src/store/cell.c
_DERIVE = {None: 0, "one": 1, "each": 2}  # hd_derive of heddle/store.h


@atexit.register
def _close_all() -> None:
    """The interpreter ends: stores that the program has not closed are closed while their functions can still run."""
    for store in list(_open):
        try:
            store.close()
        except Exception as error:  # of a store of another thread, of one that cannot be written any more
            _logger().debug("a store that was open at the end could not be closed: %s", error)


class Store(Workflows):
    """What :func:`heddle.open` returns. It belongs to the thread that opened it.

    Use it as a context manager, ``with`` or ``async with``; either closes it, which waits until everything is stored.
    """

    def __init__(self, file: File = None, *, durability: str = "full", read_only: bool = False,
                 must_exist: bool = False, keep_history: bool = False, principal: Optional[str] = None,
                 session: Optional[str] = None, strict: bool = True, worker: bool = True, space: str = "main",
                 inspect: bool = True, queues: Optional[Sequence[str]] = None, keep: Optional[Keep | timedelta] = None,
                 shards: int = 0, derive: Optional[Literal["one", "each"]] = None, clock: Optional[float] = None) -> None:
        if durability not in ("full", "normal"):
            raise ValueError('durability is "full" or "normal"')
        if derive not in _DERIVE:
            raise ValueError('derive is "one", "each" or None')
        self.file = file = None if file is None else os.fspath(file)
        self._runtime = _heddle.Runtime(
            file, normal=durability == "normal", read_only=read_only, must_exist=must_exist, keep_history=keep_history,
            principal=principal, session=session, strict=strict, wall_ms=0 if clock is None else max(1, int(clock * 1000)),
            derive=_DERIVE[derive])
        self._runtime.store = self
        self._runtime.failed = self._failed
        _open.add(self)
        self._driver: Optional[Driver] = None
        self._spaces: dict[str, Space] = {}
        self._observer = not worker
        self._runs_workflows = bool(file) and worker and not read_only
        """Whether the program runs the workflows of the store as soon as it drives it. heddle-worker clears it: its first
        process has an engine without actions, the others have none."""
        self._own = self.space(space, shards=shards, queues=queues, keep=keep)
        self._error_handlers: list[Callable[[str, BaseException], object]] = []
        self._patterns: dict[str, Pattern] = {}
        self._stopped = False
        self._at_close: set[Callable[[], object]] = set()
        """Called when the store is about to be closed."""
        self._asked = 0
        """So many calls of handled() wait. While there are such, what handlers raise is kept for them, by event."""
        self._raised: dict[str, Exception] = {}
        self._handlers: dict[int, tuple[str, str, list[str]]] = {}
        """Handlers: the name, the stream, and the cells that it reads as far as the program says."""
        self._defined: dict[str, tuple[tuple[Any, ...], Node]] = {}
        """Computations by name: module, name and cell of the function that was registered last, and its node."""
        self._handling: tuple[Optional[str], str] = None, ""
        """The handler that was called last, and its event."""
        self._guarded: list[Transaction] = []
        """Transactions whose blocks tasks are in. At most the last one is open; the others are lost."""
        if inspect and file and not read_only and "://" not in file:
            self._answer()

    def _answer(self) -> None:
        """Lets the heddle command ask this program. A file system without sockets is no reason to fail."""
        try:
            self._runtime.inspect(None, _program())
        except _heddle.Error as refused:
            _logger().debug("the heddle command cannot ask this program: %s", refused)

    # ---- Life

    @property
    def closed(self) -> bool:
        return self._runtime.closed

    def close(self) -> None:
        """Waits until everything is stored, and closes. Actions that run are cancelled; they run again next time. So are
        async computations that wait, and ``async for`` over a cell ends. A function that the store calls, such as an
        effect, cannot close it."""
        if self._runtime.at_work:
            raise _heddle.UsageError("a store cannot be closed by a function that it calls: call store.stop() to end "
                                     "run_forever(), or loop.call_soon(store.close) in an asyncio program")
        for leave in list(self._at_close):
            with contextlib.suppress(RuntimeError):  # its loop is closed
                leave()
        for space in self._spaces.values():
            if space._flows is not None:
                space._flows.close()
        if self._driver is not None:
            self._driver.close()
        self._runtime.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Store:
        self._begin_workflows()
        self._driver_().attach()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<store {_shown(self.file)}{' (closed)' if self.closed else ''}>"

    def _driver_(self) -> Driver:
        if self._driver is None:
            from .driver import Driver

            self._driver = Driver(self._runtime, self._check_await)
        return self._driver

    # ---- Driving, without asyncio

    def settle(self) -> bool:
        """Runs what has become runnable, and waits until nothing is left to wait for. False: a part of the graph does not
        settle, or an async function waits for an asyncio loop to run it. Ctrl-C ends it."""
        return self._runtime.settle()

    def sync(self) -> None:
        """Waits until everything that was written is stored."""
        self._runtime.sync()

    def run_forever(self) -> None:
        """Serves until :meth:`stop`, or Ctrl-C. For programs without a loop of their own."""
        if self._runtime.at_work:
            raise _heddle.UsageError("run_forever() cannot be called by a function that the store calls")
        if _loop_runs():
            raise _heddle.UsageError("an asyncio loop runs here, which run_forever() would block: `async with store` drives it")
        self._begin_workflows()
        self._runtime.unpark()
        while not self._stopped:
            self._runtime.turn(3600.0)
        self._stopped = False

    def stop(self) -> None:
        """From any thread: ends :meth:`run_forever`."""
        self._stopped = True
        self._runtime.post(lambda: None)

    def post(self, fn: Callable[[], object]) -> None:
        """From any thread: calls ``fn`` on the store's thread. Other threads may call only this method and
        :meth:`stop`."""
        _check_plain(fn, "post", "post a function that makes a task of it")
        self._runtime.post(fn)

    # ---- Errors

    def on_error(self, fn: Callable[[str, BaseException], Any]) -> Callable[[str, BaseException], Any]:
        """Calls ``fn(name, exception)`` when a computation, effect, handler or sink has raised. Without one, it is logged."""
        _check_plain(fn, "on_error", "nothing would await it")
        self._error_handlers.append(fn)
        return fn

    def _failed(self, name: str, error: BaseException) -> None:
        handler, event = self._handling
        if self._asked and name == handler and isinstance(error, Exception):  # of a receipt that cannot be stored
            self._raised.setdefault(event, error)
        for fn in self._error_handlers:
            fn(name, error)
        if self._error_handlers:
            return
        if not name and error.__traceback__ is None:  # no function has raised it: an event has no handler
            _logger().error("%s", error)
        else:
            _logger().error("%s failed", name or "a function", exc_info=error)

    # ---- Cells and transactions

    @overload
    def cell(self, name: str, type: type[T], *, schema: Optional[dict[str, Any]] = None) -> Cell[Optional[T]]: ...
    @overload
    def cell(self, name: str, type: object = None, *, schema: Optional[dict[str, Any]] = None) -> Cell[Any]:
        """Optional[Cart] and unions, for which a type checker has no type."""

    def cell(self, name: str, type: Any = None, *, schema: Optional[dict[str, Any]] = None) -> Cell[Any]:
        """The cell of this name: "space/id", "space/id#/path"; with a scope "space@user/id", "space@session/id".

        With a pydantic model, a dataclass or an enum it reads and writes objects of that class, and raises a TypeError for
        one that would not be read back equal; with a JSON Schema it reads what the schema describes. With any type, a cell in the document of an instance reads values as ``handle.result()``
        returns them. A cell that has no value reads as None, also with a type."""
        load, dump = model_of(type, name) if type is not None else (None, None)
        if type is not None and is_of_instance(name):
            load = result_of(type, name)
        cell = self._runtime.cell(Cell, name, load, dump)
        if schema is None:
            return cell
        return cell.through(schema)

    def transaction(self, *, group: int = 0) -> Transaction:
        """``with store.transaction():`` -- what is read and written inside is one commit. ``group`` is its change group, any
        number but 0: sinks of the same group are not called for it."""
        return Transaction(self, group)

    def transact(self, fn: Callable[[], T], *, group: int = 0) -> T:
        """Runs ``fn`` in a transaction, again while what it read has been changed by another program, and returns when it
        is stored. It may be called several times: it must change nothing but cells."""
        _check_plain(fn, "a transaction", _IN_TRANSACTION)
        result: T = self._runtime.transact(fn, _group(group))
        return result

    async def transact_async(self, fn: Callable[[], T], *, group: int = 0) -> T:
        """The same without blocking the loop. ``fn`` itself is an ordinary function."""
        _check_plain(fn, "a transaction", _IN_TRANSACTION)
        loop = self._driver_().attach()
        from .flows import settle

        told = loop.create_future()
        self._runtime.transact_later(fn, lambda error, result: settle(told, error, result), _group(group))
        result: T = await told
        return result

    async def stored(self) -> None:
        """Returns when everything that was written so far is stored."""
        self._driver_().attach_outside("store.stored()")
        await self.transact_async(lambda: None)
        self._runtime.sync()

    def _guard(self) -> None:
        """The runtime calls this before each use while a task is in the block of a transaction. Another task, or a callback,
        gets here if that task awaits something: then the transaction is aborted, so that it takes in nothing of others."""
        task = _current_task()
        for transaction in self._guarded:
            if transaction._task is task:
                if transaction._lost:
                    raise transaction._refusal()
            elif not transaction._lost:
                transaction._lost = True
                if self._runtime.in_transaction:
                    self._runtime.abort()

    def _check_await(self) -> None:
        """UsageError: the task is in the block of a transaction, where nothing of the store may be awaited: nothing goes on."""
        task = _current_task()
        for transaction in self._guarded:
            if transaction._task is task:
                raise _heddle.UsageError(f"a transaction is open in {task.get_name() if task else 'this program'}: do not await "
                                         "inside `with store.transaction()`")

    def documents(self, space: str = "main", *, kind: Optional[str] = None, prefix: Optional[str] = None) -> list[str]:
        """Ids of documents, in order."""
        return [row[0] for row in self._runtime.list(space, kind, prefix)]

    def spaces(self) -> list[str]:
        """Names of the spaces of the store."""
        return self._runtime.spaces()

    def follow(self, space: str) -> None:
        """Other programs' changes of the whole space are heard of, also where this one has never read."""
        self._runtime.follow(space)

    # ---- Computations, effects, sinks

    def computed(self, output: Cell[Any] | str, *, name: Optional[str] = None, debounce: Seconds = 0, throttle: Seconds = 0,
                 reads: Iterable[Cell[Any]] = (), version: Optional[str] = None,
                 run_once: bool = False) -> Callable[[Callable[[], T]], Registered[T]]:
        """``@store.computed(total)``: what the function returns is the value of ``total``.

        It runs while something needs the value: an effect, a sink, another computation that is needed. The cells that
        it reads are its dependencies. It may be ``async``: then it is awaited on the loop, and what depends on it waits.

        After a restart it does not run unless what it read, or its code, has changed. Its code is the function with the
        functions of its module that it calls by name, and with plain values of the module (``RATE = 2``); ``version`` stands
        for it instead, and is changed when something else does. ``debounce`` and ``throttle`` are seconds: it runs when its
        inputs have been quiet for so long, or at most so often. ``reads`` are cells that it depends on before its first run.
        With ``run_once`` it runs once as soon as it is registered, though nothing needs the value."""
        if callable(output) and not isinstance(output, (str, Cell)):
            raise TypeError("@store.computed takes the cell whose value is computed: @store.computed(total)")
        target = self.cell(output) if isinstance(output, str) else output

        def register(fn: Callable[[], T]) -> Registered[T]:
            self._register(fn, name, target, False, debounce, throttle, reads, version, run_once)
            return cast("Registered[T]", fn)

        return register

    @overload
    def effect(self, fn: Callable[[], T]) -> Registered[T]: ...
    @overload
    def effect(self, fn: None = None, *, name: Optional[str] = None, debounce: Seconds = 0, throttle: Seconds = 0,
               reads: Iterable[Cell[Any]] = ()) -> Callable[[Callable[[], T]], Registered[T]]: ...

    def effect(self, fn: Optional[Callable[[], Any]] = None, *, name: Optional[str] = None, debounce: Seconds = 0, throttle: Seconds = 0,
               reads: Iterable[Cell[Any]] = ()) -> Any:
        """``@store.effect``: the function runs now, and whenever something that it read has changed."""

        def register(function: Callable[[], Any]) -> Any:
            self._register(function, name, None, True, debounce, throttle, reads, None, False)
            return function

        return register if fn is None else register(fn)

    def _register(self, fn: Callable[..., Any], name: Optional[str], output: Optional[Cell[Any]], effect: bool,
                  debounce: Seconds, throttle: Seconds, reads: Iterable[Cell[Any]], version: Optional[str],
                  run_once: bool) -> None:
        from .version import is_async, version_of

        _check_function(fn, "an effect" if effect else "a computation")
        _check_no_generator(fn, "an effect" if effect else "a computation")
        suspends = is_async(fn)
        name = name or getattr(fn, "__name__", None)
        runs: Callable[..., object] = fn
        if suspends:
            runs = self._suspended(fn)
        defined = (getattr(fn, "__module__", None), getattr(fn, "__qualname__", None), output.name if output is not None else None)
        before = self._defined.get(name or "")
        if before is not None and before[0] == defined and output is not None:
            before[1].stop()  # a cell of a notebook that is run again
        handle = self._runtime.node(
            runs, name=name, output=output, effect=effect, suspends=suspends, debounce_ms=_milliseconds(debounce),
            throttle_ms=_milliseconds(throttle), reads=list(reads) or None, version=version or version_of(fn), run_once=run_once)
        node = Node(self, handle, name or "")
        if name and output is not None:
            self._defined[name] = defined, node
        try:
            setattr(fn, "node", node)
        except (AttributeError, TypeError):
            pass

    def _suspended(self, fn: Callable[[], Coroutine[Any, Any, Any]]) -> Callable[[_heddle.Run], None]:
        from .suspended import begin

        def run(suspended: _heddle.Run) -> None:
            begin(self, fn, suspended)

        return run

    def sink(self, cell: Cell[T], fn: Callable[[T], object], *, name: Optional[str] = None, confirmed: bool = False,
             group: int = 0) -> Node:
        """Calls ``fn`` with the cell's value, now and whenever it changes.

        With ``confirmed`` it is called only with values that the store has accepted: in a file, those on disk. Values in
        between are skipped. :meth:`settle` does not wait for such a call, :meth:`sync` and :meth:`close` do. Commits of the
        change group ``group`` (:meth:`transaction`) do not call ``fn``: an editor shows its own edits already."""
        _check_plain(fn, "a sink", "nothing would await it. Write `async for value in cell`, or an async effect that reads the cell")
        return Node(self, self._runtime.sink(cell, fn, name=name, confirmed=confirmed, group=_group(group)), name or "sink")

    # ---- Patterns

    def use(self, *patterns: Pattern) -> None:
        """Registers patterns: pieces of them are resumed, and other patterns may use them."""
        for pattern in patterns:
            if self._patterns.get(pattern.name) is not pattern:
                self._runtime.pattern(pattern.name, pattern.version, pattern.build, Cell)
                self._patterns[pattern.name] = pattern

    def piece(self, id: str, pattern: Optional[Pattern] = None, *, space: str = "main", **arguments: Any) -> Piece:
        """Starts a piece under this id, or resumes it: its nodes run only if something that they read, or their code, has
        changed. Arguments that are given are written, at each start; a cell is linked to. Those that are left out are as the
        store has them, or the pattern's defaults. Without a pattern: as the store remembers it."""
        from .patterns import Piece

        if pattern is not None:
            self.use(pattern)
        given = {name: value.link() if isinstance(value, _heddle.Cell) else value for name, value in arguments.items()}
        return Piece(self, self._runtime.piece(space, id, pattern.name if pattern else None, given), id, space)

    def hold(self, name: Optional[str] = None, seconds: float = 2.0) -> Hold:
        """Nodes of this name (None: all) do not run for the first time before the hold ends: while data arrives. It ends with
        the block, and after ``seconds`` at the latest. Inside of the block :meth:`settle` waits for that end, so call it after
        the block."""
        return Hold(self, name, seconds)

    # ---- Events

    def on(self, stream: Cell[Any] | str, *, name: Optional[str] = None, reads: Iterable[Cell[Any]] = (),
           schema: Optional[dict[str, Any]] = None) -> Callable[[F], F]:
        """``@store.on("main/orders")``: the function handles the events of a stream, one after the other, in a transaction
        each; the effects of an event are in the store once, however often it is delivered. ``reads`` are the cells that
        it reads: they are brought up to date before. What it returns is the event's receipt."""

        def register(fn: F) -> F:
            def handle(payload: Any, id: str, time: float, attempt: int, posted: bool, missed: int) -> Any:
                self._handling = given, id
                try:
                    return fn(Event(payload, id, time, attempt, posted, missed))
                except Exception as error:
                    if self._asked:
                        self._raised[id] = error
                    raise

            _check_plain(fn, "a handler", _IN_HANDLER)
            given = name or getattr(fn, "__name__", None)
            cells = list(reads)
            handler = self._runtime.on(stream, handle, name=given, reads=cells or None, schema=schema)
            self._handlers[handler] = given or "", stream if isinstance(stream, str) else stream.name, [cell.name for cell in cells]
            try:
                setattr(fn, "handler", Handler(self, handler, given or ""))
            except (AttributeError, TypeError):
                pass
            return fn

        return register

    def send(self, stream: Cell[Any] | str, payload: Any = None, *, id: Optional[str] = None, time: float = 0.0,
             done: Optional[Callable[[str, Optional[_heddle.Error]], object]] = None) -> None:
        """Sends an event. ``id`` is the sender's own: the same id is the same event, everywhere. Inside a transaction, a
        handler or an effect it is sent if that commits. ``done(id, error)`` hears what became of it."""
        self._runtime.send(stream, payload, id=id, seconds=time, done=done)

    def post_event(self, stream: Cell[Any] | str, payload: Any = None, *, id: Optional[str] = None, time: float = 0.0,
                   lasting: bool = False, at: Optional[Moment] = None, after: Optional[Seconds] = None,
                   every: Optional[Seconds] = None, every_missed: bool = False) -> str:
        """Posts an event: it is in the store until a program with a handler for the stream has handled it. Returns its id.
        RefusedError (HD_EXISTS): the event with the ``id`` that is given has been handled.

        ``at`` (a datetime, or seconds since 1970) and ``after`` (a timedelta, or seconds) are when it is delivered; other
        events do not wait for it. With ``every`` there is one each time so long has passed, the first at ``at``, after
        ``after``, or after one period. Of periods that passed while no program had a handler the last has an event, whose
        ``missed`` counts the others; with ``every_missed`` each has its own."""
        from .schedules import moment, seconds

        if every is not None and seconds(every) < 0.001:
            raise ValueError(f"every is a time of at least a millisecond, not {every!r}")
        if every_missed and every is None:
            raise ValueError("every_missed goes with every")
        if at is not None and after is not None:
            raise ValueError("an event is delivered at a time or after one, not both")
        return self._runtime.send(stream, payload, id=id, seconds=time, lasting=lasting, post=True, at=moment(at),
                                  after=seconds(after), every=seconds(every), every_missed=every_missed)

    def cancel_event(self, stream: Cell[Any] | str, id: str) -> bool:
        """Takes back an event that was posted for later, or ends a periodic one; ``id`` is what ``post_event`` returned.
        False: no such event waits, because it was handled or cancelled. Inside a transaction it is part of that."""
        return self._runtime.event_cancel(stream, id)

    async def handled(self, stream: Cell[Any] | str, payload: Any = None, *, id: Optional[str] = None) -> str:
        """Sends an event and returns its id when its effects are stored; raises what became of it otherwise. If its handler
        has raised an exception, that is the ``__cause__`` of the FailedError."""
        from .flows import settle

        told = self._driver_().attach_outside("store.handled(...)").create_future()

        def end(event: str, error: Optional[_heddle.Error]) -> None:
            raised = self._raised.pop(event, None)
            if error is not None and raised is not None:
                error.args = (f"the handler has raised {type(raised).__name__}: {raised}",)
                error.__cause__ = raised
            settle(told, error, event)

        self._asked += 1
        try:
            self._runtime.send(stream, payload, id=id, done=end)
            event: str = await told
            return event
        finally:
            self._asked -= 1
            if not self._asked:
                self._raised.clear()

    def outbox(self, channel: str, message: Any) -> None:
        """In a handler of an event: a message for the world outside, delivered once the handler's transaction is stored.
        Elsewhere ``store.send`` an event, whose handler does this."""
        self._runtime.outbox(channel, message)

    def channel(self, channel: str, *, space: str = "main") -> Callable[[F], F]:
        """``@store.channel("mail")``: the function is given ``(key, message)`` of the outbox, at least once each, with the
        same key each time. If it raises, it is called again later."""

        def register(fn: F) -> F:
            _check_plain(fn, "a channel", "nothing would await it. What takes long is for a workflow: "
                         "let the handler call store.start_within")
            self._runtime.channel(space, channel, fn)
            return fn

        return register

    def new_id(self) -> str:
        """In a handler: an id for something that it makes. A retry makes the same ones."""
        return self._runtime.mint()

    # ---- Looking

    def nodes(self) -> list[dict[str, Any]]:
        """What is registered, with its state and how often it ran."""
        found: list[dict[str, Any]] = self._runtime.nodes()
        return found

    def _node_of(self, what: Any) -> Node:
        node = getattr(what, "node", what)
        if isinstance(node, Node):
            return node
        if isinstance(what, str):
            for row in self.nodes():
                if row["name"] == what:
                    return Node(self, row["node"], what)
        handler = getattr(what, "handler", what)
        if isinstance(handler, Handler):
            raise _heddle.InputError(f"{handler.name or 'the function'} handles events and is no node: the receipt of an event says "
                                     "what became of it, and nodes() what computes the cells that the handler reads")
        if isinstance(what, (str, _heddle.Cell)):
            return self._writer_of(what if isinstance(what, str) else what.name)
        raise _heddle.InputError(f"there is no node {what!r}")

    def _writer_of(self, cell: str) -> Node:
        """The node whose output the cell is, or is a part of."""
        for row in self.nodes():
            output = row["output"]
            part = cell[len(output):] if output and cell.startswith(output) else None
            if part is not None and (not part or part[0] in "#/"):
                return Node(self, row["node"], row["name"])
        instance = "; of an instance of a workflow, store.handle(id).state() tells what it waits for" if "/" in cell else ""
        raise _heddle.InputError(f"there is no node {cell!r}, and none that computes a cell of that name{instance}")

    def why(self, what: Any) -> Why:
        """What caused the last run of a computation or effect: the function, its name, its Node, or the cell that it
        computes."""
        return self._node_of(what).why()

    def why_not(self, what: Any) -> WhyNot:
        """Why it does not run now."""
        return self._node_of(what).why_not()

    def trace(self, on: bool = True) -> None:
        """From now on changes and runs are recorded, so that why() knows the values before and after."""
        self._runtime.trace(on)

    def graph(self) -> Graph:
        """What computes what: text at a prompt, a drawing in a notebook."""
        return Graph(self._runtime.graph(), list(self._handlers.values()))

    def stats(self) -> dict[str, int]:
        """Counters: nodes, runs, commits, documents, values in memory."""
        return self._runtime.stats()

    # ---- Workflows (Workflows has the rest)

    def _flows_(self, serves: bool = True) -> Flows:
        return self._own._flows_(serves)

    def _opened_(self) -> Optional[Flows]:
        return self._own._opened_()

    def _begin_workflows(self) -> None:
        """Instances and schedules of an earlier run go on although the program asks for none of them. A program without
        workflows gets no engine; nor does a store in memory, which has no earlier run."""
        from .registry import has_any

        if self._runs_workflows and has_any():
            self._flows_()

    def space(self, name: str, *, shards: int = 0, queues: Optional[Sequence[str]] = None,
              keep: Optional[Keep | timedelta] = None) -> Space:
        """The workflows of another space: ``await store.space("tenant-7").run(Checkout, order)``. This program runs them, too, from
        the first use on. The options are as for :func:`heddle.open`, and those of the first call count."""
        found = self._spaces.get(name)
        if found is None:
            if not isinstance(name, str) or not _SPACE.fullmatch(name):
                raise ValueError(f"the name of a space is a text of at least one character, without '/', '@', '#' and control "
                                 f"characters, not {name!r}")
            if isinstance(queues, str):
                raise TypeError(f"queues takes a list of names, not the text {queues!r}: write queues=[{queues!r}]")
            if not isinstance(shards, int) or not 0 <= shards <= 1024:
                raise ValueError(f"shards is a number from 1 to 1,024, or 0 for that of the store, not {shards!r}")
            if keep is not None:
                from .keeping import keep_of

                keep = keep_of(keep, "keep")
            found = self._spaces[name] = Space(self, name, None if queues is None else tuple(queues), keep, shards)
        return found
