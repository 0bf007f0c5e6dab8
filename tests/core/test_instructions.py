"""The core's instructions an event, beside plain decoding of the same records in the same process:
they are counted, so no other load on the machine changes them."""

from __future__ import annotations

import platform

import pytest

from benchmarks.instructions import measured
from tests.support.required import require

EVENTS = 5_000
RATIOS = {
    "counting": 1.44,
    "by default": 2.25,
    "with an experiment and alerts": 2.91,
    "a troubled log": 3.06,
}
"""What was counted on x86-64 with Python 3.11, of the profile ``fast``, which a checkout is built
with: a release needs 0.74 to 0.85 times as many."""
MORE = 1.25
"""A ratio so many times as large is a regression: find it, or write the new ratio down with why."""


@pytest.mark.timeout(300)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the ratios are those of x86-64")
def test_the_hot_path_takes_no_more_instructions_than_it_did() -> None:
    require("Valgrind")
    found = {load: counts["ratio"] for load, counts in measured(EVENTS).items()}
    worse = {load: ratio for load, ratio in found.items() if ratio > MORE * RATIOS[load]}
    assert not worse, f"instructions beside plain decoding rose: {worse}, and not {RATIOS}"
