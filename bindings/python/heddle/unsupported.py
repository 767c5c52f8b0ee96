"""The exception for what only shows when a workflow runs."""
from __future__ import annotations


class Unsupported(Exception):
    """A workflow has done something that the engine cannot do as CPython would: an operation of a class's own, an object
    that cannot be kept. Inside the workflow only ``except heddle.Unsupported`` catches it: the engine sees to that.
    ``store.run`` and ``handle.result()`` raise it like any exception of the workflow."""
