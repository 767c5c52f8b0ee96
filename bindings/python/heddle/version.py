"""The version of a Python function, for resuming: a computation does not run after a restart unless its code, or what it
read, has changed."""
from __future__ import annotations

import hashlib
import marshal
from functools import partial
from types import CodeType
from typing import Any

CO_COROUTINE = 0x80


def is_async(fn: Any) -> bool:
    """Whether a call of ``fn`` returns a coroutine: ``fn`` is an async function, a partial of one, or an object with an
    async ``__call__``."""
    while isinstance(fn, partial):
        fn = fn.func
    if getattr(fn, "__code__", None) is None and not isinstance(fn, type):
        fn = getattr(type(fn), "__call__", None)
    code = getattr(fn, "__code__", None)
    return code is not None and bool(code.co_flags & CO_COROUTINE)


def _feed(digest: Any, code: CodeType) -> None:
    """What the code does, without its positions."""
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _feed(digest, constant)
        else:
            digest.update(marshal.dumps(constant) if not isinstance(constant, frozenset) else
                          repr(sorted(map(repr, constant))).encode())


def _feed_plain(digest: Any, value: Any) -> None:
    """Other values may be the same without being equal to their former selves: they do not count."""
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        digest.update(repr(value).encode())


def version_of(fn: Any) -> str:
    """A hash of its code, and of the plain values that it closes over or has as defaults of its parameters."""
    digest = hashlib.blake2b(digest_size=16)
    code = getattr(fn, "__code__", None)
    if code is None:
        return f"{type(fn).__module__}.{type(fn).__qualname__}"
    _feed(digest, code)
    for cell in getattr(fn, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        _feed_plain(digest, value)
    named = getattr(fn, "__kwdefaults__", None) or {}
    for value in (*(getattr(fn, "__defaults__", None) or ()), *(named[name] for name in sorted(named))):
        _feed_plain(digest, value)
    return digest.hexdigest()
