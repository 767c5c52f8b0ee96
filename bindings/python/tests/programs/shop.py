"""A shop for tests of workers and kills: python shop.py FILE COUNT runs COUNT instances and prints their results."""
import asyncio
import os
import sys
import time
from dataclasses import dataclass

import heddle
from heddle import Workflow, action, workflow

FILE = os.environ.get("SHOP_FILE", "shop.db")


@dataclass
class Order:
    id: int
    price: float


class Refused(Exception):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def note(text: str) -> None:
    """One line in the log beside the file, whole however many processes write."""
    fd = os.open(FILE + ".log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{text}\n".encode())
    os.close(fd)


@action
async def charge(order: Order) -> Order:
    note(f"charge {order.id} {os.getpid()}")
    await asyncio.sleep(0)
    return Order(order.id, order.price + 1)


@action
def ship(order: Order, times: int) -> float:
    note(f"ship {order.id} {os.getpid()}")
    return order.price * times


@action
async def linger(seconds: float) -> int:
    note(f"linger {os.getpid()}")
    await asyncio.sleep(seconds)
    note(f"lingered {os.getpid()}")
    return os.getpid()


@action(heartbeat=0.5)
async def die_once(marker: str) -> str:
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), 9)
    return "alive"


@action
async def refuse(code: int) -> None:
    raise Refused("no", code)


@action(retries=2, backoff=3600)  # a retry would come too late for any test
async def print_catalogue(size: int) -> str:
    return "x" * size


@action
async def complain(size: int) -> None:
    raise Refused("x" * size, 1)


@action
async def fail_together(size: int) -> None:
    raise ExceptionGroup("x" * size, [KeyError()])


@workflow
class Grouped(Workflow):
    async def run(self, size: int) -> str:
        try:
            await fail_together(size)
        except ValueError as error:
            return str(error)
        return ""


class Wordless(Exception):
    def __str__(self) -> str:
        raise self.args[0]


@action
async def fail_wordlessly(how: str) -> None:
    raise Wordless({"type": TypeError("no text"), "other": KeyError("no text"), "same": Wordless()}[how])


@workflow
class Mute(Workflow):
    async def run(self, how: str) -> str:
        try:
            await fail_wordlessly(how)
        except TypeError as error:
            return str(error)
        return ""


@workflow
class Complaint(Workflow):
    async def run(self, size: int) -> str:
        try:
            await complain(size)
        except Refused as error:
            return str(error) if len(str(error)) < 1000 else str(len(str(error)))
        return ""


@workflow
class Catalogue(Workflow):
    async def run(self, size: int) -> str:
        try:
            return str(len(await print_catalogue(size)))
        except TypeError as error:
            return str(error)


@workflow
class Checkout(Workflow):
    async def run(self, order: Order) -> float:
        charged = await charge(order)
        await asyncio.sleep(0.01)
        total = 0.0
        for times in range(2):
            total += await ship(charged, times)
        return total


@workflow
class Waits(Workflow):
    async def run(self, seconds: float) -> int:
        return await linger(seconds)


@workflow
class Dies(Workflow):
    async def run(self, marker: str) -> str:
        return await die_once(marker)


@workflow
class Refuses(Workflow):
    async def run(self, code: int) -> int:
        try:
            await refuse(code)
        except Refused as error:
            return error.code
        return 0


def store() -> heddle.Store:
    return heddle.open(FILE)


async def main() -> None:
    global FILE
    FILE, count = sys.argv[1], int(sys.argv[2])
    room = asyncio.Semaphore(50)

    async def one(opened: heddle.Store, i: int) -> float:
        async with room:
            result: float = await opened.options(key=str(i)).run(Checkout, Order(i, float(i)))
            return result

    async with heddle.open(FILE) as opened:
        results = await asyncio.gather(*(one(opened, i) for i in range(count)))
    print(sum(results), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
