"""One metric explained: what ``streamer metrics NAME`` says where the name is that of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from streamer.metrics.catalogue import PREFIX
from streamer.metrics.definition import DIMENSIONS
from streamer.server.series import Entry
from streamer.settings.model import CONVENTIONS, Metrics
from streamer.testing import value_of

SYMBOLS = {
    r"\bk\b": "k: the cut-off, one of metrics.k",
    r"h\(k\)": "h(k): relevant items among the first k",
    r"h\(i\)": "h(i): relevant items among the first i",
    r"\br\b": "r: relevant items of the slate: those with feedback whose gain is above 0",
    r"\bi\b": "i: the rank of an item in the order shown, from 1",
    r"dcg\(k\)": "dcg(k): sum over the first k items of gain / log2(i + 1)",
    r"\bideal": "ideal: of the same items, the best first",
    r"\bweights?\b": "weight: probability that the policy shows the item / its propensity",
    r"\bq n\b": "q: the quantile; n: how many values",
}
"""Pattern in a formula -> what it stands for."""
LABELS = {
    "maturity": "provisional (all panes) or mature (those whose feedback can no longer come)",
    "k": "the cut-off, one of metrics.k (`all`: none)",
    "over": "the slates that the mean is taken over: all, or those that it can be computed of",
    "convention": "which definition",
    "feedback": "the kind of feedback: click, and those of metrics.feedback",
    "definition": "docs (users with an impression) or gorse-0.5 (users who gave the feedback)",
    "position": "1 to 50, or other",
    "policy": "the name of one of [[policies]]",
    "ratio": "the name of one of [[ratios]]",
    "composite": "the name of one of [[composites]]",
    "threshold": "one of metrics.thresholds",
    "quantile": "0.5, 0.9, 0.95 or 0.99",
    "dimension": "the name of a dimension",
    "bin": "the upper bound of the bin",
    "upto": "the upper bound of the class",
    "upto_seconds": "the upper bound of the class",
    "le": "the upper bound of the bucket",
    "window": "one of [windows]",
    "topic": "the name of a topic, or of a log where clusters have topics of one name",
    "reason": "why: docs/events.md, docs/experiments.md",
    "setting": "which list of the settings: dimensions, windows, …",
    "value": "what was added to it",
    "metrics": "which metrics: counts, joins, users, items, sessions, dwell, experiments, alerts",
    "cause": "what keeps them from being exact",
    "rollup": "its dimensions: variant x surface",
    "source": "the name of one of [[sources]]",
    "cluster": "the name of one of [clusters], or kafka",
    "format": "json, avro, protobuf, …",
    "experiment": "the name of one of [[experiments]]",
    "metric": "one of the metrics of the experiment",
    "arm": "a value of the dimension of the experiment",
    "interval": "fixed (holds at one look) or anytime (holds at every look)",
    "verdict": "better, worse, …: docs/experiments.md",
    "recommendation": "ship, wait, …: docs/experiments.md",
    "alert": "the name of one of [[alerts]]",
    DIMENSIONS: "one label for each dimension",
    "status": "what holds, in words",
    "worker": "host, process and a random part",
    "partition": "the number of a partition",
    "phase": "where the worker stands: owned once it counts",
    "table": "a table of rows that [limits] bounds",
    "prefix": "redis.prefix",
    "state": "pending, delivered, failed or dry run",
    "occasion": "harm, guardrail, loss, split, decided, withdrawn or no_data",
    "version": "that of streamer",
    "python": "the version of Python",
}
"""Label -> what its values are."""
FIELDS = {
    "traffic": "impressions, clicks and conversions; value, position if there is one",
    "engagement": "user_id; clicks with dwell_ms; sessions with session_id and action",
    "ranking": "impressions with items, or with request_id and position; feedback",
    "scoring": "impressions with items or request_id, and a score of each item; feedback",
    "calibration": "impressions with a score; clicks",
    "scores": "impressions with a score from 0 to 1; clicks",
    "coverage": "impressions with position",
    "diversity": "impressions with items or request_id, and item_category",
    "off_policy": "impressions with propensity and the field of the policy; clicks",
    "ratios": "events of the kinds in [[ratios]], with their fields",
    "intervals": "what the metric needs, and user_id",
    "composites": "what the parts need",
}
"""Family -> events and fields that it needs."""
_ITEMS = [
    {"item_id": "a", "score": 0.8, "item_category": "x", "propensity": 0.5, "p_new": 0.25},
    {"item_id": "b", "score": 0.4, "item_category": "y", "propensity": 0.5, "p_new": 0.75},
]
_SHOWN = {"type": "impression", "request_id": "r", "items": _ITEMS}
_CLICK = {"type": "click", "request_id": "r", "item_id": "b"}
EXAMPLES: tuple[tuple[dict[str, Any], ...], ...] = (
    (_SHOWN, {**_CLICK, "dwell_ms": 3000}),
    (_SHOWN | {"held_out": "b", "reference": ["b", "c"]}, _CLICK),
    (_CLICK, {"type": "conversion", "request_id": "r", "item_id": "b", "value": 12.5}),
    (
        {"type": "session", "session_id": "s", "action": "view"},
        {"type": "session", "session_id": "s", "action": "end"},
    ),
)
"""Two events each; a metric is shown of the first of them that gives it a value other
than 0."""


BESIDE = 11
"""Where the text of a line begins, behind what it is about."""


def page_of(entry: Entry, sources: dict[str, str]) -> str:
    """The text of one metric."""
    return "\n".join(_lines(entry, sources)) + "\n"


def _lines(entry: Entry, sources: dict[str, str]) -> Iterator[str]:
    name = entry.name.removeprefix(PREFIX)
    yield entry.name
    yield f"  {entry.doc}"
    yield f"formula    {entry.formula}"
    for pattern, meaning in SYMBOLS.items():
        if re.search(pattern, entry.formula):
            yield f"           {meaning}"
    yield f"unit       {entry.unit}"
    yield f"empty      {entry.empty}"
    for label in entry.labels:
        yield f"label      {label}: {LABELS.get(label, 'see docs/metrics.md')}"
        if label == "convention":
            others = ", ".join(CONVENTIONS[name.removesuffix("_stderr")])
            yield f"           the default has no label; others: {others}"
    if entry.source:
        yield f"source     {'; '.join(sources[key] for key in entry.source.split())}"
    if entry.family in FIELDS:
        yield f"needs      {FIELDS[entry.family]}"
        yield f"family     {entry.family}, {_switch(entry.family)}"
    example = example_of(name)
    if example is not None:
        events, value = example
        for i, event in enumerate(events):
            head = "" if i else "example"
            yield f"{head:<{BESIDE}}{msgspec.json.encode(event).decode()}"
        yield f"           {name} = {value:.6g}"


def _switch(family: str) -> str:
    if family in ("ratios", "composites"):
        return f"on with [[{family}]]"
    if family in Metrics().families:
        return "on by default (metrics.families)"
    return f'off by default: add "{family}" to metrics.families'


def example_of(name: str) -> tuple[tuple[dict[str, Any], ...], float] | None:
    """Two events and the value that they give; None for a metric that takes more."""
    every = [family for family in FIELDS if family not in ("ratios", "composites")]
    document = {
        "dimensions": [],
        "metrics": {"families": every},
        "policies": [{"name": "new", "propensity": "p_new"}],
    }
    valued = ((events, value_of(events, name, document)) for events in EXAMPLES)
    examples = [(events, value) for events, value in valued if value is not None]
    return next((pair for pair in examples if pair[1]), examples[0] if examples else None)
