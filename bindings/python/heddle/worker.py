"""Workers in processes of their own: ``heddle-worker shop:store --processes 4``, also ``python -m heddle worker``.

The first process imports the module and opens an engine on its store, so that instances go on while no other program
has one, and supervises. The processes below it import the same module, connect to the engine's socket (docs/WORKERS.md)
and run the actions of the module's workflows. A process that dies is replaced; if the engine's program ends, they wait
for the next one.

SIGTERM and SIGINT stop in order: nothing more is begun, what runs is finished and told, then the process ends.
"""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import os
import signal
import struct
import sys
import tempfile
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from . import _heddle, registry, values
from .actions import _QUEUE, is_another, two_of_a_name
from .running import Actions
from .store import Store

HEAD = struct.Struct("!I")
AGAIN_SECONDS = 0.1
"""Between two tries to connect."""
ADDRESS_BYTES = 107
AT_ONCE = 32
"""So many messages are written together. The engine stores them while this process does the next ones."""


# ---- One connection


class _TooLong(TypeError):
    """A message to the engine would be longer than its limit."""


class Connection(asyncio.Protocol):
    """A worker's side of the socket: claims steps, runs them, says what became of them."""

    def __init__(self, path: str, actions: Mapping[str, Any], name: str, room: int,
                 queues: Optional[Sequence[str]] = None) -> None:
        self.queues = queues
        self.path = path
        self.name = name
        self.room = room
        self.actions = Actions(self)
        for action, given in actions.items():
            self.actions.add(action, given)
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.closed = False
        self.stopping = False
        self.unconfirmed: set[str] = set()
        self.done = 0
        self.message_limit = 1 << 24
        self._transport: Optional[asyncio.Transport] = None
        self._over: Optional[asyncio.Future[None]] = None
        """Of the connection."""
        self._in: list[bytes] = []
        self._missing = 0
        """So many bytes must come before the next message is whole."""
        self._out: list[bytes] = []
        self._claims = 0
        self._beats: list[str] = []
        self._soon = False
        """A flush is under way."""
        self._quiet = asyncio.Event()

    async def serve(self) -> None:
        """Until :meth:`stop`, connecting again whenever the connection ends."""
        self.loop = asyncio.get_running_loop()
        while not self.stopping:
            self._over = self.loop.create_future()
            try:
                await self._connect(self.loop)
            except OSError:
                await self._pause()
            else:
                await self._over

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        """An address of a socket has at most 107 bytes. A longer one is reached through its folder, as the engine does."""
        if len(os.fsencode(self.path)) <= ADDRESS_BYTES or not hasattr(os, "O_PATH"):
            await loop.create_unix_connection(lambda: self, self.path)
            return
        folder, name = os.path.split(self.path)
        fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        try:
            await loop.create_unix_connection(lambda: self, f"/proc/self/fd/{fd}/{name}")
        finally:
            os.close(fd)

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._quiet.wait(), AGAIN_SECONDS)
        except asyncio.TimeoutError:
            pass

    # ---- The loop says (asyncio.Protocol)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._in, self._missing = [], 0
        only = {} if self.queues is None else {"queues": list(self.queues)}
        self._say({"actions": list(self.actions.by_name), "heddle": 1, "name": self.name, **only, "type": "hello"})
        self._claim(self.room)

    def data_received(self, data: bytes) -> None:
        self._in.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        try:
            messages, rest = _heddle.unframe(b"".join(self._in))
            self._in = [rest]
            self._missing = HEAD.size + (HEAD.unpack_from(rest)[0] if len(rest) >= HEAD.size else 0) - len(rest)
            for message in messages:
                self._hear(message)
        except Exception as error:
            self._end(error)

    def connection_lost(self, exc: Optional[Exception]) -> None:
        """The engine gives the steps to other workers, and would answer `late` to results of this one: they are dropped."""
        self._transport = None
        self._out.clear()
        self._beats.clear()
        self._claims = 0
        self.unconfirmed.clear()
        for token in list(self.actions.running):
            self.actions.revoke(token, "the connection was lost")
        self._check_quiet()
        self._end(None)

    def _end(self, error: Optional[Exception]) -> None:
        """The connection is over; an error ends :meth:`serve` too."""
        if self._transport is not None:
            self._transport.close()
        if self._over is not None and not self._over.done():
            self._over.set_exception(error) if error is not None else self._over.set_result(None)

    # ---- Hearing

    def _hear(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "task":
            self._begin(message)
        elif kind == "done":
            self.unconfirmed.difference_update(message["tokens"])
            self._check_quiet()
        elif kind == "late":
            self.unconfirmed.discard(message["token"])
            self._check_quiet()
        elif kind == "cancel":
            if message["token"] in self.actions.running:  # else it has ended meanwhile, and has claimed another
                self.actions.revoke(message["token"], message["why"])
                self._claim(1)
        elif kind == "welcome":
            self.message_limit = message["message_limit"]
        elif kind == "error":
            raise SystemExit(f"heddle-worker: the engine refuses: {message['message']}")

    def _begin(self, task: dict[str, Any]) -> None:
        if self.stopping:
            self._say({"token": task["token"], "type": "give_back"})
            return
        self.actions.begin(task["token"], task["action"], task["id"], task["attempt"], task.get("heartbeat_ms", 0),
                           task["args"])

    # ---- Saying (running.Ends)

    def _say(self, message: dict[str, Any]) -> None:
        """The keys of a message come in order, so that its encoding has no "$keys"."""
        data = _heddle.dumps(message)
        if len(data) > self.message_limit:
            raise _TooLong(f"{len(data):,} bytes cannot cross: a message to the engine has at most {self.message_limit:,}")
        self._out += (HEAD.pack(len(data)), data)
        if len(self._out) >= 2 * AT_ONCE:
            self._flush()
        else:
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._soon and self.loop is not None:
            self._soon = True
            self.loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._soon = False
        if self._beats:
            tokens, self._beats = self._beats, []
            self._say({"tokens": tokens, "type": "heartbeat"})
        self._flush()

    def _flush(self) -> None:
        """Claims that came up meanwhile are one message."""
        if self._claims and not self.stopping:
            claim = b'{"count":%d,"type":"claim"}' % self._claims
            self._out += (HEAD.pack(len(claim)), claim)
            self._claims = 0
        if self._transport is not None and self._out:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def _claim(self, count: int) -> None:
        self._claims += count
        self._flush_soon()

    def complete(self, token: str, result: Any) -> None:
        self._say({"result": result, "token": token, "type": "complete"})
        self._ended(token)

    def fail(self, token: str, error: Any) -> None:
        try:
            self._say({"class": "Exception", "error": error, "token": token, "type": "fail"})
        except _TooLong as refused:
            short = values.shortened_error(type(error), f"the exception is too long: {refused}")
            self._say({"class": "Exception", "error": short, "token": token, "type": "fail"})
        self._ended(token)

    def _ended(self, token: str) -> None:
        self.done += 1
        if self._transport is not None:
            self.unconfirmed.add(token)
        self._claim(1)
        self._check_quiet()

    def heartbeat(self, token: str) -> None:
        self._beats.append(token)
        self._flush_soon()

    def give_back(self, token: str) -> None:
        self._say({"token": token, "type": "give_back"})
        self._claim(1)

    def post(self, fn: Callable[[], None]) -> None:
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(fn)

    # ---- Stopping

    def _check_quiet(self) -> None:
        if self.stopping and not self.actions.running and not self.unconfirmed:
            self._quiet.set()
            if self._transport is not None:
                self._flush()
                self._transport.close()

    def stop(self) -> None:
        """Nothing more is begun; the connection ends when what runs is told and stored."""
        self.stopping = True
        self._check_quiet()


# ---- A process


def load(target: str, inspect: bool = True) -> Store:
    """"shop:store": the module, and in it a store, the name of a file, or a function that gives either. Where the file is
    opened here, ``inspect`` is as for :func:`heddle.open`."""
    module_name, _, attribute = target.partition(":")
    attribute = attribute or "store"
    if module_name.endswith(".py") and os.path.isfile(module_name):
        name = os.path.normpath(module_name)[:-len(".py")].replace(os.sep, ".")
        raise SystemExit(f"heddle-worker: {module_name} is a file, and a module is named: write {name}:{attribute}")
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise SystemExit(f"heddle-worker: {module_name!r} is not the name of a module: write MODULE:{attribute}, as in desk:file")
    sys.path.insert(0, os.getcwd())
    found = _import(module_name)
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise SystemExit(f"heddle-worker: the module {module_name} has no {attribute!r}. Name what has the store: "
                         f'"{module_name}:NAME", where NAME is the name of its file ({attribute} = "shop.db"), a store, or a '
                         "function that returns either") from None
    made: Any = found() if callable(found) and not isinstance(found, Store) else found
    if asyncio.iscoroutine(made):
        made.close()
        raise SystemExit(f"heddle-worker: {target} is an async function: name an ordinary one, which gives a store or a file's name")
    if isinstance(made, (str, os.PathLike)):
        try:
            made = Store(os.fspath(made), inspect=inspect)
        except _heddle.Error as refused:
            raise SystemExit(f"heddle-worker: {refused}") from None
    if not isinstance(made, Store) or not made.file:
        raise SystemExit(f"heddle-worker: {target} is no store in a file: {made!r}")
    if made.closed:
        raise SystemExit(f"heddle-worker: the store {target} is closed")
    if made._observer:
        raise SystemExit(f"heddle-worker: the store {target} was opened with worker=False")
    return made


def _import(name: str) -> Any:
    """The module. What is wrong inside of it is shown as Python shows it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name.split(".")[0] and missing.name != name:
            raise
        is_file = os.path.exists(name)
        advice = '. Name the module that has the workflows, and what in it has the store: "desk:NAME"' if is_file else ""
        raise SystemExit(f"heddle-worker: there is no module {name!r} in this folder or on PYTHONPATH{advice}") from None


def all_actions() -> dict[str, Any]:
    """What a process serves: what the workflows ask for, and what else it can do."""
    found: dict[str, Any] = {}
    for compiled in registry.known():
        for name, action in compiled.actions.items():
            if is_another(found.setdefault(name, action), action):
                raise SystemExit(f"heddle-worker: {two_of_a_name(name, found[name], action)}")
        found.update(compiled.actions)
    return {**registry.own_actions(), **registry.kept_actions(), **found} if registry.has_any() else found


async def work(store: Store, path: str, room: int, queues: Optional[Sequence[str]], lifeline: Optional[int]) -> None:
    """What a worker process does. When the first process is gone, also by SIGKILL, this one stops as after SIGTERM: nobody
    else would ever stop it, and it would go on with old code beside the workers that are started next."""
    connection = Connection(path, all_actions(), f"python {os.getpid()}", room, queues)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, connection.stop)
    if lifeline is not None:
        loop.add_reader(lifeline, _orphaned, loop, lifeline, connection)
    async with store:
        await connection.serve()


def _orphaned(loop: asyncio.AbstractEventLoop, lifeline: int, connection: Connection) -> None:
    loop.remove_reader(lifeline)
    print(f"heddle-worker: the first process is gone; process {os.getpid()} stops", file=sys.stderr)
    connection.stop()


# ---- The supervisor


async def _keep_one(command: list[str], lifeline: int, stopping: asyncio.Event,
                    children: set[asyncio.subprocess.Process]) -> None:
    """A process, and another one whenever it dies."""
    wait = AGAIN_SECONDS
    while not stopping.is_set():
        began = asyncio.get_running_loop().time()
        child = await asyncio.create_subprocess_exec(*command, pass_fds=(lifeline,))
        children.add(child)
        if stopping.is_set():
            child.terminate()
        status = await child.wait()
        children.discard(child)
        if stopping.is_set():
            return
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        print(f"heddle-worker: process {child.pid} has ended ({how}); starting another", file=sys.stderr)
        lived = asyncio.get_running_loop().time() - began
        wait = AGAIN_SECONDS if lived > 10 else min(wait * 2, 10.0)
        try:
            await asyncio.wait_for(stopping.wait(), wait)
        except asyncio.TimeoutError:
            pass


async def supervise(store: Store, target: str, processes: int, room: int, queues: Optional[Sequence[str]],
                    space: Optional[str] = None) -> None:
    """An engine without actions of its own, and the processes that do them."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    children: set[asyncio.subprocess.Process] = set()

    def stop() -> None:
        stopping.set()
        for child in children:
            child.terminate()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    with _socket_elsewhere(store) as elsewhere, _lifeline() as lifeline:
        async with store:
            flows = (store if space is None else store.space(space))._flows_(serves=False)
            for compiled in registry.known():
                flows.register(compiled)
            path = flows.listen(elsewhere)
            command = [sys.executable, "-m", "heddle", "worker", target, "--child", path, "--lifeline", str(lifeline),
                       "--room", str(room)]
            for queue in queues or ():
                command += ["--queue", queue]
            print(f"heddle-worker: {processes} process{'' if processes == 1 else 'es'} at {path}", flush=True)
            await asyncio.gather(*(_keep_one(command, lifeline, stopping, children) for _ in range(processes)))


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """The end of a pipe for the processes below. This process alone has the other end, so theirs reads as ended as soon as
    this process is gone, whatever ended it."""
    theirs, ours = os.pipe()
    try:
        yield theirs
    finally:
        os.close(theirs)
        os.close(ours)


@contextlib.contextmanager
def _socket_elsewhere(store: Store) -> Iterator[Optional[str]]:
    """The socket at which the workers of a store on a server meet, in a temporary folder, which is removed at the end.
    None: the store is a file, and the socket is beside it."""
    if "://" not in str(store.file):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="heddle-", ignore_cleanup_errors=True) as folder:
        yield os.path.join(folder, "workers")


