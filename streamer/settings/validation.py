"""Rules of the settings that types cannot say: bounds, and rules across keys."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from streamer.errors import SettingsError
from streamer.settings import limits
from streamer.settings.actions import validate_actions
from streamer.settings.durations import pane_length_ms, short
from streamer.settings.event_rules import validate_events
from streamer.settings.experiment_rules import require, validate_direction, validate_experiments
from streamer.settings.labels import NAME, VALUE_RULE, is_value, validate_names
from streamer.settings.model import CONVENTIONS, LOG_FORMATS, LOG_LEVELS
from streamer.settings.own_metric_rules import (
    validate_composites,
    validate_policies,
    validate_ratios,
)
from streamer.settings.redis_url import validate_url
from streamer.settings.source_rules import validate_clusters, validate_sources

if TYPE_CHECKING:
    from streamer.settings.alerts import Alert
    from streamer.settings.limits import Limits
    from streamer.settings.model import ExporterSettings, Kafka, Metrics, Settings

_HOST = re.compile(rf"^[A-Za-z0-9_.-]{{1,{limits.MAX_HOST_CHARS}}}\Z")


def validate(s: Settings) -> None:
    """Raise SettingsError, naming the key, at the first value that cannot be used."""
    _validate_dimensions(s)
    validate_policies(s)
    validate_ratios(s)
    validate_events(s)
    validate_sources(s)
    validate_clusters(s)
    _validate_windows(s)
    validate_composites(s)
    _ = s.attribution.click_ms, s.attribution.conversion_ms, s.attribution.session_gap_ms
    require(
        s.attribution.click_ms <= s.attribution.conversion_ms,
        f"attribution.click = {s.attribution.click!r} is longer than "
        f"attribution.conversion = {s.attribution.conversion!r}",
    )
    _ = s.time.max_lateness_ms, s.time.max_skew_ms
    _ = s.time.dedup_horizon_ms, s.time.conversion_dedup_horizon_ms
    for key, ms, most_ms in (
        ("time.max_skew", s.time.max_skew_ms, limits.MAX_SKEW_MS),
        ("attribution.session_gap", s.attribution.session_gap_ms, limits.MAX_SESSION_GAP_MS),
    ):
        require(ms <= most_ms, f"{key} = {ms} ms: must be at most {most_ms}")
    require(
        len(s.feedback_kinds) <= limits.MAX_FEEDBACK_KINDS,
        f"metrics.feedback has {len(s.feedback_kinds)} kinds; at most {limits.MAX_FEEDBACK_KINDS}",
    )
    for kind in s.metrics.feedback:
        require(
            re.match(limits.LABEL_PATTERN, kind) is not None and kind not in limits.RESERVED_LABELS,
            f"metrics.feedback.{kind}: 1 to 64 of A-Za-z0-9_.:- and not all or other",
        )
    _validate_ranking(s.metrics)
    _validate_items(s)
    validate_experiments(s)
    _validate_alerts(s)
    validate_actions(s.actions, tuple(e.name for e in s.experiments))
    _validate_limits(s.limits)
    require(0 <= s.exporter.port <= 65535, f"exporter.port = {s.exporter.port}: must be 0 to 65535")
    _validate_exporter(s.exporter)
    for key, known in (("level", LOG_LEVELS), ("format", LOG_FORMATS)):
        value = getattr(s.log, key)
        require(value in known, f"log.{key} = {value!r}: must be one of {', '.join(known)}")
    validate_url(s.redis.url)
    require(
        s.redis.password is None or s.redis.password_file is None,
        "redis.password and redis.password_file are both set: use one",
    )
    _validate_kafka(s.kafka)


def _validate_limits(bounds: Limits) -> None:
    for name in msgspec.structs.fields(bounds):
        value = getattr(bounds, name.name)
        require(value is None or value > 0, f"limits.{name.name} = {value}: must be positive")
    require(
        bounds.segments <= limits.MAX_SEGMENTS,
        f"limits.segments = {bounds.segments}: at most {limits.MAX_SEGMENTS}",
    )
    require(
        bounds.unit_values <= limits.MAX_USER_DAYS,
        f"limits.unit_values = {bounds.unit_values}: at most {limits.MAX_USER_DAYS}",
    )
    require(
        bounds.flush_ms <= limits.MAX_FLUSH_MS,
        f"limits.flush_ms = {bounds.flush_ms}: at most {limits.MAX_FLUSH_MS}",
    )


def _validate_items(s: Settings) -> None:
    names, items = s.dimension_names, s.items
    there = ", ".join(names) or "none"
    for key, dimensions in (("dimensions", items.dimensions), ("category", (items.category,))):
        for name in dimensions:
            require(
                name is None or name in names,
                f"items.{key}: {name!r} is none of the dimensions: {there}",
            )
    require(
        len(set(items.dimensions)) == len(items.dimensions),
        f"items.dimensions = {list(items.dimensions)}: each once",
    )
    lengths = s.windows.lengths
    require(
        0 < len(s.item_windows) == len(set(s.item_windows)) and set(s.item_windows) <= set(lengths),
        f"items.windows = {list(s.item_windows)}: some of windows.lengths, each once: "
        f"{', '.join(lengths)}",
    )
    needed = {"diversity", "engagement"} - set(s.metrics.families)
    require(
        not (items.pairs and needed),
        f"items.pairs = true: metrics.families lacks {', '.join(sorted(needed))}",
    )
    for key, value in (("catalog_size", items.catalog_size), ("users", items.users)):
        require(
            0 <= value <= limits.MAX_CATALOG,
            f"items.{key} = {value}: 0 to {limits.MAX_CATALOG}",
        )


def _validate_kafka(kafka: Kafka) -> None:
    keyed_by = kafka.keyed_by
    require(keyed_by in (None, "user"), f"kafka.keyed_by = {keyed_by!r}: must be 'user' or unset")
    names = list(kafka.topics.named.values())
    require(len(set(names)) == len(names), f"kafka.topics: {names} must be five different names")


def _validate_ranking(metrics: Metrics) -> None:
    require(
        0 < len(metrics.k) <= limits.MAX_K
        and len(set(metrics.k)) == len(metrics.k)
        and all(0 < k <= limits.MAX_CUTOFF for k in metrics.k),
        f"metrics.k = {list(metrics.k)}: 1 to {limits.MAX_K} different integers from 1 to "
        f"{limits.MAX_CUTOFF}",
    )
    at = metrics.thresholds
    require(
        len(metrics.visible) < 2 and all(map(len, metrics.visible.values())),
        f"metrics.visible = {metrics.visible}: one dimension, with some of its values",
    )
    require(
        metrics.most_visible <= limits.MAX_CUTOFF
        and all(k > 0 for some in metrics.visible.values() for k in some.values()),
        f"metrics.visible = {metrics.visible}: positions are 1 to {limits.MAX_CUTOFF}",
    )
    require(
        0 < len(at) <= limits.MAX_THRESHOLDS
        and all(0 <= t <= 1 for t in at)
        and all(low < high for low, high in pairwise(at)),
        f"metrics.thresholds = {list(at)}: 1 to {limits.MAX_THRESHOLDS} numbers from 0 to 1, "
        "ascending and different",
    )
    for kind, gain in metrics.feedback.items():
        require(
            0 <= gain <= limits.MAX_GAIN,
            f"metrics.feedback.{kind} = {gain}: a gain is 0 to {limits.MAX_GAIN:g}",
        )
    require(
        0 <= metrics.margin <= limits.MAX_SCORE,
        f"metrics.margin = {metrics.margin}: 0 to {limits.MAX_SCORE:g}",
    )
    for name, chosen in metrics.conventions.items():
        others = CONVENTIONS.get(name, ())
        require(
            bool(others),
            f"metrics.conventions.{name}: only {', '.join(CONVENTIONS)} have conventions",
        )
        require(
            set(chosen) <= set(others) and len(set(chosen)) == len(chosen),
            f"metrics.conventions.{name} = {list(chosen)}: must be of {list(others)}, each once",
        )
    require(
        "exponential" not in metrics.conventions.get("ndcg_ratio", ())
        or max(metrics.feedback.values(), default=0) <= limits.MAX_EXPONENTIAL_GAIN,
        f"metrics.conventions.ndcg_ratio = exponential needs gains of at most "
        f"{limits.MAX_EXPONENTIAL_GAIN:g}; see metrics.feedback",
    )


def _validate_alerts(s: Settings) -> None:
    validate_names("alerts", [alert.name for alert in s.alerts], limits.MAX_ALERTS, NAME)
    for i, a in enumerate(s.alerts):
        at = f"at alerts[{i}]"
        require(
            limits.MIN_ALERT_WINDOW_MS <= a.window_ms <= limits.MAX_ALERT_WINDOW_MS
            and limits.MAX_ALERT_WINDOW_MS % a.window_ms == 0,
            f"window = {a.window!r}: must be 10m to 24h and divide a day evenly; {at}",
        )
        dimensions = set(s.dimension_names)
        require(
            set(a.segments) <= dimensions and len(set(a.segments)) == len(a.segments),
            f"segments = {list(a.segments)}: dimensions are {list(s.dimension_names)}; {at}",
        )
        require(0 < a.drop < 1, f"drop = {a.drop}: above 0 and below 1; {at}")
        require(
            a.critical == 0 or a.drop <= a.critical < 1,
            f"critical = {a.critical}: 0 (nobody is called), or from drop to below 1; {at}",
        )
        require(
            a.severity in ("warning", "critical"),
            f"severity = {a.severity!r}: 'warning' or 'critical'; {at}",
        )
        validate_direction(a.direction, "", at)
        require(
            a.baseline in ("days", "before"),
            f"baseline = {a.baseline!r}: 'days' or 'before'; {at}",
        )
        _validate_dates(a, at)
        require(
            0 <= a.traffic_drop < 1,
            f"traffic_drop = {a.traffic_drop}: must be 0 (no such alert) to below 1; {at}",
        )
        require(
            0 <= a.traffic_rise < math.inf,
            f"traffic_rise = {a.traffic_rise}: must be 0 (no such alert) or above; {at}",
        )
        require(0.5 < a.level < 1, f"level = {a.level}: above 0.5 and below 1; {at}")
        require(a.for_ms > 0, f"for = {a.for_!r}: above 0; {at}")
        require(
            a.for_ms < a.lasts_ms,
            f"for = {a.for_!r}: can never fire: with baseline = {a.baseline!r} a change is the "
            f"baseline after {short(a.lasts_ms)}: write a shorter `for`; {at}",
        )


def _validate_dates(alert: Alert, at: str) -> None:
    said = f"reference = {alert.reference!r}: 'first', 'none' or a date like 2026-11-02; {at}"
    try:
        day = alert.reference_day
    except ValueError:
        raise SettingsError(said) from None
    require(day is None or day >= 0, said)
    try:
        _ = alert.holiday_days
    except ValueError:
        days = f"holidays = {list(alert.holidays)}: must be dates like 2026-12-25; {at}"
        raise SettingsError(days) from None


def _validate_exporter(exporter: ExporterSettings) -> None:
    require(
        len(exporter.hosts) <= limits.MAX_HOSTS,
        f"exporter.hosts has {len(exporter.hosts)} names; at most {limits.MAX_HOSTS}",
    )
    for name in exporter.hosts:
        require(
            _HOST.match(name) is not None,
            f"exporter.hosts: {name[: limits.MAX_FOUND_CHARS]!r} is not a host name: write it like "
            "metrics.example.org, without a scheme, a port or a path",
        )
    require(
        exporter.tls_keyfile is None or exporter.tls_certfile is not None,
        "exporter.tls_keyfile is set without exporter.tls_certfile",
    )
    require(
        exporter.annotations_token is None or exporter.annotations_token_file is None,
        "exporter has both annotations_token and annotations_token_file: keep one",
    )
    require(
        exporter.annotations_token is None or len(exporter.annotations_token) >= 8,
        "exporter.annotations_token is shorter than 8 characters",
    )
    passwords = (exporter.password is not None) + (exporter.password_file is not None)
    require(
        passwords == (exporter.username is not None),
        "exporter.username needs exactly one of exporter.password_file and exporter.password",
    )
    require(
        exporter.username is None or ":" not in exporter.username,
        f"exporter.username = {exporter.username!r}: basic authentication allows no colon",
    )


def _validate_dimensions(s: Settings) -> None:
    names = s.dimension_names
    require(
        len(names) <= limits.MAX_DIMENSIONS,
        f"{len(names)} dimensions; at most {limits.MAX_DIMENSIONS}",
    )
    require(len(set(names)) == len(names), f"dimensions: a name appears twice in {list(names)}")
    for i, d in enumerate(s.dimensions):
        at = f"at dimensions[{i}]"
        require(
            0 <= d.max_values <= limits.MAX_DIMENSION_VALUES,
            f"max_values = {d.max_values}: 0 to {limits.MAX_DIMENSION_VALUES}; {at}",
        )
        for value in d.values:
            require(is_value(value), f"bad value {value!r}: {VALUE_RULE}; {at}")
    require(len(s.rollups) <= limits.MAX_ROLLUPS, f"more than {limits.MAX_ROLLUPS} rollups")
    for name, positions in s.metrics.visible.items():
        require(name in names, f"metrics.visible names {name!r}; dimensions are {list(names)}")
        for value in positions:
            require(is_value(value), f"metrics.visible.{name}: bad value {value!r}: {VALUE_RULE}")
    for rollup in s.rollups:
        for name in rollup:
            require(name in names, f"metrics.rollups names {name!r}; dimensions are {list(names)}")
    rollups = [set(rollup) for rollup in s.rollups]
    for rollup in s.detailed:
        require(
            set(rollup) in rollups,
            f"metrics.detailed names {list(rollup)}, which is none of metrics.rollups = "
            f"{[list(names) for names in s.rollups]}; add it there as well",
        )


def _validate_windows(s: Settings) -> None:
    lengths = s.windows.lengths_ms
    require(
        0 < len(lengths) <= limits.MAX_WINDOWS and len(lengths) == len(s.windows.lengths),
        f"windows.lengths = {list(s.windows.lengths)}: 1 to {limits.MAX_WINDOWS} different ones",
    )
    for label, length_ms in lengths.items():
        pane_ms = pane_length_ms(length_ms)
        require(
            length_ms % pane_ms == 0
            and pane_ms % limits.PANE_STEP_MS == 0
            and limits.MIN_PANE_MS <= length_ms <= limits.MAX_WINDOW_MS,
            f"windows.lengths: {label!r} does not divide into panes of {pane_ms} ms; "
            "use whole seconds up to 60 s, above it multiples of 30 s, at most 31 d",
        )
