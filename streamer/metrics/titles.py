"""What metrics are called, and how their values are written, where they are shown to people."""

from __future__ import annotations

from streamer.metrics.definition import Form, Metric
from streamer.metrics.per_user import BY_LABEL, SLATE_FAMILIES
from streamer.metrics.ratios import NAMED

_SLATES = {each.name: each for family in SLATE_FAMILIES.values() for each in family.values}
_WORDS = {"ctr": "CTR", "cvr": "CVR", "ips": "IPS", "snips": "SNIPS", "coec": "COEC"}


def title_of(metric: Metric) -> str:
    """A metric in words.

    >>> from streamer.metrics.catalogue import FAMILIES
    >>> named = {metric.name: metric for family in FAMILIES for metric in family.metrics}
    >>> title_of(named["ctr_ratio"]), title_of(named["window_users"])
    ('Click-through rate', 'Users')
    """
    if declared := NAMED.get(metric.name) or BY_LABEL.get(metric.name) or _SLATES.get(metric.name):
        return declared.title
    text = metric.name.removeprefix("window_")
    for suffix in ("_ratio", "_seconds"):
        text = text.removesuffix(suffix)
    words = [_WORDS.get(word, word) for word in text.split("_")]
    return words[0][:1].upper() + " ".join(words)[1:]


def form_of(metric: Metric) -> Form:
    """How its values are written."""
    if declared := NAMED.get(metric.name) or _SLATES.get(metric.name):
        return declared.form
    if metric.unit == "seconds":
        return "seconds"
    return "percent" if metric.unit == "ratio" else "number"
