"""What a caller asks for, checked: a metric, a window, dimensions, a time. What there is not is an
error that says what there is."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import SupportsIndex

from streamer.errors import UsageError
from streamer.metrics.catalogue import PREFIX
from streamer.metrics.compared_metrics import known_names
from streamer.settings.file_window import widest
from streamer.settings.labels import OF_READINGS
from streamer.settings.model import Settings
from streamer.settings.names import nearest

Names = str | Sequence[str] | None
"""One name, several, or none."""
Time = datetime.datetime | str | int
"""A time with its zone, RFC 3339 text, or epoch milliseconds."""
_COLUMNS = {"time", "start", "end", "value", "low", "high", "support", "is_partial"}
"""Columns of tables besides labels."""
_SUFFIXES = ("", "_ratio", "_seconds")


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """A metric by its full name without prefix, and the labels that were asked for; None: all."""

    name: str | None
    window: str
    by: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    def by_its_labels(self, dimensions: Sequence[str]) -> MetricQuery:
        """The same by those dimensions, too, of which one value is asked for."""
        by = tuple(name for name in dimensions if name in self.by or name in self.labels)
        return replace(self, by=by)


def query_of(
    settings: Settings,
    known: Collection[str],
    name: str | None,
    by: Names,
    window: str | None,
    labels: Mapping[str, object],
) -> MetricQuery:
    """UsageError where there is no such metric, window, dimension or label. ``known``: the names
    of all metrics, without prefix."""
    chosen = {label: str(value) for label, value in labels.items()}
    dimensions = settings.dimension_names
    for label in chosen:
        _require("label", label, [*OF_READINGS, *dimensions])
    if name is not None:
        name, cutoff = _named(name, known)
        chosen |= cutoff
    window = widest(settings) if window is None else str(window)
    _require("window", window, settings.windows.lengths)
    split = names_of(by)
    for dimension in split:
        _require("dimension", dimension, dimensions)
    for name_of_column in {*split, *chosen} & _COLUMNS:
        raise UsageError(
            f"the dimension {name_of_column!r} is called like a column of tables: rename it in "
            "the setting dimensions"
        )
    return MetricQuery(name, window, tuple(d for d in dimensions if d in split), chosen)


def names_of(names: Names) -> list[str]:
    """
    >>> names_of(None), names_of("variant"), names_of(("variant", "surface"))
    ([], ['variant'], ['variant', 'surface'])
    """
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)


def _named(text: str, known: Collection[str]) -> tuple[str, dict[str, str]]:
    """The full name of a metric, and the cut-off behind ``@``.

    >>> _named("ndcg@10", ["ctr_ratio", "ndcg_ratio"])
    ('ndcg_ratio', {'k': '10'})
    """
    base, at, cutoff = text.removeprefix(PREFIX).partition("@")
    labels = {"k": cutoff} if at else {}
    for suffix in _SUFFIXES:
        if base + suffix in known:
            return base + suffix, labels
    shortened = {name.removesuffix("_ratio"): name for name in known}
    close = nearest(base, [*known, *shortened])
    hint = f"did you mean {close!r}?" if close else "metrics() lists what there is"
    raise UsageError(f"no metric {text!r}: {hint}")


def _require(what: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        close = nearest(name, names)
        there = f"did you mean {close!r}?" if close else f"there are {', '.join(names) or 'none'}"
        raise UsageError(f"no {what} {name!r}: {there}")


def compared_names(metrics: str | Sequence[str]) -> list[str]:
    """The full names of metrics of experiments, by short ones, too.

    >>> compared_names("ctr"), compared_names(["ndcg@10", "clicks_per_user"])
    (['ctr_ratio'], ['ndcg_ratio@10', 'clicks_per_user'])
    """
    known = {name.partition("@")[0] for name in known_names()}
    found = list[str]()
    for text in names_of(metrics):
        base, at, rest = text.removeprefix(PREFIX).partition("@")
        name = next((base + suffix for suffix in _SUFFIXES if base + suffix in known), None)
        if name is None:
            close = nearest(base, known)
            there = f"did you mean {close!r}?" if close else f"there are {', '.join(sorted(known))}"
            raise UsageError(f"no metric {text!r} of experiments: {there}")
        found.append(name + at + rest)
    return found


def epoch_ms(at: object) -> int:
    """Epoch milliseconds of a time; UsageError where it has no zone, or is none.

    >>> epoch_ms("2026-01-01T00:00:00Z"), epoch_ms(5)
    (1767225600000, 5)
    """
    if isinstance(at, SupportsIndex):  # also integers of numpy
        return index(at)
    if isinstance(at, str):
        try:
            at = datetime.datetime.fromisoformat(at)
        except ValueError:
            raise UsageError(f"at = {at!r}: not a time; write it like 2026-01-31T12:00Z") from None
    if not isinstance(at, datetime.datetime):
        raise UsageError(
            f"at = {at!r} is {type(at).__name__}: give a datetime with its zone, a text like "
            "2026-01-31T12:00Z, or epoch milliseconds as an integer"
        )
    if at.tzinfo is None:
        raise UsageError(f"at = {at.isoformat()!r}: has no time zone; add one, such as Z for UTC")
    return round(at.timestamp() * 1000)


def time_of(at_ms: int) -> datetime.datetime:
    """A time of UTC."""
    return datetime.datetime.fromtimestamp(at_ms / 1000, datetime.UTC)
