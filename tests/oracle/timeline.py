"""Small hand-made logs, on which the oracle and the core must agree."""

from __future__ import annotations

import json
from typing import Any

from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.snapshot import view_of
from tests.oracle.experiments import ExperimentTruth, truth_of
from tests.support.agreement import differences, read_engines, run_engines, states, to_log
from tests.support.canonical import Canonical
from tests.support.experiment_logs import run_in_passes, truth_from
from tests.support.lanes import sized
from tests.support.rollups import every

from .oracle import OracleResult, Record, run

T0 = 1_700_000_040_000  # a whole minute
S, M, H = 1000, 60_000, 3_600_000
PLAIN = parse({"dimensions": [], "windows": {"lengths": ["5m", "1h"]}})
VARIANT = parse(
    {
        "dimensions": [{"name": "variant"}],
        "windows": {"lengths": ["1h"]},
        "metrics": every("variant"),
    }
)

CUTS = [(10**6, None), (1, 1), *sized([], [(1, None), (2, 7), (5, 4)])]
"""How a log reaches the core: records at a time, and the order of topics."""
Payload = dict[str, Any]


class Log:
    """Builds records: each topic-partition gets offsets from 0."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(
        self, topic: str, event_ms: int, arrival_ms: int | None = None, p: int = 0, **fields: Any
    ) -> Log:
        """An event at T0 + event_ms, stamped T0 + arrival_ms (at once if not given)."""
        payload: Payload = {"ts": T0 + event_ms, "user_id": "u", **fields}
        if topic not in ("sessions", "exposures"):
            payload = {"item_id": "x", **payload}
        if "items" in fields:
            del payload["item_id"]
        raw = json.dumps(payload).encode()
        return self.raw(topic, raw, event_ms if arrival_ms is None else arrival_ms, p)

    def raw(self, topic: str, raw: bytes | None, arrival_ms: int, p: int = 0) -> Log:
        offset = sum((r.topic, r.partition) == (topic, p) for r in self.records)
        self.records.append(Record(topic, p, offset, T0 + arrival_ms, raw))
        return self

    def shown(self, event_ms: int, arrival_ms: int | None = None, **fields: Any) -> Log:
        return self.add("impressions", event_ms, arrival_ms, **fields)

    def click(self, event_ms: int, arrival_ms: int | None = None, **fields: Any) -> Log:
        return self.add("clicks", event_ms, arrival_ms, **fields)

    def bought(self, event_ms: int, arrival_ms: int | None = None, **fields: Any) -> Log:
        return self.add("conversions", event_ms, arrival_ms, **fields)

    def visited(
        self, event_ms: int, arrival_ms: int | None = None, action: str = "view", **fields: Any
    ) -> Log:
        """An event of the sessions topic, of session s and, if it is a dwell, item x."""
        named = {"session_id": "s"} | ({"item_id": "x"} if action == "dwell" else {})
        return self.add("sessions", event_ms, arrival_ms, action=action, **{**named, **fields})

    def exposed(self, event_ms: int, arrival_ms: int | None = None, **fields: Any) -> Log:
        """An event of exposures: the user is in the arm A of the experiment e."""
        named = {"experiment": "e", "arm": "A", **fields}
        return self.add("exposures", event_ms, arrival_ms, **named)

    def run(self, settings: Settings = PLAIN) -> OracleResult:
        """What the oracle says of it, as does the core, which is in one state however records come
        to it."""
        result = run(self.records, settings)
        partitions = 1 + max((record.partition for record in self.records), default=0)
        whole: list[Canonical] = []
        for size, seed in CUTS:
            engines = run_engines(settings, partitions, to_log(self.records), size, seed)
            found = differences(read_engines(engines), result.readings)
            assert not found, "\n".join(found[:8])
            whole = whole or states(engines)
            assert states(engines) == whole
        return result

    def truth(self, settings: Settings) -> ExperimentTruth:
        """What the oracle says of its experiments, as does the core, whatever was summed when."""
        truth = truth_of(self.records, settings)
        log = to_log(self.records)
        partitions = 1 + max(record.partition for record in self.records)
        for size, seed in CUTS:
            engines = run_in_passes(settings, partitions, log, size, seed or 0)
            measures = engines.catalogue.experiment_measures
            assert truth_from(measures, [view_of(p) for p in engines.partitions]) == truth
        return truth


def value(result: OracleResult, name: str, **labels: str) -> int | float | None:
    return result.readings.get((f"streamer_{name}", frozenset(labels.items())))


def joins(result: OracleResult, topic: str = "clicks") -> list[tuple[int, int] | None]:
    """(offset, index) of the row that each feedback joined, in offset order."""
    return [
        None if row is None else row[1:]
        for address, row in sorted(result.joined.items())
        if address[0] == topic
    ]
