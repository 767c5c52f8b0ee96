"""The version of a Python function, for resuming: a computation does not run after a restart unless its code, or what it
read, has changed."""
from __future__ import annotations

import hashlib
import marshal
from types import CodeType
from typing import Any

CO_COROUTINE = 0x80


def is_async(fn: Any) -> bool:
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


def version_of(fn: Any) -> str:
    """A hash of its code, and of the plain values that it closes over."""
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
        if isinstance(value, (bool, int, float, str, bytes, type(None))):
            digest.update(repr(value).encode())
    return digest.hexdigest()
