"""Workflows for tests of the runtime, written as IR: what the compiler gives, by hand."""
from __future__ import annotations

from typing import Any


class Flow:
    """A workflow of one function. Steps follow each other; ``inputs`` are names or (name, default)."""

    def __init__(self, name, inputs, nodes, edges=None, actions=None, children=(), journal="none"):
        self.name = name
        self.inputs = [i if isinstance(i, tuple) else (i,) for i in inputs]
        self.actions = dict(actions or {})
        self.children = list(children)
        nodes = [{"id": "in", "kind": "ENTRY"}, *nodes]
        if edges is None:
            edges = [[a["id"], b["id"]] for a, b in zip(nodes, nodes[1:])]
        self.ir = {"heddle": 1, "name": name, "journal": journal,
                   "inputs": [{"name": i[0], **({"default": i[1]} if len(i) > 1 else {})} for i in self.inputs],
                   "functions": [{"name": "run", "params": [i[0] for i in self.inputs], "nodes": nodes, "edges": edges}]}

    def bind(self, args, kwargs) -> dict[str, Any]:
        names = [i[0] for i in self.inputs]
        if len(args) > len(names):
            raise TypeError(f"{self.name}() takes {len(names)} inputs")
        given = dict(zip(names, args), **kwargs)
        unknown = set(given) - set(names)
        if unknown:
            raise TypeError(f"{self.name}() has no input {unknown.pop()!r}")
        for i in self.inputs:
            if len(i) == 1 and i[0] not in given:
                raise TypeError(f"{self.name}() misses the input {i[0]!r}")
        return given


def step(id, action, into="r", **more):
    """args: name to expression, or a list of expressions."""
    args = more.pop("args", {})
    return {"id": id, "kind": "ACTION", "action": action, "args": args, "into": ["name", into], **more}


def give(name="r"):
    return {"id": "out", "kind": "RETURN", "value": ["name", name]}


def call(fn, name="w", **options):
    """A workflow that calls one function with its input and returns what that returns."""
    return Flow(name, ["x"], [step("a", "act", args={"x": ["name", "x"]}, **options), give()], actions={"act": fn})


def sleep(id, seconds):
    return {"id": id, "kind": "SLEEP", "seconds": seconds}


def chain(count, fn, name="chain"):
    """x goes through the action count times."""
    steps = [step(f"s{i}", "act", into="x", args={"x": ["name", "x"]}) for i in range(count)]
    return Flow(name, ["x"], [*steps, give("x")], actions={"act": fn})
