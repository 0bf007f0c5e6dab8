"""The spec of the core: settings, and which statistics the metrics need, said once.

A metric is declared in Python; the spec says where its sums stand and which values of slates
are wanted. Names that it does not know are an error at start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec

from streamer._core import FIELD_BOUNDS
from streamer.ingest.hash_key import HashKey
from streamer.ingest.mapping import mapped_layout, value_settings
from streamer.metrics import diversity, item_counts, ranking, scoring, slates
from streamer.metrics.alert_series import AlertSeries
from streamer.metrics.catalogue import Catalogue, Periods
from streamer.metrics.compared_metrics import ComparedMetrics, ExperimentMeasures
from streamer.metrics.layout import Layout, Stat
from streamer.metrics.rings import rings_of
from streamer.metrics.sums import core_sum
from streamer.settings import limits
from streamer.settings.event_fields import field_names
from streamer.settings.logs import Log
from streamer.settings.model import Settings
from streamer.settings.own_metrics import SIGNS, Condition, written
from streamer.settings.paths import path_of
from streamer.settings.sources import several
from streamer.stats.experiments.caps import ANY, Denominator, Quantile
from streamer.stats.experiments.trials import (
    AGES,
    CompiledExperiment,
    Exposure,
    Measure,
    Slots,
    Unit,
    wanted_days,
)

_ALWAYS: dict[str, Any] = {
    **{name: [] for name in ("rings", "statistics", "users_ms")},
    "items": {
        **{name: [] for name in ("rings_ms", "cutoffs_ms", "lists_ms")},
        **dict.fromkeys(("clicked_ms", "people_ms", "pairs_ms"), 0),
    },
}
_RECORD_LIMITS = (
    *("max_record_bytes", "max_depth", "max_refused_schemas", "max_event_ms", "min_seconds"),
    *("max_seconds", "max_id_bytes", "max_label_chars", "max_items"),
)
"""Bounds of any record."""
_FAMILIES = {"ranking": ranking.slate_metric, "scoring": scoring.slate_metric}


@dataclass(frozen=True)
class Counted:
    """Since when (ms of stream time) sums of experiments are counted, and since when
    exposures were first counted; 0: always. Rows that began at different times are told apart."""

    since_ms: Mapping[str, int] = field(default_factory=dict)
    first_ms: Mapping[str, int] = field(default_factory=dict)


def core_spec(
    settings: Settings,
    catalogue: Catalogue,
    key: HashKey,
    counted: Counted | None = None,
    since: Mapping[str, Any] = MappingProxyType({}),
    ranks: Mapping[str, int] | None = None,
) -> bytes:
    """JSON of what one partition of the core is made from. ``since``: from when on parts of panes
    are counted, where not always; ``ranks``: those of logs."""
    layout = catalogue.layout
    return msgspec.json.encode(
        {
            "hash_key": key,
            "records": records_spec(settings),
            "logs": _logs(settings, ranks_after(settings, {}) if ranks is None else ranks),
            **_times(settings),
            "feedback": _feedback(settings),
            "dimensions": _dimensions(settings),
            "limits": _bounds(settings),
            "rings": [
                {"pane_ms": ring.pane_ms, "panes": ring.panes} for ring in rings_of(settings)
            ],
            "day_before": catalogue.day_before.core_spec(),
            "since": {name: value for name, value in since.items() if name != "rollups"} or _ALWAYS,
            "rollups": _rollups(settings, catalogue, since.get("rollups", {})),
            "families": [family.name for family in catalogue.families],
            "statistics": [_statistic(settings, layout, stat) for stat in layout.stats],
            "items": _items(settings),
            "own_sums": _own_sums(settings),
            "slates": _slates(settings, catalogue),
            "alerts": _alerts(settings, catalogue),
            "experiments": _experiments(settings, catalogue, counted or Counted()),
        }
    )


def records_spec(settings: Settings) -> dict[str, Any]:
    """Where an event's fields stand in the records of each log, and their bounds."""
    policies = [
        {"propensity": p.propensity, "estimate": p.estimate, "positions": p.positions}
        for p in settings.policies
    ]
    of_policies = {"max_weight": settings.metrics.max_weight, "policies": policies}
    sources = [_source(settings, log) for log in settings.logs.values()]
    return {
        "sources": sources,
        "limits": {name: getattr(limits, name.upper()) for name in _RECORD_LIMITS},
        "bounds": {name: getattr(limits, name) for name in FIELD_BOUNDS},
        "policies": of_policies,
        "own": _own_fields(settings),
        "arms": [{"path": path, "steps": _own_steps(path)} for path in settings.arm_paths],
    }


