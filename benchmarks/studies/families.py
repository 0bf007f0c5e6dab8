"""What families of metrics cost: the same log counted with more and more of them.

    python -m benchmarks.studies.families                  a minute of one core

Synthetic traffic whose impressions carry a score, a propensity, that of another policy, a category
and a latency is fed in turn to cores of different settings, users' sums and the blobs of panes
included, which are written as often as a worker that catches up commits. Prints CPU seconds, the
median ratio to the first settings, and the bytes of panes that a commit writes. Every impression
has to be counted, and by each family.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping
from itertools import islice
from typing import Any

from benchmarks.endless import Log, Run
from streamer.kafka.chunk import Records
from streamer.metrics.rings import rings_of
from streamer.query.readings import readout
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.sources.synthetic import SyntheticTraffic, generate
from streamer.state import codec
from streamer.state.panes import PaneBlobs
from streamer.state.snapshot import view_of

BASE = ("traffic", "engagement", "ranking", "scoring", "intervals")
DEFAULT = (*BASE, "calibration", "coverage")
LATENCY = {"kind": "impressions", "field": "latency_ms"}
WATCHED = {"kind": "clicks", "field": "dwell_ms"}
VALUE = {"kind": "conversions", "field": "value"}
OF_C1 = {"impression.item_category": "c1"}
RATIOS = [
    {"name": "latency", "numerator": LATENCY, "denominator": {"kind": "impressions"}},
    {"name": "watched", "numerator": WATCHED, "denominator": {"kind": "clicks"}},
    {
        "name": "slow",
        "numerator": {"kind": "impressions", "where": {"latency_ms": {">": 900}}},
        "denominator": {"kind": "impressions"},
    },
    {"name": "value_per_second", "numerator": VALUE, "denominator": WATCHED},
    {"name": "value", "numerator": VALUE, "denominator": {"kind": "people"}},
    {
        "name": "value_of_c1",
        "numerator": {**VALUE, "where": OF_C1},
        "denominator": {"kind": "clicks", "where": OF_C1},
    },
    {
        "name": "top",
        "numerator": {"kind": "clicks", "where": {"impression.position": {"<=": 3}}},
        "denominator": {"kind": "clicks"},
    },
    {"name": "orders", "numerator": {"kind": "conversions"}, "denominator": {"kind": "slates"}},
    {"name": "lines", "numerator": {"kind": "lines"}, "denominator": {"kind": "conversions"}},
    {"name": "clicks", "numerator": {"kind": "clicks"}, "denominator": {"kind": "sessions"}},
]
"""Of fields and counts, of few events and many, asked of the event and of its impression."""
SKETCHED = [{**ratio, "quantiles": True} for ratio in RATIOS[:2]] + RATIOS[2:]
POLICIES = [{"name": "new", "propensity": "p_new"}]
PARTS = [{"metric": "ctr_ratio", "against": "day_before"}, {"metric": "ndcg_ratio@10"}]
COMPOSITES = {
    "windows": {"lengths": ["1m", "5m", "1h", "24h"], "day_before": ["1h"]},
    "composites": [{"name": "health", "parts": PARTS}],
}


def _with(*families: str, **more: Any) -> dict[str, Any]:
    return {"metrics": {"families": families}, **more}


SETTINGS: Mapping[str, dict[str, Any]] = {
    "without any of them": _with(*BASE),
    "`calibration`": _with(*BASE, "calibration"),
    "`coverage`": _with(*BASE, "coverage"),
    "both, the default": _with(*DEFAULT),
    "the default and `scores`": _with(*DEFAULT, "scores"),
    "the default and `diversity`": _with(*DEFAULT, "diversity"),
    "the default and a policy": _with(*DEFAULT, "off_policy", policies=POLICIES),
    "the default and ten ratios": _with(*DEFAULT, ratios=RATIOS),
    "the same with quantiles": _with(*DEFAULT, ratios=SKETCHED),
    "the default, a composite and a day before": _with(*DEFAULT, **COMPOSITES),
    "everything": _with(
        *(*DEFAULT, "scores", "diversity", "off_policy"),
        ratios=SKETCHED,
        policies=POLICIES,
        **COMPOSITES,
    ),
}
SUPPORTS = {
    "calibration": "window_scored_impressions",
    "scores": "window_probability_impressions",
    "off_policy": "window_off_policy_impressions",
    "ratios": "window_ratio_denominator",
}
"""What each family says it counted."""
ITEMS = 2_000
LINES = 20_000
_SAID = b'"type":"impression","latency_ms":%d.5,"item_category":"c%d","p_new":%.3f,'


def records(events: int) -> list[list[Records]]:
    """The log in batches, as the core is fed."""
    log = Log()
    traffic = generate(SyntheticTraffic(users=20_000, items=ITEMS), events)
    lines = (
        (kind, line.replace(b'"type":"impression",', _SAID % (n % 997, n % 11, n % 100 / 100)))
        for n, (kind, line) in enumerate(traffic)
    )
    return [log.records(batch) for batch in iter(lambda: list(islice(lines, LINES)), [])]


def seconds(document: dict[str, Any], log: list[list[Records]]) -> tuple[float, int]:
    """CPU seconds of the core and of its panes' blobs; their bytes."""
    run, written = Run(parse(document)), 0

    def put(columns: codec.Columns) -> str:
        nonlocal written
        written += len(codec.encode(columns, ""))
        return str(written)

    core = run.partition.core
    day_before = run.catalogue.day_before.rings
    panes = [PaneBlobs(core, rings_of(run.settings), day_before=day_before)]
    panes += [PaneBlobs(core, s.declared.rings, s.number) for s in run.partition.series]
    begun = time.process_time()
    for number, batch in enumerate(log, 1):
        run.partition.apply(batch)
        run.partition.refresh_user_sums()
        if number % (limits.COMMIT_ROWS // LINES) == 0:
            for each in panes:
                each.put(run.partition.stream_ms, put, [])
    took = time.process_time() - begun
    _check(run)
    return took, written


def _check(run: Run) -> None:
    values: dict[str, float] = {}
    for reading in readout(run.settings, run.catalogue, [view_of(run.partition)]).readings:
        is_total = {reading.labels.get(name) for name in ("variant", "surface")} == {"all"}
        if is_total and reading.labels.get("window") == "24h":
            values.setdefault(reading.name.removeprefix("streamer_"), reading.value)
    shown = values["window_impressions"]
    for family in run.settings.families:
        if family in SUPPORTS and values[SUPPORTS[family]] != shown:
            raise AssertionError(f"{family}: not all of {shown} impressions are counted")
        if family == "coverage" and not 0.5 * ITEMS < values["window_items"] <= ITEMS:
            raise AssertionError(f"{values['window_items']} items of {ITEMS}")


def main(events: int, rounds: int) -> None:
    log = records(events)
    took = [[seconds(document, log) for document in SETTINGS.values()] for _ in range(rounds)]
    for at, name in enumerate(SETTINGS):
        ratio = statistics.median(each[at][0] / each[0][0] for each in took)
        spent = statistics.median(each[at][0] for each in took)
        kilobytes = took[0][at][1] / (events // limits.COMMIT_ROWS) / 1e3
        print(f"{name}: {spent:.2f} CPU s for {events:,} events, {ratio:.2f}; {kilobytes:.0f} kB")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=400_000)
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    main(arguments.events, arguments.rounds)
