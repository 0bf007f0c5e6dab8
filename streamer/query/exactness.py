"""What is not exact, by metrics and cause.

All that is counted is exact until a bound is hit, a record is lost or a topic cannot be read. Most
of these concern some metrics only: a sample of items says nothing against rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamer.ingest.keying import topics_not_by_user
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.counters import Counts, added
from streamer.state.snapshot import Header

COUNTS = "counts"
"""Counts, and so all that is made of them."""
JOINS = "joins"
"""Attributed feedback, and metrics of slates."""
_IMPRESSIONS_LEFT = tuple(f"evicted_early.{of}" for of in ("impressions", "retained", "probes"))
"""Counters of impressions that left memory before their time."""
_OR_MEMORY = " or limits.worker_memory_mb"


@dataclass(frozen=True)
class ExactnessInputs:
    """What decides how exact the readings are. ``keyed``: log → whether its topic is keyed by user;
    ``item_samples``: window → the share of items that is counted; ``has_mixed_users``: whether the
    users of some segments are not known; ``is_unread``: whether records that should count are not
    read."""

    settings: Settings
    headers: Sequence[Header]
    keyed: Mapping[str, bool] = field(default_factory=dict)
    item_samples: Mapping[str, float] = field(default_factory=dict)
    has_mixed_users: bool = False
    is_unread: bool = False


def rows_left_early(counters: Sequence[Counts]) -> int:
    """Impressions and feedback of all partitions that left memory before their time."""
    return sum(added(name, counters) for name in (*_IMPRESSIONS_LEFT, "evicted_early.feedback"))


_Holds = Callable[[ExactnessInputs], bool]


@dataclass(frozen=True)
class Inexact:
    """Metrics that are not exact, the cause in one word, and for people."""

    metrics: str
    cause: str
    text: str

    @property
    def is_of_all(self) -> bool:
        """Whether it concerns counts and joins, of which nearly everything is made."""
        return self.metrics in (COUNTS, JOINS)

    @property
    def sentence(self) -> str:
        """What is not exact, and why."""
        whose = self.metrics.capitalize() if self.is_of_all else f"Metrics of {self.metrics}"
        return f"{whose} are not exact: {self.text}."


@dataclass(frozen=True)
class _Cause:
    metrics: str
    name: str
    text: str
    holds: _Holds


def inexact(inputs: ExactnessInputs) -> list[Inexact]:
    """All that is not exact, those that concern the most first."""
    return [Inexact(c.metrics, c.name, c.text) for c in _CAUSES if c.holds(inputs)]


def _counted(*names: str) -> _Holds:
    """Whether a partition counted any of it."""
    return lambda inputs: any(h.counters.get(name) for h in inputs.headers for name in names)


def _bound(metrics: str, name: str, what: str, setting: str, *counters: str) -> _Cause:
    text = f"{what}: limits.{setting} was reached; raise it, and start anew to be exact again"
    return _Cause(metrics, name, text, _counted(*counters or (f"evicted_early.{name}",)))


def _any_topic(
    holds: Callable[[ExactnessInputs], Iterator[int]],
) -> _Holds:
    return lambda inputs: any(holds(inputs))


_CAUSES = (
    _Cause(
        *(COUNTS, "unread_topics"),
        "records of some topics are not read: /readyz names them and the reason",
        lambda inputs: inputs.is_unread,
    ),
    _Cause(
        *(COUNTS, "lost_records"),
        "Kafka deleted records before they were read, or records cannot be read: "
        "streamer_lost_records_total names the topic",
        _any_topic(lambda inputs: (t.lost for h in inputs.headers for t in h.topics.values())),
    ),
    _Cause(
        *(COUNTS, "log_restarts"),
        "a topic was truncated or recreated after it was read: its earlier records are counted,"
        " too",
        _any_topic(lambda inputs: (t.restarts for h in inputs.headers for t in h.topics.values())),
    ),
    _bound(COUNTS, "event_ids", "copies of old events may count twice", f"event_ids{_OR_MEMORY}"),
    _bound(
        *(COUNTS, "segments", "a rollup of several dimensions has `other` for some segments"),
        "segments",
        "segments_overflowed",
    ),
    _Cause(
        *(JOINS, "topics_not_by_user"),
        "events of one user are on several partition numbers: key all topics by user, with one "
        "partitioner",
        lambda inputs: bool(topics_not_by_user(inputs.settings, inputs.keyed)),
    ),
    _Cause(
        *(JOINS, "join_gap"),
        "records of an idle topic were behind its clock, which other topics had advanced",
        _counted("join_gap"),
    ),
    _Cause(
        *(JOINS, "settled_moved"),
        "request ids came back for other slates: settled feedback moved to another segment, and"
        " totals do not follow",
        _counted("settled_moved"),
    ),
    _bound(
        JOINS,
        "impressions",
        "feedback may have missed its impression",
        f"open_impressions{_OR_MEMORY}",
        *_IMPRESSIONS_LEFT,
    ),
    _Cause(
        *(JOINS, "feedback"),
        "feedback may have missed its impression, or conversions their feedback: there was more of "
        f"it than limits.open_feedback{_OR_MEMORY} let stay, or than "
        f"{limits.PAIR_FEEDBACK} of one person on one item",
        _counted("evicted_early.feedback"),
    ),
    _bound(
        "sessions", "sessions", "some sessions are counted in parts", f"open_sessions{_OR_MEMORY}"
    ),
    _bound("dwell", "viewings", "some viewings are counted in parts", f"open_sessions{_OR_MEMORY}"),
    _bound("users", "user_items", "some users are left out", "user_items", "dropped_user_rows"),
    _Cause(
        *("users", "user_sample"),
        "they are computed from a sample of the users (streamer_user_sample_ratio): "
        f"limits.user_items{_OR_MEMORY} was reached",
        _counted("sample_bits"),
    ),
    _Cause(
        *("users", "kept_values"),
        "some of dimension value `other` are absent, as partitions keep different values of a "
        "dimension: raise its max_values, or name its values",
        lambda inputs: inputs.has_mixed_users,
    ),
    _Cause(
        *("items", "item_sample"),
        "they are computed from a sample of the items (streamer_item_sample_ratio): limits.items "
        "was reached",
        lambda inputs: any(ratio < 1 for ratio in inputs.item_samples.values()),
    ),
    _Cause(
        *("items", "item_labels"),
        "some values of dimensions are counted as `other`: a rollup in metrics.detailed has too"
        " many combinations of values for counts of items; remove it",
        _counted("full_item_counts"),
    ),
    _bound("experiments", "user_days", "some users are left out", "user_days", "dropped_day_rows"),
    _Cause(
        *("experiments", "user_day_sample"),
        f"they are computed from a sample of the users: limits.user_days{_OR_MEMORY} was reached",
        _counted("day_sample_bits"),
    ),
    _Cause(
        *("experiments", "found_experiments"),
        "events name more experiments or arms, which settings do not name, than there is room for: "
        "declare the true ones, or raise experiments_defaults.max_found",
        _counted("left_out_experiments"),
    ),
    _Cause(
        *("alerts", "alert_segments"),
        "some segments are not watched: there are too many for one alert; watch fewer dimensions",
        _counted("full_alert_series"),
    ),
)
