"""The readout of an experiment as one document, whose sentences are made here: the terminal, the
API, the page and the report lay it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Any

import msgspec

from streamer.encoding import limbs
from streamer.formatting import counted, p_words, percent, share
from streamer.metrics.compared_metrics import ComparedRatio
from streamer.query.experiment_metrics import MetricReadout, plan_of
from streamer.query.experiments import ExperimentReadout, StoredExperiment, unit_words
from streamer.query.exploration import Exploration
from streamer.settings import limits
from streamer.settings.durations import date_of
from streamer.settings.experiments import Experiment
from streamer.stats.experiments.plan import Plan
from streamer.stats.experiments.readout import Arm, Comparison
from streamer.stats.experiments.recommendation import Recommendation
from streamer.stats.experiments.srm import Split
from streamer.stats.experiments.verdict import Scale

Document = Mapping[str, Any]
"""What ``document`` makes, or a part of it."""


def document(stored: StoredExperiment, found: ExperimentReadout) -> dict[str, Any]:
    """The JSON of a readout."""
    experiment = found.experiment
    return {
        "name": experiment.name,
        "title": experiment.title or experiment.name,
        "hypothesis": experiment.hypothesis,
        "owner": experiment.owner,
        "url": experiment.url,
        "who": _who(experiment),
        "when": _when(found),
        "dimension": experiment.dimension or None,
        "arm": list(stored.trial.exposure.paths) or None,
        "unit": unit_words(experiment) or "user",
        "control": experiment.control,
        "split": {arm: experiment.split[arm] for arm in experiment.arms},
        "start": experiment.start.isoformat(),
        "end": None if experiment.end is None else experiment.end.isoformat(),
        "alpha": experiment.alpha,
        "covariate_days": experiment.covariate_days,
        "min_days": experiment.min_days,
        "decide": experiment.decide,
        "planned_users": experiment.planned_users,
        "first": found.first.isoformat(),
        "last": None if found.last is None else found.last.isoformat(),
        "users": dict(found.users),
        "users_in_several_arms": found.users_in_several_arms,
        "outcomes": experiment.outcomes,
        "outside": msgspec.to_builtins(found.outside),
        "data": None
        if found.data is None
        else msgspec.to_builtins(found.data) | {"words": found.data.words},
        "users_in_several_arms_ratio": found.several_arms_ratio,
        "recommendation": _recommendation_document(found.recommendation),
        "warnings": found.warnings,
        "notes": found.notes,
        "remarks": found.remarks,
        "user_sample_ratio": found.user_sample_ratio,
        "counted_since_ms": found.counted_since_ms,
        "metrics": [
            _metric_document(experiment, metric, stored.ratios[metric.name], is_over=stored.is_over)
            for metric in found.metrics
        ],
        "method": _method(experiment),
    }


def _recommendation_document(found: Recommendation | None) -> dict[str, Any] | None:
    return None if found is None else msgspec.to_builtins(found) | {"words": found.words}


def _metric_document(
    experiment: Experiment, metric: MetricReadout, of: ComparedRatio, *, is_over: bool
) -> dict[str, Any]:
    plan = plan_of(experiment, is_over=is_over)
    return {
        "name": metric.name,
        "title": of.title,
        "counts": of.noun,
        "counted": of.counted,
        "denominator": metric.denominator,
        "form": of.form,
        "role": metric.role,
        "direction": metric.direction,
        "margin": metric.margin,
        "margin_absolute": metric.margin_absolute,
        "rule": _rule(metric),
        "capped_at": metric.capped_at,
        "largest": msgspec.to_builtins(dict(metric.largest)),
        "split_test": msgspec.to_builtins(metric.found.split)
        | {"words": _split_words(metric.found.split)},
        "arms": _arm_documents(metric.found.arms),
        "comparisons": [
            {
                **shown(plan, comparison, metric.found.arms),
                "adjustment": _adjustment(experiment, comparison),
                "waits": msgspec.to_builtins(list(waits)),
                "waits_words": "; ".join(f"{share(w.effect)}: {_days(w.days)}" for w in waits),
            }
            for comparison, waits in zip(metric.found.comparisons, metric.waits, strict=True)
        ],
        "ages": [
            {
                "age": age,
                "arms": _arm_documents(its.arms),
                "comparisons": [shown(plan, each, its.arms) for each in its.comparisons],
            }
            for age, its in metric.ages.items()
        ],
    }


def _arm_documents(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    found = [msgspec.to_builtins(arm) for arm in arms]
    return [{**arm, "value": arm.pop("shown")} for arm in found]


def shown(plan: Plan, comparison: Comparison, arms: Sequence[Arm]) -> dict[str, Any]:
    """A comparison. ``lift`` and ``interval``: of the lift that is judged (``verdict.scale``), its
    value and the interval that decides. ``unadjusted``: the lift of the arms' values as they are,
    where the one that is judged is another; ``adjusted_for`` says why."""
    own, adjusted = comparison.shown, comparison.adjusted
    is_relative = comparison.verdict.scale is Scale.RELATIVE
    unadjusted, adjusted_for = None, ""
    if adjusted is not None and adjusted.explained is not None:
        unadjusted = (comparison.relative if is_relative else comparison.absolute).value
        adjusted_for = "what users did before"
    elif any(arm.value and not isclose(arm.shown or 0, arm.value, rel_tol=1e-3) for arm in arms):
        values = {arm.name: arm.shown or 0.0 for arm in arms}
        then, now = values[plan.control], values[comparison.arm]
        unadjusted = now - then if not is_relative else now / then - 1 if then else None
        adjusted_for = "steps between whole numbers"
    return {
        **msgspec.to_builtins(comparison),
        "lift": own.value,
        "interval": msgspec.to_builtins(own.deciding(plan)),
        "unadjusted": unadjusted,
        "adjusted_for": adjusted_for,
    }


def exploration_document(stored: StoredExperiment, found: Exploration) -> dict[str, Any]:
    """The JSON of an exploration: for each value a readout, for each treatment a test."""
    return {
        "name": stored.experiment.name,
        "exploration": True,
        "by": found.by,
        "alpha": found.alpha,
        "words": _explored(stored.experiment, found),
        "heterogeneity": [
            {"arm": arm, "metric": found.metric, "sentence": found.sentences[arm]}
            | msgspec.to_builtins(test)
            for arm, test in found.heterogeneity.items()
        ],
        "values": {value: document(stored, each) for value, each in found.values.items()},
    }


def history(stored: StoredExperiment) -> list[dict[str, Any]]:
    """For each day the lifts as they stood at its end, with both intervals: in the scale, relative
    or absolute, in which they are shown on the last day."""
    last = stored.last_day
    if last is None:
        return []
    stored = replace(stored, parts=[limbs.merged(stored.parts)])
    scales = {
        (metric.name, c.arm): c.verdict.scale
        for metric in stored.read().metrics
        for c in metric.found.comparisons
    }
    found = []
    first = max(stored.trial.days.start, last + 1 - limits.MAX_HISTORY_DAYS)
    for day in range(first, last + 1):
        as_of = stored.read(day)
        metrics = {
            metric.name: {
                c.arm: msgspec.to_builtins(getattr(c.deciding, scales[metric.name, c.arm]))
                for c in metric.found.comparisons
            }
            for metric in as_of.metrics
        }
        found.append(
            {"day": date_of(day).isoformat(), "users": dict(as_of.users), "metrics": metrics}
        )
    return found


# Laid out in lines -----------------------------------------------------------------------------


def heading_of(readout: Document) -> list[str]:
    """What a readout says before its metrics."""
    lines = [f"{readout['name']}: {readout['who']}, {readout['when']}"]
    if readout["last"] is None:
        return lines
    lines += [f"Users: {users_of_arms(readout)}", *readout["notes"]]
    lines.append(readout["metrics"][0]["split_test"]["words"])
    lines += [f"Warning: {warning}" for warning in readout["warnings"]]
    if (advice := readout["recommendation"]) is not None:
        lines.append(f"Recommendation: {advice['words']}. {advice['reason']}")
    return lines


def users_of_arms(readout: Document) -> str:
    """How many users each arm has."""
    return ", ".join(f"{arm} {users:,}" for arm, users in readout["users"].items())


def lines_of(metric: Document) -> list[str]:
    """What is said of the comparisons of a metric."""
    return [
        f"{comparison['arm']}: {sentence}"
        for comparison in metric["comparisons"]
        for sentence in _sentences(comparison)
    ]


def _sentences(comparison: Document) -> list[str]:
    verdict = comparison["verdict"]
    lines = [f"{verdict['outcome']}. {verdict['reason']}"]
    if comparison["adjustment"] is not None:
        lines.append(comparison["adjustment"])
    if comparison["waits_words"]:
        lines.append(f"days until a lift is found: {comparison['waits_words']}.")
    return lines


# Sentences -------------------------------------------------------------------------------------


def _who(experiment: Experiment) -> str:
    treatments = ", ".join(arm for arm in experiment.arms if arm != experiment.control)
    where = f" ({experiment.dimension})" if experiment.dimension else ""
    return f"{treatments} against {experiment.control}{where}"


def _when(found: ExperimentReadout) -> str:
    experiment = found.experiment
    if found.last is None:
        return f"starts on {found.first}"
    much = "no user yet" if found.data is None else found.data.words
    is_over = experiment.end is not None and found.last >= experiment.end
    until = "" if experiment.end is None or is_over else f", planned until {experiment.end}"
    return f"{found.first} to {found.last}, {much}{until}"


def _split_words(split: Split) -> str:
    total = sum(split.users.values())
    if not total:
        return f"No user was in an arm yet ({', '.join(split.users)})."
    shares = "; ".join(
        f"{arm} {percent(users / total)}, planned {percent(split.expected[arm])}"
        for arm, users in split.users.items()
    )
    p = f"{p_words(split.p_value)} at any time, {p_words(split.p_value_fixed)} at a single look"
    if split.is_wrong:
        return f"Users are not split as planned ({shares}; {p}). The arms cannot be compared."
    return f"Users are split as planned ({shares}; {p})."


def _rule(metric: MetricReadout) -> str:
    role = f" ({metric.role})" if metric.role else ""
    margins = [
        *([] if metric.margin is None else [share(metric.margin)]),
        *([] if metric.margin_absolute is None else [f"{metric.margin_absolute:.6g}"]),
    ]
    tolerated = "".join(f", harm up to {margin} is tolerated" for margin in margins)
    return f"{metric.name}{role}: {metric.direction} is better{tolerated}"


def _adjustment(experiment: Experiment, comparison: Comparison) -> str | None:
    """What was taken out of a lift; None where there are no days before."""
    if comparison.adjusted is None:
        return None
    explained = comparison.adjusted.explained
    if explained is None:
        return f"The lift is not adjusted (CUPED): {comparison.adjusted.reason}."
    before = counted(experiment.covariate_days, "day")
    return (
        f"The lift and its intervals are adjusted (CUPED): behaviour in the {before} before the "
        f"start explains {percent(explained)} of the variance."
    )


def _days(days: int | None) -> str:
    if days is None:
        return "not in sight"
    return f"{days:,} more" if days else "already"


def _method(experiment: Experiment) -> str:
    return (
        "Users are the unit of analysis. An arm's value is the total of its users' numerators "
        "divided by the total of their denominators (for CTR, clicks by impressions). The delta "
        f"method gives variances{_before(experiment.covariate_days)}. Percentages are relative to "
        "the control. An interval at any time holds at level "
        f"{share(1 - experiment.alpha)} however often you look; an interval for a single look "
        "holds once, at an end date set in advance. "
        "Several arms share alpha (Holm), and so do the secondary metrics. An arm is shipped if "
        "the primary metric is better and no guardrail is worse than tolerated."
    )


def _before(days: int) -> str:
    """What CUPED adds to the method, of so many days before the start."""
    if not days:
        return ""
    what = "day" if days == 1 else f"{days} days"
    return f", and the {what} before the start reduce{'s' if days == 1 else ''} them (CUPED)"


def _explored(experiment: Experiment, found: Exploration) -> str:
    return (
        f"By {found.by}, for ideas and not for decisions: "
        f"{counted(len(found.values), 'value')} share alpha = {experiment.alpha:g}, which widens "
        "ranges, and get no recommendation. Each user belongs to the value of most of their "
        "impressions on their first day. Test an idea in an experiment of its own."
    )
