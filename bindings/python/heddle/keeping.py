"""How long instances stay in the store when they are over."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Optional, Union


@dataclass(frozen=True)
class Keep:
    """``Keep(timedelta(days=30), most=10_000)``: an instance leaves the store so long after its end, and the oldest ends do
    while there are more than so many. ``Keep()`` keeps all, whatever the store says."""

    time: Optional[Union[float, timedelta]] = None
    """A timedelta, or seconds."""
    most: Optional[int] = None
    """Instances of one workflow."""

    def __post_init__(self) -> None:
        if self.time is not None and not 0 < self.seconds <= 1e11:
            raise ValueError(f"instances are kept for some time, not {self.time!r}")
        if self.most is not None and self.most < 1:
            raise ValueError(f"most is a number of instances, at least 1, not {self.most!r}")

    @property
    def seconds(self) -> float:
        """0: for ever."""
        return 0.0 if self.time is None else self.time.total_seconds() if isinstance(self.time, timedelta) else float(self.time)

    def ir(self) -> dict[str, Any]:
        """As the IR has it."""
        return {**({"most": self.most} if self.most else {}), **({"seconds": self.seconds} if self.time is not None else {})}


def keep_of(given: Union[Keep, timedelta, None], whose: str) -> Optional[Keep]:
    """A timedelta alone is a time."""
    if given is None or isinstance(given, Keep):
        return given
    if isinstance(given, timedelta):
        return Keep(given)
    raise TypeError(f"{whose} is a heddle.Keep or a timedelta, not {given!r}")
