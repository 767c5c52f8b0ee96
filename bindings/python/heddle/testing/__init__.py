"""Testing workflows and graphs: a store in memory, virtual time, actions that fail when the test says so.

    from heddle.testing import Lab

    def test_checkout_retries():
        with Lab() as lab:
            lab.fail("charge", ConnectionError("away"), times=2)
            assert lab.run(Checkout, 17) == "receipt-17"
            assert lab.count("charge") == 3

Time is virtual: a workflow that sleeps for a month is over at once. :func:`resume_everywhere` kills a workflow at each
of its steps and lets another program go on. :class:`Recording` keeps what actions returned in a file, by name.
With pytest, the fixture ``heddle_lab`` gives a :class:`Lab`.
"""
from .lab import Call, Lab
from .recording import Recording
from .resume import resume_everywhere

__all__ = ["Call", "Lab", "Recording", "resume_everywhere"]
