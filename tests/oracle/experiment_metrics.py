"""Metrics of experiments and alerts by their names: which two components each is the ratio of."""

from __future__ import annotations

from fractions import Fraction

from streamer.settings.model import Settings

from . import items, off_policy, own_ratios, scores
from .user_days import measures_of, slates_in

ONE = "1"
"""The denominator of metrics per user."""
RATIOS = {
    "ctr_ratio": ("clicks", "impressions"),
    "zero_results_ratio": ("empty slates", "requests"),
    "ctr_attributed_ratio": ("clicked", "impressions"),
    "cvr_ratio": ("conversions", "clicks"),
    "cvr_attributed_ratio": ("converted", "clicked"),
    "clicks_per_user": ("clicks", ONE),
    "conversions_per_user": ("conversions", ONE),
    "conversion_value_per_user": ("value", ONE),
    "conversion_value_per_click": ("value", "clicks"),
    "order_value_mean": ("value", "conversions"),
    "conversion_value_per_impression": ("value", "impressions"),
    "dwell_mean_seconds": ("dwell", "viewings"),
    "bounce_rate_ratio": ("bounces", "sessions"),
    "views_per_session": ("views", "sessions"),
    "session_length_mean_seconds": ("length", "sessions"),
    "sessions_per_user": ("sessions", ONE),
    "dwell_seconds_per_user": ("dwell", ONE),
    "active_days_per_user": ("active days", ONE),
    "user_hit_ratio": ("clicks", ONE),
    "user_conversion_ratio": ("conversions", ONE),
    "user_return_ratio": ("return days", ONE),
}
"""Metric → (numerator, denominator); those with options are not here."""
SHARES = ("user_hit_ratio", "user_conversion_ratio", "user_return_ratio")
"""Of these a user counts as 1 at most."""


def parts_of(metric: str, settings: Settings) -> list[tuple[str, float]]:
    """The metrics that one is made of, and what their values count for: itself, or the parts of a
    composite."""
    base, _, name = metric.partition("@")
    if base != "composite":
        return [(metric, 1.0)]
    (found,) = (each for each in settings.composites if each.name == name)
    total = sum(abs(part.weight) for part in found.parts)
    return [(part.metric, part.weight / total / (part.target or 1)) for part in found.parts]


def without_percentile(metric: str) -> tuple[str, Fraction | None]:
    """The metric per user, and the share of users that it is read at: 0.9 of `…_per_user@p90`."""
    base, _, last = metric.rpartition("@")
    if (
        ("_per_user" in base or base.startswith("ratio@"))
        and last[:1] == "p"
        and last[1:].replace(".", "").isdecimal()
    ):
        return base, Fraction(last[1:]) / 100
    return metric, None


def ratio_of(metric: str, settings: Settings) -> tuple[str, str]:
    """(numerator, denominator) of a metric of the settings: `base[@k][.option…]`.

    ValueError if the settings have no such metric.
    """
    metric, _ = without_percentile(metric)
    if metric in RATIOS:
        return RATIOS[metric]
    of_rows = scores.ratios(settings) | off_policy.ratios(settings)
    of_rows |= items.ratios(settings) | own_ratios.ratios(settings)
    if metric in of_rows:
        return of_rows[metric]
    base, _, kind = metric.partition(".")
    if base == "positive_rate_ratio":
        return f"feedback.{kind or 'click'}", "impressions"
    return slate_ratio_of(metric, settings)


def slate_ratio_of(metric: str, settings: Settings) -> tuple[str, str]:
    """Means over slates: of all of them where there is such a mean, else of the population."""
    base, *options = metric.split(".")
    component = ".".join([base, *(o for o in options if o not in ("all", "engaged"))])
    measure = measures_of(settings).get(component)
    if measure is None:
        raise ValueError(f"metric {metric!r}: no {component!r} under these settings")
    populations = ["all"] if measure.over_all else []
    populations.append(measure.population)
    chosen = [o for o in options if o in ("all", "engaged")] or populations[:1]
    if len(chosen) > 1 or chosen[0] not in populations:
        raise ValueError(f"metric {metric!r}: over {chosen}; there are {populations}")
    return component, slates_in(chosen[0])
