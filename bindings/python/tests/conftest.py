"""Shared by the tests. With HEDDLE_TAP=1 each test is a line in TAP, for tools/suite."""
from __future__ import annotations

import os
import random
import sys

import pytest

pytest_plugins = ["heddle.testing.plugin"]

SEED = int(os.environ.get("HD_SEED", "20261117"))


@pytest.fixture
def rng(request):
    """Random numbers that repeat: the seed is printed when the test fails."""
    print(f"HD_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "store.db")


def pytest_runtest_logreport(report):
    if not os.environ.get("HEDDLE_TAP"):
        return
    if report.when == "call" or report.failed:
        word = "ok" if report.passed else "not ok" if report.failed else None
        if word:
            sys.__stdout__.write(f"\n{word} - {report.nodeid}\n")
            sys.__stdout__.flush()
