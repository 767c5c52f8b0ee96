"""The exception for what only shows when a workflow runs."""
from __future__ import annotations


class Unsupported(BaseException):
    """A workflow has done something that the engine cannot do as CPython would: an operation of a class's own, an object
    that cannot be kept. Not an Exception, so that ``except Exception`` does not hide it."""
