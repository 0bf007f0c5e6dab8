"""An event costs as much with 4,000 others under its key as with 250, whatever the key."""

from __future__ import annotations

import platform

import pytest

from benchmarks.growth import SIZES, measured
from tests.support.required import require

MORE = 2.0


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="valgrind counts what x86-64 needs")
def test_an_event_costs_no_more_where_more_is_kept_under_its_key() -> None:
    require("Valgrind")
    found = measured((SIZES[0], SIZES[-1]))
    assert all(len(by_size) == 2 and min(by_size.values()) > 0 for by_size in found.values())
    grown = {name: x for name, x in found.items() if x[SIZES[-1]] > MORE * x[SIZES[0]]}
    assert not grown, f"instructions an event grew with what is kept: {grown}"
