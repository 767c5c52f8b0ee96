"""worker.py -- a worker in Python, with the standard library only: docs/WORKERS.md as a program.

    worker.py SOCKET [--slow SECONDS] [--die-after N]

It serves the actions of the seed's pipeline, `slow` (which takes a while), `echo`, `fail` and `cry` (which raises). Steps run in
threads; the main thread reads. --die-after ends the process with SIGKILL in the middle of its Nth step.
"""
import argparse
import json
import os
import queue
import signal
import socket
import struct
import sys
import threading
import time


class Connection:
    """Messages over a Unix socket: four bytes of length, then JSON."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        self.lock = threading.Lock()

    def say(self, **message):
        data = json.dumps(message).encode()
        with self.lock:
            self.socket.sendall(struct.pack(">I", len(data)) + data)

    def hear(self):
        head = self.file.read(4)
        if len(head) < 4:
            return None
        return json.loads(self.file.read(struct.unpack(">I", head)[0]))


# ---- actions: named arguments come as an object, positional ones as an array

def fetch_items(count):
    return [{"id": i} for i in range(count)]


def process_item(item):
    return {"id": item["id"], "score": item["id"] * 10}


def validate_chunk(chunk_id, items):
    return all(item["score"] > 0 for item in items)


def aggregate_chunk(chunk_id, items, is_valid):
    return {"total": sum(item["score"] for item in items) if is_valid else 0}


def finalize(results):
    return sum(result["total"] for result in results)


def echo(value=None):
    return value


def slow(value=None):
    time.sleep(options.slow)
    return value


def cry():
    raise KeyError("it hurts")


ACTIONS = {f.__name__: f for f in (fetch_items, process_item, validate_chunk, aggregate_chunk, finalize, echo, slow, cry)}


def run(action, args):
    return action(**args) if isinstance(args, dict) else action(*args)


def work(connection, tasks, begun):
    while True:
        task = tasks.get()
        begun.append(task["token"])
        if options.die_after and len(begun) >= options.die_after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            connection.say(type="complete", token=task["token"], result=run(ACTIONS[task["action"]], task["args"]))
        except Exception as e:
            connection.say(type="fail", token=task["token"], **{"class": type(e).__name__}, message=str(e))
        connection.say(type="claim", count=1)  # room for another


def main():
    connection = Connection(options.socket)
    connection.say(type="hello", heddle=1, name="python %d" % os.getpid(), actions=sorted(ACTIONS))
    welcome = connection.hear()
    if welcome["type"] != "welcome":
        sys.exit(welcome.get("message", "not welcome"))
    tasks, begun = queue.Queue(), []
    for _ in range(options.threads):
        threading.Thread(target=work, args=(connection, tasks, begun), daemon=True).start()
    connection.say(type="claim", count=options.threads)
    print("ready", flush=True)
    while (message := connection.hear()) is not None:
        if message["type"] == "task":
            tasks.put(message)
        elif message["type"] == "error":
            sys.exit(message["message"])
        # "done": stored. "late": another worker was quicker. "cancel": this worker's steps are short, it lets them end.


parser = argparse.ArgumentParser()
parser.add_argument("socket")
parser.add_argument("--slow", type=float, default=0.02)
parser.add_argument("--threads", type=int, default=4)
parser.add_argument("--die-after", type=int, default=0)
options = parser.parse_args()
main()
