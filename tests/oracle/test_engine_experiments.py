"""The engine's sums of experiments are the oracle's, however the log is cut and interleaved."""

from __future__ import annotations

import pytest

from streamer.state.snapshot import view_of
from tests.oracle.experiments import truth_of
from tests.support.agreement import run_engines, states, to_log
from tests.support.experiment_logs import NAMES, run_in_passes, truth_from, with_log
from tests.support.lanes import shortened, sized

LINES, WHOLE = sized(80, 800), 1_000_000


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", shortened([5, 0, 1, 2, 3, 4, 6, 7]))
def test_sums_equal_the_oracles_whatever_the_cuts(seed: int, name: str) -> None:
    partitions = 1 + seed % 3
    settings, records = with_log(seed, name, LINES, partitions)
    expected = truth_of(records, settings)
    reference = None
    log = to_log(records)
    for size, dice in [(WHOLE, None), (13, 1), (80, seed), (40, None)]:
        if dice is None and size < WHOLE:
            engines = run_in_passes(settings, partitions, log, size, seed)
        else:
            engines = run_engines(settings, partitions, log, size, dice)
        views = [view_of(p) for p in engines.partitions]
        found = truth_from(engines.catalogue.experiment_measures, views)
        assert found.mixed == expected.mixed, (size, dice)
        assert found.outside == expected.outside, (size, dice)
        for key, sums in expected.sums.items():
            assert found.sums[key] == sums, (size, dice, key)
        assert found.sums.keys() == expected.sums.keys()
        assert found == expected, (size, dice)
        reference = reference or states(engines)
        assert states(engines) == reference, (size, dice)
