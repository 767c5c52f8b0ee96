"""Random workflows, killed at each of their steps: whoever goes on ends in the same way.

HEDDLE_SEED=n runs one seed and prints its source; HEDDLE_RESUMED=1000 runs more of them, HD_SEED=n others."""
from __future__ import annotations

import logging
import os
import warnings

import heddle
import twin
from heddle.testing import resume_everywhere
from sources import Sources

COUNT = int(os.environ.get("HEDDLE_RESUMED", "25"))
BEGIN = int(os.environ.get("HD_SEED", "0")) * 1_000_000 + 500_000
DIFFERS = ("flaky(", "heddle.")
"""What gives another result when it is run again: an action that counts its calls, times and random numbers."""


def resume(seed: int) -> bool:
    """False: nothing can be said of it."""
    source = Sources(seed).workflow("Flow")
    if any(word in source for word in DIFFERS):
        return False
    try:
        names = twin.module_of(source, heddle)
    except heddle.CompileError:
        return False
    try:
        resume_everywhere(names["Flow"])
    except AssertionError as error:
        raise AssertionError(f"HEDDLE_SEED={seed}\n{source}\n{error}") from None
    finally:
        twin.forget(names)
    return True


def test_random_workflows_go_on_from_each_step() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in "asyncio", "heddle":
            logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
        if "HEDDLE_SEED" in os.environ:
            print(Sources(int(os.environ["HEDDLE_SEED"])).workflow("Flow"))
            resume(int(os.environ["HEDDLE_SEED"]))
            return
        seed, left = BEGIN, COUNT
        while left:
            left -= resume(seed)
            seed += 1
