"""The fixture for pytest. It is there when heddle is installed; otherwise:
``python3 -m pytest -p heddle.testing.plugin``."""
from __future__ import annotations

from typing import Iterator

import pytest

from .lab import Lab


@pytest.fixture
def heddle_lab() -> Iterator[Lab]:
    """A lab: a store in memory, with virtual time."""
    with Lab() as lab:
        yield lab