def parse(arguments: Optional[list[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="heddle-worker", description="Runs the actions of a store's workflows.")
    parser.add_argument("target", help='"module:store": a store, the name of its file, or a function that gives either')
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="so many processes (1)")
    parser.add_argument("--room", type=int, default=64, metavar="N", help="so many actions at once in each (64)")
    parser.add_argument("--queue", action="append", metavar="NAME", help='only steps of this queue, and of others so named '
                        '("" is the queue of steps that name none); default: of all')
    parser.add_argument("--space", metavar="NAME", help="the space whose workflows are run; default: that of the store")
    parser.add_argument("--child", metavar="SOCKET", help=argparse.SUPPRESS)
    parser.add_argument("--lifeline", type=int, metavar="FD", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.processes < 1 or options.room < 1:
        parser.error("--processes and --room are at least 1")
    for queue in options.queue or ():
        if queue and not _QUEUE.fullmatch(queue):
            parser.error(f"a queue has a name of letters, digits, '_', '-' and '.', at most 100, not {queue!r}")
    return options


def main(arguments: Optional[list[str]] = None) -> int:
    options = parse(arguments)
    store = load(options.target, inspect=not options.child)  # the heddle command asks the first process, not all of them
    if not registry.has_any():
        store.close()
        module = options.target.partition(":")[0]
        raise SystemExit(f"heddle-worker: the module {module} defines no workflow, so no action is there to run. Define the "
                         f"workflows in {module}, or import the modules there that define them")
    if options.space is not None:
        try:
            store.space(options.space)
        except ValueError as refused:
            raise SystemExit(f"heddle-worker: {refused}") from None
    all_actions()  # refuses two of one name here, not in each process
    store._runs_workflows = False  # supervise() opens the engine, without actions
    if options.child:
        asyncio.run(work(store, options.child, options.room, options.queue, options.lifeline))
    else:
        asyncio.run(supervise(store, options.target, options.processes, options.room, options.queue, options.space))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
