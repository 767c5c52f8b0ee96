"""Links: addresses inside documents."""
from __future__ import annotations

from typing import Optional

_SCOPES = ("space", "user", "session")


class Link:
    """The address of another place, as a value in a document. Parts that are None mean "as here"."""

    __slots__ = ("space", "scope", "id", "path")

    def __init__(self, space: Optional[str] = None, scope: Optional[str] = None, id: Optional[str] = None,
                 path: Optional[str] = None) -> None:
        if scope is not None and scope not in _SCOPES:
            raise ValueError(f"scope is one of {', '.join(_SCOPES)}, not {scope!r}")
        self.space, self.scope, self.id, self.path = space, scope, id, path

    def _parts(self) -> tuple[Optional[str], int, Optional[str], Optional[str]]:
        return self.space, 0 if self.scope is None else _SCOPES.index(self.scope) + 1, self.id, self.path

    def _key(self) -> tuple[Optional[str], Optional[str], Optional[str], str]:
        return self.space, self.scope, self.id, self.path or ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Link) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        given = ((name, getattr(self, name)) for name in self.__slots__)
        return f"Link({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"
