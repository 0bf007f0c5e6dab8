"""Sums, means and quantiles of ratios beside NumPy's, of values of several sizes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np

from streamer.settings.load import parse
from streamer.sources.line_batch import Line
from streamer.sources.replay import Replay
from tests.conformance.cases import START_MS

N = 4000
QUANTILES = {"0.5": 0.5, "0.9": 0.9, "0.99": 0.99}
FUNCTIONS = {
    "window_ratio_numerator": "sum",
    "ratio": "mean",
    **{
        f'ratio_quantile{{quantile="{label}"}}': f'quantile({q}, method="inverted_cdf")'
        for label, q in QUANTILES.items()
    },
}
"""Metric → NumPy's function."""


@dataclass(frozen=True)
class Values:
    """What impressions carry; ``name``: of the field and the ratio."""

    name: str
    values: tuple[float, ...]


@cache
def cases() -> tuple[Values, ...]:
    """Latencies with a long tail, margins below and above 0, shares near 0."""
    dice = Random("custom")
    return (
        Values("latency", tuple(dice.lognormvariate(4, 1) for _ in range(N))),
        Values("margin", tuple(round(dice.gauss(2, 9), 2) for _ in range(N))),
        Values("share", tuple(dice.random() ** 2 for _ in range(N))),
    )


def _log() -> Iterator[Line]:
    """Impressions one by one, each with a value of every case."""
    for number in range(N):
        at_ms = START_MS + number
        event = {"ts": at_ms, "user_id": f"u{number % 50}", "item_id": "a"}
        event |= {of.name: of.values[number] for of in cases()}
        yield "impressions", at_ms, json.dumps(event).encode()


@cache
def readings() -> dict[tuple[str, str], float]:
    """What streamer reads, by metric and case."""
    ratios = [
        {
            "name": of.name,
            "numerator": {"kind": "impressions", "field": of.name},
            "denominator": {"kind": "impressions"},
            "quantiles": True,
        }
        for of in cases()
    ]
    settings = {"dimensions": [], "windows": {"lengths": ["1h"]}, "ratios": ratios}
    replay = Replay(parse(settings))
    replay.feed(list(_log()))
    replay.finish()
    found = {}
    for r in replay.readout().readings:
        if "ratio" in r.labels:
            quantile = r.labels.get("quantile")
            label = f'{{quantile="{quantile}"}}' if quantile else ""
            found[r.name.removeprefix("streamer_") + label, r.labels["ratio"]] = r.value
    return found


def theirs(metric: str, of: Values) -> float:
    """NumPy's value of a case."""
    if metric == "window_ratio_numerator":
        return float(np.sum(of.values))
    if metric == "ratio":
        return float(np.mean(of.values))
    share = QUANTILES[metric.split('"')[1]]
    return float(np.quantile(of.values, share, method="inverted_cdf"))


def apart(metric: str, of: Values) -> float:
    """The relative difference."""
    expected = theirs(metric, of)
    return abs(readings()[metric, of.name] - expected) / abs(expected)
