"""What streamer declares of its series, as a panel needs it: title, description, unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from grafana_foundation_sdk.models import units

from streamer.cli.metrics import entries
from streamer.metrics.catalogue import PREFIX
from streamer.server.lag import Standstill
from streamer.server.processor import Health, keyed_metric, log_metrics, processor_metrics
from streamer.settings.model import Settings
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader

_UNITS: dict[str, str] = {
    "ratio": units.PercentUnit,
    "seconds": units.Seconds,
    "epoch seconds": units.Seconds,
    "0 or 1": units.BoolYesNo,
}
_RATES: dict[str, str] = {"events": units.EventsPerSecond, "records": units.RecordsPerSecond}
_ABBREVIATIONS = frozenset(
    {
        *("ctr", "cvr", "coec", "ndcg", "mrr", "map", "mar", "arhr", "cg", "dcg", "fcp", "gauc"),
        *("bpr", "auc", "mse", "rmse", "mae"),
    }
)
_TITLES = {
    "coec_expected_clicks": "Expected clicks (COEC)",
    "ctr_attributed": "CTR, attributed",
    "ctr_attributed_clicked": "Impressions with an attributed click",
    "ctr_attributed_impressions": "Impressions (attributed CTR)",
    "ctr_position": "CTR by position",
    "cvr_attributed": "CVR, attributed",
    "cvr_attributed_clicked": "Clicked impressions",
    "cvr_attributed_converted": "Clicked impressions with an attributed conversion",
    "drift_day_before_impressions": "Impressions with a score, the day before",
    "drift_impressions": "Impressions with a score",
    "dwell_mean": "Mean dwell",
    "dwells": "Dwell times",
    "hit": "Hit ratio",
    "hit_sampled": "Hit ratio, sampled",
    "hit_users": "Users with a click",
    "identity_exact": "Numbers exact",
    "join_gap": "Join gaps",
    "ndcg_sampled": "NDCG, sampled",
    "position_clicks": "Clicks by position",
    "position_impressions": "Impressions by position",
    "positive_users": "Users with feedback",
    "session_length_mean": "Mean session length",
    "settled_moved": "Settled feedback moved",
    "source_info": "Sources",
    "topic_keyed_by_user": "Topics keyed by user",
    "unsettled": "Unsettled feedback",
    "user_hit": "User hit ratio",
    "users_behind": "Metrics of users behind",
}
"""Titles that a name does not make by itself, by the name without prefix and suffix."""
_SUFFIX = re.compile(r"_(ratio|seconds|total|records)$")


@dataclass(frozen=True)
class Declared:
    """A series of ``/metrics``: ``unit`` and ``rate_unit`` (of its growth) are Grafana's names."""

    name: str
    title: str
    description: str
    unit: str
    rate_unit: str
    labels: tuple[str, ...] = ()
    is_brief: bool = False
    """Whether it is shown in every rollup of one dimension."""


def declared() -> dict[str, Declared]:
    """Every series by its whole name: the catalogue's, and the processor's own."""
    return {d.name: d for d in (*_catalogue(), *_processor())}


def _catalogue() -> Iterator[Declared]:
    for entry in entries():
        text = f"{entry.doc}\n\nFormula: {entry.formula}. When empty: {entry.empty}."
        unit = _UNITS.get(entry.unit, units.Short)
        rate = _RATES.get(entry.unit, units.CountsPerSecond)
        yield Declared(
            entry.name, title_of(entry.name), text, unit, rate, entry.labels, bool(entry.brief)
        )


def _processor() -> Iterator[Declared]:
    families = [
        *processor_metrics(Reader(MemoryStore()), [], Health()),
        *log_metrics({}, Standstill()),
        keyed_metric(Settings(), {}),
    ]
    for family in families:
        name = family.name + ("_total" if family.type == "counter" else "")
        is_time = family.name.endswith("_seconds")
        unit = units.Seconds if is_time else units.Short
        text, rate = family.documentation, units.CountsPerSecond
        yield Declared(name, title_of(name), text, unit, rate)
    text = "Time the last readout took."
    name = f"{PREFIX}readout_seconds"
    yield Declared(name, title_of(name), text, units.Seconds, units.Seconds)


def title_of(name: str) -> str:
    """The title of a series: a declared one, or made of its name.

    >>> title_of("streamer_window_ctr_attributed_impressions"), title_of("streamer_dwell_seconds")
    ('Impressions (attributed CTR)', 'Dwell')
    """
    bare = _SUFFIX.sub("", name.removeprefix(PREFIX).removeprefix("window_"))
    if bare in _TITLES:
        return _TITLES[bare]
    words = [word.upper() if word in _ABBREVIATIONS else word for word in bare.split("_")]
    text = " ".join(words)
    return text[:1].upper() + text[1:]
