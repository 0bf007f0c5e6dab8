"""Which values an alert's metric moved in, as the log says it: periods that are compared, the
settings under which the log is read again, and what is found, for all faces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from streamer.encoding.segments import ALL
from streamer.errors import SettingsError, UsageError
from streamer.metrics.compared_metrics import SLATE_FAMILIES, ComparedRatio
from streamer.query.alerts import AlertEvaluation
from streamer.settings import limits
from streamer.settings.alerts import Alert
from streamer.settings.durations import DAY_MS
from streamer.settings.experiments import ExperimentDefaults
from streamer.settings.model import Dimension, Settings, WindowSettings
from streamer.settings.names import nearest
from streamer.settings.validation import validate
from streamer.state.partition import Partition
from streamer.stats.alerting.crossings import RatioRows, Search

_WEEK, _SATURDAY = 7, 5


class Period(NamedTuple):
    """From when on, and up to when (epoch ms)."""

    begin_ms: int
    end_ms: int

    def earlier(self, days: int) -> Period:
        """The same time some days before."""
        return Period(self.begin_ms - days * DAY_MS, self.end_ms - days * DAY_MS)


def incident(evaluation: AlertEvaluation) -> Period:
    """What an alert's status says now: the window that it judges, or all since the one that the
    window is compared with."""
    last = evaluation.newest - limits.PANES_OF_ALERTS
    if evaluation.alert.baseline == "before":
        last = evaluation.base_of((ALL,) * len(evaluation.panes.shown))
    return Period((last + 1) * evaluation.pane_ms, evaluation.mature_ms)


def command_of(alert: Alert, now: Period) -> str:
    """What reads the log again for an incident."""
    begin, end = (
        datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")[:19] for ms in now
    )
    return f"streamer why {alert.name} --from {begin} --to {end}"


def comparisons(alert: Alert, now: Period) -> Iterator[tuple[str, Period]]:
    """What an incident is compared with, in words and as a period: as the alert says, then what
    stands in where the log does not hold that any more."""
    if alert.baseline == "before":
        yield "the window before", Period(now.begin_ms - alert.window_ms, now.begin_ms)
        return
    days = max(1, -(-(now.end_ms - now.begin_ms) // DAY_MS))
    day = now.earlier(days)
    if _is_weekend(now) != _is_weekend(day):
        yield "the same time a week before", now.earlier(-(-days // _WEEK) * _WEEK)
    yield "the same time the day before" if days == 1 else f"the same time {days} days before", day


def _is_weekend(period: Period) -> bool:
    return datetime.fromtimestamp(period.begin_ms / 1000, UTC).weekday() >= _SATURDAY


def alert_of(settings: Settings, name: str) -> Alert:
    """The alert of a name; UsageError where there is none."""
    known = {alert.name: alert for alert in settings.alerts}
    if name in known:
        return known[name]
    close = nearest(name, known)
    names = f"did you mean {close!r}?" if close else f"the settings have {', '.join(known)}"
    raise UsageError(f"no alert {name!r}; {names if known else 'the settings have none'}")


def ratio_of(alert: Alert, ratios: Mapping[str, ComparedRatio]) -> ComparedRatio:
    """The ratio of an alert; UsageError where its metric is not one of sums over events."""
    ratio = ratios[alert.metric]
    if ratio.parts or ratio.percentile is not None or ratio.below is None:
        raise UsageError(
            f"alert {alert.name!r}: {alert.metric!r} has no numerator and denominator that events "
            "add to; set an alert on one of the ratios it is made of, and ask why of that"
        )
    return ratio


def horizon_ms(settings: Settings, ratio: ComparedRatio) -> int:
    """How long after an impression events may add to a ratio."""
    join = settings.attribution
    names = " ".join(ratio.sums)
    is_late = any(part in names for part in ("conversion", "value"))
    return join.conversion_ms if is_late or ratio.name.startswith("ratio@") else join.click_ms


def recording(settings: Settings, alert: Alert, paths: Sequence[str]) -> Settings:
    """Settings under which the log is read for one alert: nothing else is counted, and all values
    of its dimensions are kept, as far as there is room; ``paths``: of fields that are dimensions
    besides."""
    base = alert.metric.partition("@")[0].partition(".")[0]
    families = tuple(
        name
        for name in settings.metrics.families
        if name in SLATE_FAMILIES and base in {m.name for m in SLATE_FAMILIES[name].values}
    )
    metrics = replace(settings.metrics, families=families, rollups=((),), detailed=None, hide=())
    most = limits.MAX_DIMENSION_VALUES
    settings = replace(
        settings,
        dimensions=tuple(replace(d, max_values=most) for d in settings.dimensions),
        windows=WindowSettings(lengths=settings.windows.lengths[-1:]),
        metrics=metrics,
        items=type(settings.items)(),
        alerts=(replace(alert, segments=()),),
        composites=(),
        ratios=tuple(each for each in settings.ratios if alert.metric.endswith(f"@{each.name}")),
        experiments=(),
        experiments_defaults=ExperimentDefaults(),
    )
    for path in paths:
        settings = _with_field(settings, path)
    if not settings.dimensions:
        raise UsageError(
            "there are no dimensions to look into: add [[dimensions]], or --field PATH"
        )
    validate(settings)
    return settings


def _with_field(settings: Settings, path: str) -> Settings:
    """The settings with a field of events as one more dimension."""
    name = re.sub(r"\W+", "_", path, flags=re.ASCII).strip("_")
    if name in settings.dimension_names:
        raise UsageError(f"--field {path}: the settings have a dimension {name!r} already")
    own = Dimension(name=name, max_values=limits.MAX_DIMENSION_VALUES)
    settings = replace(settings, dimensions=(*settings.dimensions, own))
    if settings.sources:
        sources = (replace(s, fields={**s.fields, name: path}) for s in settings.sources)
        return replace(settings, sources=tuple(sources))
    if not re.fullmatch(r"[^.\[\]]+", path):
        raise SettingsError(
            f"--field {path}: events of this shape have their fields at the top; name one of "
            "these, or describe the records in [[sources]]"
        )
    fields = {**settings.events.fields, name: path} if name != path else settings.events.fields
    return replace(settings, events=replace(settings.events, fields=fields))


class Causes(Struct, frozen=True):
    """What the log says of an incident. ``note``: why it is not compared with what the alert is."""

    alert: str
    metric: str
    title: str
    form: str
    now: Period
    then: Period
    compared: str
    note: str
    search: Search


class ComparedPeriods(NamedTuple):
    """What is compared, in words and as periods; ``note``: why that, where the alert says
    otherwise."""

    now: Period
    then: Period
    words: str
    note: str = ""


def compared_with(alert: Alert, now: Period, retained_ms: int) -> ComparedPeriods:
    """What an incident is compared with; ``retained_ms``: what is older has left the log. A pane
    may be missing. UsageError where it holds nothing to compare with."""
    wanted = list(comparisons(alert, now))
    pane_ms = alert.window_ms // limits.PANES_OF_ALERTS
    for words, then in wanted:
        if then.begin_ms >= retained_ms - pane_ms:
            is_first = words == wanted[0][0]
            note = "" if is_first else f"the log does not hold {wanted[0][0]} any more"
            return ComparedPeriods(now, then, words, note)
    begin, least = (
        datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")[:19]
        for ms in (retained_ms, wanted[-1][1].begin_ms)
    )
    raise UsageError(
        f"the log begins at {begin} UTC, and {wanted[-1][0]} at {least}: name a later time with "
        "--from, or keep records for longer"
    )


def rows_of(partition: Partition, unit: int, rows: RatioRows | None = None) -> RatioRows:
    """The rows that a partition recorded, added to those of others. ``unit``: how many of the
    numerator are 1."""
    codes, person, is_now, (x, y), bits = partition.core.take_ratio_rows()
    names = partition.settings.dimension_names
    texts = [each["texts"] for each in partition.core.dimensions()["values"]][: len(names)]
    own = RatioRows(names, texts, codes, person, is_now, x / unit, y, bits)
    if rows is None:
        known = [each[:2] for each in texts]
        empty = [column[:0] for column in codes]
        rows = RatioRows(names, known, empty, person[:0], is_now[:0], x[:0], y[:0], bits)
    rows.extend(own, limits.MAX_RATIO_ROWS)
    return rows
