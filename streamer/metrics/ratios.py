"""Ratios of two sums over events, each declared once.

From a declaration follow the metric (and what it is called), both ends of its interval
(``metrics.intervals``), and what experiments and alerts compare (``metrics.per_user``).
Sources: P the recommender-evaluation primer, J Jurity's metric page (matching CTR).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from streamer.metrics.definition import (
    Brief,
    Declarations,
    Declared,
    Form,
    Series,
    Values,
    Variant,
    ratio,
)
from streamer.metrics.reads import Given, Statistic
from streamer.metrics.sums import (
    ACTIVE_DAYS,
    BOUNCES,
    CLICKED,
    CLICKS,
    CONVERSIONS,
    CONVERTED,
    DWELL,
    EMPTY_SLATES,
    IMPRESSIONS,
    REQUESTS,
    RETURN_DAYS,
    SESSION_LENGTH,
    SESSIONS,
    VALUE,
    VIEWINGS,
    VIEWS,
    Sum,
    Summed,
)


def maturities(settings: Any, horizon: str | None) -> Iterator[tuple[dict[str, str], int | None]]:
    """Extra labels, and the horizon for which panes have to be mature; None: all count.
    ``horizon``: the setting of [attribution], None where nothing is waited for."""
    if horizon is None:
        yield {}, None
        return
    yield {"maturity": "provisional"}, None
    yield {"maturity": "mature"}, getattr(settings.attribution, horizon)


def matured(horizon: str, *names: str) -> Callable[[Declared], Iterator[Variant]]:
    """What reads these statistics: all, and the mature ones."""

    def variants(of: Declared) -> Iterator[Variant]:
        for labels, horizon_ms in maturities(of.settings, horizon):
            yield Variant(labels, tuple(Statistic(name, horizon_ms) for name in names))

    return variants


@dataclass(frozen=True)
class Ratio:
    """A metric that is ``above / below``, absent where ``below`` is 0. ``horizon``: the setting of
    [attribution] after which it is mature, if it follows late feedback."""

    name: str
    title: str
    above: Sum
    below: Sum
    doc: str
    unit: str = "ratio"
    empty: str = ""
    """Where it is absent, in words; default: without what is below."""
    below_text: str = ""
    """What is below, where formulas call it otherwise."""
    source: str = ""
    horizon: str | None = None
    brief: Brief | None = None
    support: str = ""
    """The series that counts what is below."""
    is_weighted: bool = False
    """Whether events count with weights: it is no share of them."""
    most: float | None = None
    """What it cannot be above, other than a share."""

    @property
    def over(self) -> str:
        """What is below, in words."""
        return self.below_text or self.below.text

    @property
    def absent(self) -> str:
        """Where it is absent, in words."""
        return self.empty or f"absent without {self.over}"

    @property
    def formula(self) -> str:
        """In words."""
        return f"{self.above.text} / {self.over}"

    @property
    def is_share(self) -> bool:
        """Whether it is the share of events of one kind that something came of."""
        return self.unit == "ratio" and not self.is_weighted

    @property
    def units(self) -> int:
        """How many integers of the numerator over those of the denominator are 1."""
        return self.above.unit // self.below.unit

    @property
    def form(self) -> Form:
        """How its values are written."""
        forms: dict[str, Form] = {"ratio": "percent", "seconds": "seconds"}
        return forms.get(self.unit, "number")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its series."""
        return ("maturity",) if self.horizon else ()

    def variants(self, settings: Any) -> Iterator[tuple[dict[str, str], Ratio]]:
        """Itself, without labels that tell variants apart."""
        yield {}, self

    def reads(self, of: Declared) -> Iterator[Variant]:
        """Numerator and denominator; the mature ones last."""
        for labels, horizon_ms in maturities(of.settings, self.horizon):
            parts = (Summed(part, horizon_ms) for part in (self.above, self.below))
            yield Variant(labels, tuple(parts))

    def series(self, above: Values, below: Values) -> Iterator[Series]:
        """The ratio in each segment."""
        yield self.of(above, below)

    def of(self, above: Values, below: Values) -> Series:
        """The ratio of these sums."""
        units = 1 if self.above.is_large else self.units
        return ratio(above, units * below)