def _own_fields(settings: Settings) -> dict[str, Any]:
    """Which fields of events are read, and what is asked of them."""
    of = settings.own_sums
    return {
        "amounts": [{"kind": kind, "field": field} for kind, field in of.amounts],
        "conditions": [
            {"of": {"kind": each.kind, "field": each.field}, "test": _test(each)}
            for each in of.conditions
        ],
        "of_joined": _bits(settings, {c for each in of.sums for c in each.joined}),
    }


def _test(of: Condition) -> dict[str, Any]:
    if of.bounds:
        return {"bounds": [{SIGNS[sign]: float(bound)} for sign, bound in of.bounds]}
    numbers = [x for x in of.values if isinstance(x, int | float) and not isinstance(x, bool)]
    texts = [written(x) for x in of.values if isinstance(x, str | bool)]
    return {"among": {"texts": texts, "numbers": [float(x) for x in numbers]}}


def _bits(settings: Settings, conditions: set[Condition]) -> int:
    every = settings.own_sums.conditions
    return sum(1 << every.index(condition) for condition in conditions)


def _own_sums(settings: Settings) -> list[dict[str, Any]]:
    """Which events add to own sums."""
    names, of = settings.dimension_names, settings.own_sums
    return [
        {
            **{"kind": each.kind, "is_of_lines": each.is_of_lines},
            "feedback": each.feedback and settings.feedback_kinds.index(each.feedback),
            "amount": None if each.field is None else of.amounts.index((each.kind, each.field)),
            "own": _bits(settings, {*each.own}),
            "joined": _bits(settings, {*each.joined}),
            "dimensions": [(names.index(name), values) for name, values in each.dimensions],
            "is_of_users": each.is_of_users,
        }
        for each in of.sums
    ]


def _own_steps(path: str) -> list[str]:
    """The names of a path in events in our shape; nothing where it has other steps."""
    steps = path_of(path)
    names = [step for step in steps if isinstance(step, str)]
    return names if len(names) == len(steps) else []


def _source(settings: Settings, log: Log) -> dict[str, Any]:
    """What the records of a log look like."""
    source = settings.read_sources[log.source]
    layout = {"mapped": mapped_layout(settings, source, log)}
    if source.is_own:
        layout = {"flat": _flat_layout(settings, *log.kinds)}
    return {
        "values": value_settings(source),
        "format": source.format,
        "layout": layout,
    }


def _flat_layout(settings: Settings, kind: str) -> dict[str, Any]:
    """Our own shape: fields stand at the top, and are read as they come."""
    names = settings.events.fields
    of_settings = (*settings.kept_fields, *settings.policy_fields)
    fields = (*field_names(kind), *of_settings, *settings.own_fields[kind])
    return {"kind": kind, "names": {ours: names[ours] for ours in fields if ours in names}}


def ranks_after(settings: Settings, before: Mapping[str, int]) -> dict[str, int]:
    """Log → its rank, by which ties between events of several topics are broken: what it was, and
    the next ones for logs that are new.

    >>> from streamer.settings.load import parse
    >>> web = {"kind": {"fixed": "click"}, "fields": {"ts": "at", "item_id": "id"}}
    >>> settings = parse({"sources": [{"topics": ["a", "b"], **web}]})
    >>> ranks_after(settings, {}), ranks_after(settings, {"b": 1, "c": 2})
    ({'a': 1, 'b': 2}, {'b': 1, 'c': 2, 'a': 3})
    """
    ranks = dict(before)
    for name in settings.logs:
        ranks.setdefault(name, 1 + max(ranks.values(), default=0))
    return ranks


