"""The version of a Python function, for resuming: a computation does not run after a restart unless its code, or what it
read, has changed."""
from __future__ import annotations

import hashlib
import marshal
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any

CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200


def is_async(fn: Any) -> bool:
    """Whether a call of ``fn`` returns a coroutine: ``fn`` is an async function, a partial of one, or an object with an
    async ``__call__``."""
    return bool(_flags_of(fn) & CO_COROUTINE)


def is_generator(fn: Any) -> bool:
    """Whether a call of ``fn`` returns a generator, async or not."""
    return bool(_flags_of(fn) & (CO_GENERATOR | CO_ASYNC_GENERATOR))


def _flags_of(fn: Any) -> int:
    while isinstance(fn, partial):
        fn = fn.func
    if getattr(fn, "__code__", None) is None and not isinstance(fn, type):
        fn = getattr(type(fn), "__call__", None)
    code = getattr(fn, "__code__", None)
    return 0 if code is None else int(code.co_flags)


def _text_of(code: CodeType) -> bytes:
    """What the code does, without its positions."""
    parts = [code.co_code, repr((code.co_names, code.co_varnames, code.co_freevars)).encode()]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            parts.append(_text_of(constant))
        else:
            parts.append(marshal.dumps(constant) if not isinstance(constant, frozenset) else
                         repr(sorted(map(repr, constant))).encode())
    return b"".join(parts)


def _names(code: CodeType) -> set[str]:
    """The names that the code, and the functions in it, may look up in the module. Names of attributes are among them."""
    return set(code.co_names).union(*(_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


@lru_cache(1024)
def _read(code: CodeType) -> tuple[bytes, list[str]]:
    """Programs register one function many times, with other cells."""
    return _text_of(code), sorted(name for name in _names(code) if not name.startswith("__"))


def _is_plain(value: Any) -> bool:
    """Other values may be the same without being equal to their former selves: they do not count."""
    return isinstance(value, (bool, int, float, str, bytes, type(None))) or \
        type(value) is tuple and all(map(_is_plain, value))


def _feed_plain(digest: Any, value: Any) -> None:
    if _is_plain(value):
        digest.update(repr(value).encode())


def _feed_used(digest: Any, names: list[str], module: dict[str, Any], seen: set[CodeType]) -> None:
    """What stands in the function's module and is read or called by name: plain values, and functions of the same module."""
    for name in names:
        value = module.get(name, module)
        if isinstance(value, FunctionType) and value.__globals__ is module:
            digest.update(name.encode())
            _feed_function(digest, value, seen)
        elif _is_plain(value):
            digest.update(f"{name}={value!r}".encode())


def _feed_function(digest: Any, fn: FunctionType, seen: set[CodeType]) -> None:
    if fn.__code__ in seen:
        return
    seen.add(fn.__code__)
    text, names = _read(fn.__code__)
    digest.update(text)
    for cell in fn.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        _feed_plain(digest, value)
    named = fn.__kwdefaults__ or {}
    for value in (*(fn.__defaults__ or ()), *(named[name] for name in sorted(named))):
        _feed_plain(digest, value)
    _feed_used(digest, names, fn.__globals__, seen)


def version_of(fn: Any) -> str:
    """A hash of its code, of the functions of its module that it calls by name, and of the plain values that these read in
    the module, close over, or have as defaults of their parameters."""
    digest = hashlib.blake2b(digest_size=16)
    while isinstance(fn, partial):
        for value in (*fn.args, *(text for item in sorted(fn.keywords.items()) for text in item)):
            _feed_plain(digest, value)
        fn = fn.func
    function = getattr(fn, "__func__", fn)
    if not isinstance(function, FunctionType):
        return f"{type(fn).__module__}.{type(fn).__qualname__}"
    _feed_function(digest, function, set())
    return digest.hexdigest()