@dataclass(frozen=True)
class RatioBy:
    """A ratio for each value of a label, which the settings list. ``setting``: where they do."""

    label: ClassVar[str]
    setting: ClassVar[str]
    has_maturity: ClassVar[bool] = True
    """Whether it waits for feedback."""
    name: str
    title: str
    doc: str
    formula: str
    absent: str
    unit: str = field(default="ratio", kw_only=True)
    source: str = field(default="", kw_only=True)
    brief: Brief | None = field(default=None, kw_only=True)
    support: str = field(default="", kw_only=True)
    """The series that counts what is below."""

    @property
    def listed(self) -> str:
        """Where the settings list its variants, in words."""
        return self.setting

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its series."""
        return (self.label, "maturity") if self.has_maturity else (self.label,)

    def variants(self, settings: Any) -> Iterator[tuple[dict[str, str], Ratio]]:
        """Labels and ratio for each value."""
        raise NotImplementedError

    def reads(self, of: Declared) -> Iterator[Variant]:
        """The ratio, its numerator and its denominator, for each value."""
        for labels, each in self.variants(of.settings):
            for own, reads in each.reads(of):
                yield Variant({**labels, **own}, (Given(each), *reads))

    def series(self, of: Ratio, above: Values, below: Values) -> Iterator[Series]:
        """One of them in each segment."""
        yield of.of(above, below)


RATIOS = (
    Ratio(
        *("ctr_ratio", "Click-through rate", CLICKS, IMPRESSIONS),
        "Click-through rate, clicks and impressions each by their own event time.",
        source="P",
        brief=Brief(),
        support="window_impressions",
    ),
    Ratio(
        *("ctr_attributed_ratio", "Click-through rate, attributed", CLICKED, IMPRESSIONS),
        "Share of impressions with at least one attributed click, by the impression's time.",
        source="J",
        horizon="click_ms",
        support="window_ctr_attributed_impressions",
    ),
    Ratio(
        *("zero_results_ratio", "Share of requests without results", EMPTY_SLATES, REQUESTS),
        "Share of requests that showed nothing: events with `items = []`. Each slate is another"
        " request; a single impression without `request_id` is none.",
        brief=Brief(),
        support="window_requests",
    ),
    Ratio(
        *("cvr_ratio", "Conversion rate", CONVERSIONS, CLICKS),
        "Conversion rate, conversions and clicks each by their own event time.",
        source="P",
        brief=Brief(),
        support="window_clicks",
    ),
    Ratio(
        *("cvr_attributed_ratio", "Conversion rate, attributed", CONVERTED, CLICKED),
        "Share of clicked impressions with an attributed conversion, by the impression's time.",
        below_text="clicked impressions",
        source="P",
        horizon="conversion_ms",
        support="window_cvr_attributed_clicked",
    ),
    Ratio(
        *("conversion_value_per_click", "Conversion value per click", VALUE, CLICKS),
        "Conversion value over clicks, each by its own event time.",
        "currency per click",
        brief=Brief(),
        support="window_clicks",
    ),
    Ratio(
        *("conversion_value_per_impression", "Conversion value per impression"),
        *(VALUE, IMPRESSIONS),
        "Conversion value over impressions, each by its own event time.",
        "currency per impression",
        brief=Brief(),
        support="window_impressions",
    ),
    Ratio(
        *("order_value_mean", "Mean order value", VALUE, CONVERSIONS),
        "Conversion value over conversions, each of which is one order.",
        "currency per order",
        brief=Brief(),
        support="window_conversions",
    ),
    Ratio(
        *("dwell_mean_seconds", "Mean dwell time", DWELL, VIEWINGS),
        "Mean time spent on an item, exact.",
        "seconds",
        empty="absent without dwell times",
        source="P",
        brief=Brief(),
        support="window_dwells",
    ),
    Ratio(
        *("bounce_rate_ratio", "Bounce rate", BOUNCES, SESSIONS),
        "Share of the sessions that ended after one view.",
        source="P",
        brief=Brief(),
        support="window_sessions",
    ),
    Ratio(
        *("views_per_session", "Views per session", VIEWS, SESSIONS),
        "Mean number of views of the sessions that ended.",
        "views per session",
        support="window_sessions",
    ),
    Ratio(
        *("session_length_mean_seconds", "Mean session length", SESSION_LENGTH, SESSIONS),
        "Mean length of the sessions that ended, exact.",
        "seconds",
        source="P",
        brief=Brief(),
        support="window_sessions",
    ),
)
NAMED = {each.name: each for each in RATIOS}


@dataclass(frozen=True)
class PerUser:
    """A sum over events by the number of users. ``is_share``: a user with any counts as 1;
    ``form``: how values of others are written."""

    name: str
    title: str
    above: Sum
    is_share: bool = False
    form: Form = "number"


PER_USER = (
    PerUser("clicks_per_user", "Clicks per user", CLICKS),
    PerUser("conversions_per_user", "Conversions per user", CONVERSIONS),
    PerUser("conversion_value_per_user", "Conversion value per user", VALUE),
    PerUser("sessions_per_user", "Sessions per user", SESSIONS),
    PerUser("dwell_seconds_per_user", "Dwell per user", DWELL, form="seconds"),
    PerUser("active_days_per_user", "Active days per user", ACTIVE_DAYS),
    PerUser("user_hit_ratio", "Share of users who click", CLICKS, is_share=True),
    PerUser("user_conversion_ratio", "Share of users who convert", CONVERSIONS, is_share=True),
    PerUser("user_return_ratio", "Share of users who come back", RETURN_DAYS, is_share=True),
)


def declare(metric: Declarations, *ratios: Ratio | RatioBy | str) -> None:
    """Add the metrics of ratios to a family's; those of ``RATIOS`` by their names."""
    for each in ratios:
        of = NAMED[each] if isinstance(each, str) else each
        metric(
            of.name,
            formula=of.formula,
            unit=of.unit,
            empty=of.absent,
            source=of.source,
            labels=of.labels,
            brief=of.brief,
            doc=of.doc,
            support=of.support,
            reads=of.reads,
        )(of.series)