def _logs(settings: Settings, ranks: Mapping[str, int]) -> list[dict[str, Any]]:
    return [
        {"name": log.name, "source": i, "rank": ranks[log.name], "kinds": log.kinds}
        for i, log in enumerate(settings.logs.values())
    ]


def _times(settings: Settings) -> dict[str, dict[str, int]]:
    time, join = settings.time, settings.attribution
    return {
        "time": {
            "max_lateness_ms": time.max_lateness_ms,
            "max_skew_ms": time.max_skew_ms,
            "dedup_horizon_ms": time.dedup_horizon_ms,
            "conversion_dedup_horizon_ms": time.conversion_dedup_horizon_ms,
        },
        "attribution": {
            "click_ms": join.click_ms,
            "conversion_ms": join.conversion_ms,
            "session_gap_ms": join.session_gap_ms,
            "feedback_horizon_ms": settings.feedback_horizon_ms,
        },
    }


def _feedback(settings: Settings) -> dict[str, Any]:
    gains = settings.metrics.feedback
    kinds = settings.feedback_kinds
    return {
        "kinds": kinds,
        "grades": [
            settings.gains.index(gain) + 1 if (gain := gains.get(kind, 0)) > 0 else 0
            for kind in (*kinds, "conversion")
        ],
        "user_kinds": len(settings.user_feedback_kinds),
        "counts_conversions_of_users": "conversion" in settings.user_feedback_kinds,
    }


def _dimensions(settings: Settings) -> list[dict[str, Any]]:
    """Fields of events whose values are kept."""
    dimensions = [
        {"name": d.name, "values": d.values, "max_values": d.max_values, "is_sampled": False}
        for d in settings.kept_dimensions
    ]
    most = settings.limits.unit_values
    units = [
        {"name": name, "values": (), "max_values": most, "is_sampled": True}
        for name in settings.unit_fields
    ]
    return dimensions + units


def _bounds(settings: Settings) -> dict[str, Any]:
    bounds = settings.limits
    return {
        "segments": bounds.segments,
        "open_impressions": bounds.open_impressions,
        "open_feedback": bounds.open_feedback,
        "pair_feedback": limits.PAIR_FEEDBACK,
        "open_sessions": bounds.open_sessions,
        "user_items": bounds.user_items,
        "user_days": bounds.user_days,
        "user_rows": limits.MAX_USER_ROWS,
        "event_ids": bounds.event_ids,
        "slate_items": limits.MAX_ITEMS,
        "rating": limits.MAX_RATING,
        "series_labels": limits.MAX_ALERT_LABELS,
        "inflated_bytes": limits.MAX_INFLATED_BYTES,
        "rejected": {
            "records": limits.REJECTED_RECORDS,
            "fetched_bytes_a_record": limits.FETCHED_BYTES_A_REJECTED_RECORD,
            "most_records": limits.MAX_REJECTED_RECORDS,
            "bytes": limits.REJECTED_BYTES,
            "bytes_a_fetched_byte": limits.REJECTED_BYTES_A_FETCHED_BYTE,
        },
    }


