"""What actions returned, kept by name: a run that was recorded is played again without its actions."""
from __future__ import annotations

import json
import os
from typing import Any, Optional

from .. import _heddle
from ..running import Served
from ..attempts import Attempt
from .lab import Lab


class Recording:
    """``with Recording("checkout-17", "tests/recordings") as lab:`` -- the first time the actions run, and what they
    return or raise is written to tests/recordings/checkout-17.json. From then on the file answers for them, and a call
    that is not in it fails the test: it raises AssertionError in the workflow, and if the workflow catches that, the end of
    the block raises it. Remove the file, or set HEDDLE_RECORD=1, to record again."""

    def __init__(self, name: str, folder: str | os.PathLike[str]) -> None:
        self.path = os.path.join(folder, name + ".json")
        self.lab = Lab()
        self.plays = os.path.exists(self.path) and not os.environ.get("HEDDLE_RECORD")
        self._entries: list[dict[str, Any]] = []
        self._left: dict[str, list[dict[str, Any]]] = {}
        self._missed: list[str] = []
        """What was called and is not in the file."""

    def __enter__(self) -> Lab:
        if self.plays:
            with open(self.path, encoding="utf-8") as file:
                for entry in json.load(file):
                    self._left.setdefault(_key(entry["action"], entry["args"]), []).append(entry)
        actions = self.lab.store._flows_().actions
        actions.intercept = self._play if self.plays else self.lab._intercept
        if not self.plays:
            actions.wrap = self._recorded
            actions.by_name.update({name: self._recorded(action) for name, action in actions.by_name.items()})
        return self.lab

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], _: object) -> None:
        self.lab.close()
        if self._missed and not isinstance(error, AssertionError):
            raise AssertionError(self._missed[0]) from error
        if not self.plays and kind is None:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump(self._entries, file, indent=1)

    # ---- Recording

    def _recorded(self, action: Served) -> Served:
        return _Recorded(self, action)

    def _note(self, action: str, args: Any, outcome: str, value: Any) -> None:
        self._entries.append({"action": action, "args": _text(args), outcome: _text(value)})

    # ---- Playing

    def _play(self, attempt: Attempt, action: Served, args: Any) -> Optional[tuple[Any]]:
        self.lab._intercept(attempt, action, args)
        left = self._left.get(_key(action.name, _text(args)))
        if not left:
            self._missed.append(f"{action.name}({args!r}) is not in {self.path}")
            raise AssertionError(self._missed[-1])
        entry = left.pop(0)
        if "raised" in entry:
            raise _value(entry["raised"])
        return (_value(entry["returned"]),)


def _text(value: Any) -> str:
    return _heddle.dumps(value).decode()


def _value(text: str) -> Any:
    return _heddle.loads(text.encode())


def _key(action: str, args: str) -> str:
    return f"{action} {args}"


class _Recorded:
    """An action that notes what it returns or raises."""

    is_async = True

    def __init__(self, recording: Recording, action: Served) -> None:
        self.recording, self.action, self.name = recording, action, action.name

    async def invoke(self, args: Any) -> Any:
        import asyncio

        try:
            result = await self.action.invoke(args) if self.action.is_async else \
                await asyncio.to_thread(self.action.invoke, args)
        except Exception as error:
            self.recording._note(self.name, args, "raised", error)
            raise
        self.recording._note(self.name, args, "returned", result)
        return result
