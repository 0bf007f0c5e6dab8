"""The logs that are simulated, and what has to come of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import date

from streamer.ingest.hash_key import HashKey
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.testing import LogRecord
from tests.oracle.oracle import records_of_log, run
from tests.oracle.random_log import random_log
from tests.support.agreement import differences, read_engines, run_engines, states, to_log
from tests.support.canonical import Canonical

PARTITIONS = 2
LOGS = 48
"""Different logs; each is run under many schedules."""
LIVE = "written meanwhile"
NAMES = ("written before", LIVE)
_LINES = 60
_EXPERIMENT = {
    "name": "simulated",
    "dimension": "variant",
    "control": "variant-0",
    "split": {"variant-0": 1, "variant-1": 1},
    "start": date(2023, 11, 15),
    "covariate_days": 1,
    "metrics": [
        *({"name": "clicks_per_user"}, {"name": "ndcg_ratio@5"}),
        {"name": "dwell_seconds_per_user@p50"},
    ],
}


def settings_of(name: str) -> Settings:
    """Short horizons where all is there at the start; a wide skew where topics are idle while
    the logs still grow much faster than their time."""
    is_live = name == LIVE
    return parse(
        {
            "dimensions": [{"name": "variant", "max_values": 2}],
            "windows": {"lengths": ["30m"]},
            "metrics": {"k": [5]},
            "attribution": {"click": "10m", "conversion": "1h"},
            "time": {
                "max_lateness": "10m",
                "max_skew": "240h" if is_live else "1m",
                "dedup_horizon": "20m",
            },
            "experiments": [_EXPERIMENT],
            "limits": {"gather_rows": 15, "flush_ms": 2000},
        }
    )


@dataclass(frozen=True)
class Case:
    """Logs, and what has to come of them. ``states``: under the fixed key."""

    settings: Settings
    catalogue: Catalogue
    log: list[LogRecord]
    states: list[Canonical]
    dead: set[tuple[str, int, int]]

    def states_under(self, key: HashKey) -> list[Canonical]:
        """What partitions hold that are counted under this key."""
        return states(run_engines(self.settings, PARTITIONS, self.log, 1000, key=key))


@functools.lru_cache(maxsize=2 * LOGS)
def case_of(number: int, name: str) -> Case:
    """A random log, run once without faults and held against the oracle."""
    settings = settings_of(name)
    records = records_of_log(random_log(number, settings, _LINES), settings, partitions=PARTITIONS)
    engines = run_engines(settings, PARTITIONS, to_log(records), 1000)
    assert not differences(read_engines(engines), run(records, settings).readings)
    dead = {(kind, p, offset) for kind, p, offset, _ in engines.dead}
    return Case(settings, engines.catalogue, to_log(records), states(engines), dead)