def _rollups(
    settings: Settings, catalogue: Catalogue, since: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """By which dimensions sums are kept, and which."""
    names = settings.dimension_names
    return [
        {
            "dimensions": [names.index(name) for name in rollup.dimensions],
            "kept": rollup.spans,
            "has_users": rollup.has_users,
            "since": since.get(rollup.key, []),
        }
        for rollup in catalogue.rollups
    ]


def _slates(settings: Settings, catalogue: Catalogue) -> dict[str, Any]:
    """The values of slates that metrics need."""
    names = [family.name for family in catalogue.families]
    return {
        "tables": slates.core_tables(settings.gains, settings.metrics.margin),
        "families": [_FAMILIES[name].core_spec(settings) for name in names if name in _FAMILIES],
        "visible": _visible(settings),
    }


def _visible(settings: Settings) -> dict[str, Any] | None:
    """How many positions people see."""
    for name, positions in settings.metrics.visible.items():
        at = settings.dimension_names.index(name)
        return {"dimension": at, "values": positions, "others": settings.metrics.k[0]}
    return None


def _items(settings: Settings) -> dict[str, Any]:
    """What is counted of items and lists."""
    category = settings.items.category
    return {
        "counts": item_counts.core_spec(settings),
        "has_lists": diversity.has_lists(settings),
        "category": None if category is None else settings.dimension_names.index(category),
    }


def _alerts(settings: Settings, catalogue: Catalogue) -> dict[str, Any]:
    measures = catalogue.alert_measures
    return {
        "sums": sums(settings, measures),
        "series": [_series(settings, series) for series in measures.series],
        "rows": None if catalogue.periods is None else _ratio_rows(catalogue, catalogue.periods),
    }


def _ratio_rows(catalogue: Catalogue, periods: Periods) -> dict[str, Any]:
    measures, (alert,) = catalogue.alert_measures, catalogue.settings.alerts
    measure = measures.measure(measures.ratios[alert.metric])
    return {"ratio": _ratio(measure), "periods": periods, "limit": limits.MAX_RATIO_ROWS}


def _ratio(measure: Measure) -> dict[str, Any]:
    places = {"above": measure.above, "below": measure.below, "high": measure.high}
    return {**places, "below_high": measure.below_high}


def _series(settings: Settings, series: AlertSeries) -> dict[str, Any]:
    names = settings.dimension_names
    return {
        "ratio": _ratio(series.measure),
        "dimensions": [i for i, name in enumerate(names) if name in series.dimensions],
        "rings": [{"pane_ms": ring.pane_ms, "panes": ring.panes} for ring in series.rings],
        "by_time_ms": series.pane_ms if series.is_by_time else None,
    }


def _statistic(settings: Settings, layout: Layout, stat: Stat) -> dict[str, Any]:
    """Where a statistic stands, and the sums that fill it; values of slates fill their own."""
    filled = () if stat.name in _FAMILIES else stat.filled
    return {
        **{"name": stat.name, "at": layout.at[stat.name], "width": stat.width},
        "of": [{"sum": core_sum(name, settings), "by": by} for name, by in filled],
        **{"in_windows": stat.in_windows, "in_totals": stat.in_totals},
    }


def sums(settings: Settings, measures: ComparedMetrics) -> list[Any]:
    """What is added up for users, as the core names it."""
    return [_sum(settings, measures, name) for name in measures.sums]


def _sum(settings: Settings, measures: ComparedMetrics, name: str) -> dict[str, Any]:
    if name not in measures.slate_sums:
        return core_sum(name, settings)
    value = measures.slate_sums[name]
    of = {"value": value.metric.name, "k": value.k, "convention": value.convention}
    return {"name": "slates", "slates": {"population": value.metric.population.name, **of}}


def _experiments(settings: Settings, catalogue: Catalogue, counted: Counted) -> dict[str, Any]:
    measures = catalogue.experiment_measures
    defaults, slots = settings.experiments_defaults, [trial.exposure for trial in measures.slots]
    in_slots = several(defaults.arm) if slots else ()
    of_units = [trial for trials in measures.by_unit.values() for trial in trials]

    def code(what: Exposure | Unit) -> int:
        if isinstance(what, Exposure) and what in slots:
            return (1 << 61) + slots.index(what)
        return what.code(counted.first_ms.get(what.name, 0))

    columns = [f"{n} since {counted.since_ms.get(n, 0)}" for n in measures.sums]
    return {
        **_trials(settings, measures, measures.counted, columns, code),
        "explored": [settings.dimension_names.index(name) for name in settings.user_dimensions],
        "found": {
            "slots": len(slots),
            "paths": [settings.arm_paths.index(path) for path in in_slots],
            "most_arms": limits.MAX_ARMS,
            "most_bytes": limits.MAX_FOUND_BYTES,
            "silent_days": defaults.silent_days,
            "most_days": limits.MAX_FOUND_DAYS,
            "taken": [trial.exposure.key for trial in of_units],
        },
        "units": units(settings, measures, columns, code),
    }


def _trials(
    settings: Settings,
    measures: ExperimentMeasures,
    trials: Sequence[CompiledExperiment],
    columns: Sequence[str],
    code: Callable[[Exposure | Unit], int],
) -> dict[str, Any]:
    """Experiments of one unit. ``columns``: what sums are stored under; ``code``: what rows are."""
    wanted = wanted_days(trials)
    exposures = list(wanted)
    return {
        "sums": sums(settings, measures),
        "columns": columns,
        "explored": [],
        "exposures": [
            {
                "by": _exposed_by(settings, e),
                "key": e.key,
                "arms": e.arms,
                "first_day": e.first_day,
                "is_attributed": e.is_attributed,
                "days": (days.start, days.stop),
                "code": code(e),
            }
            for e, days in wanted.items()
        ],
        "trials": [
            {
                "days": (trial.days.start, trial.days.stop),
                "covariates": (trial.covariates.start, trial.covariates.stop)
                if len(trial.covariates)
                else None,
                "exposure": exposures.index(trial.exposure),
                "arms": [1 + trial.arms.index(arm) for arm in trial.exposure.arms],
                "measures": [_measure(measure) for measure in trial.measures],
            }
            for trial in trials
        ],
    }


def units(
    settings: Settings,
    measures: ExperimentMeasures,
    columns: Sequence[str],
    code: Callable[[Exposure | Unit], int],
) -> list[dict[str, Any]]:
    """Experiments whose unit is not the user, by unit: as ``_trials``."""
    kept = settings.kept_fields
    named = {d.name: d.values for d in settings.kept_dimensions}
    return [
        {
            "dimension": kept.index(unit.field) if unit.field else None,
            "named": named.get(unit.field, ()),
            "slots": None if unit.slots is None else _slots(unit.slots, trials[0].exposure),
            "code": code(unit),
            "experiments": _trials(settings, measures, trials, columns, code),
        }
        for unit, trials in measures.by_unit.items()
    ]


def _slots(slots: Slots, exposure: Exposure) -> dict[str, Any]:
    """Slots of time, with numbers of arms."""
    numbers = {arm: 1 + i for i, arm in enumerate(exposure.arms)}
    return {
        "start_ms": slots.start_ms,
        "length_ms": slots.length_ms,
        "washout_ms": slots.washout_ms,
        "schedule": {value: [numbers[arm] for arm in arms] for value, arms in slots.schedule},
        "others": [numbers[arm] for arm in slots.others],
    }


def _exposed_by(settings: Settings, exposure: Exposure) -> dict[str, int | list[int]]:
    """What says the arm."""
    if exposure.dimension:
        return {"dimension": settings.dimension_names.index(exposure.dimension)}
    known = settings.arm_paths  # of a slot nothing is known yet
    return {"fields": [known.index(path) for path in exposure.paths if path in known]}


def _measure(measure: Measure) -> dict[str, Any]:
    cap: Any = "none"
    if isinstance(measure.cap, Denominator):
        cap = "denominator"
    elif measure.percentile is not None or isinstance(measure.cap, Quantile):
        cap = "quantile"
    elif measure.cap == ANY:
        cap = ANY
    elif measure.cap is not None:
        cap = {"amount": measure.cap}
    others = [_ratio(part) for part in measure.parts[1:]]
    age = None if measure.within is None else (0, measure.within)
    if measure.age is not None:
        age = AGES[measure.age]
    made = {"cap": cap, "age": age, "is_mature": measure.is_mature, "others": others}
    return _ratio(measure) | made
