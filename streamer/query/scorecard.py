"""An experiment for who has to decide: one sentence, one line of impact, and every comparison as
texts and bars. The page and the report lay it out."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamer.formatting import (
    change,
    counted,
    difference,
    number,
    p_words,
    share,
    two_digits,
    value_text,
)
from streamer.query.experiment_metrics import focus_of
from streamer.query.readout_document import Document
from streamer.stats.experiments.recommendation import DISTRUST, Action
from streamer.stats.experiments.verdict import Outcome, Scale

GOOD, BAD, WARN, OPEN = "good", "bad", "warn", "open"
_DAY_MS = 86_400_000
_PER = 1000
"""Impact is said for so many of what the metric counts."""

_ADVICE: Mapping[str, tuple[str, str, str]] = {
    Action.SHIP: (GOOD, "✓", "Ship {arm}"),
    Action.WAIT: (OPEN, "…", "Wait"),
    Action.STOP_HARM: (BAD, "▼", "Stop: harm"),
    Action.STOP_NO_EFFECT: (WARN, "■", "Stop: no effect worth shipping"),
    Action.KEEP_RUNNING: (OPEN, "→", "Keep running"),
    Action.UNDECIDED: (WARN, "?", "Ended without a decision"),
    Action.DO_NOT_TRUST: (BAD, "✕", "Do not use: broken split"),
    Action.DO_NOT_TRUST_ARMS: (BAD, "✕", "Do not use: users in several arms"),
    Action.MEASURE: (OPEN, "→", "Holdout"),
}
_VERDICTS: Mapping[str, tuple[str, str, str]] = {
    Outcome.BETTER: (GOOD, "✓", "Better"),
    Outcome.WORSE: (BAD, "▼", "Worse"),
    Outcome.HARM: (BAD, "▼", "Harmed"),
    Outcome.WORSE_WITHIN: (WARN, "▽", "Worse, perhaps tolerated"),
    Outcome.NO_HARM: (GOOD, "✓", "Not harmed"),
    Outcome.KEEP_RUNNING: (OPEN, "?", "Too early"),
    Outcome.INVALID: (BAD, "✕", "Broken split"),
}


@dataclass(frozen=True)
class Pill:
    """A word with its sign; ``kind``: good, bad, warn or open."""

    kind: str
    sign: str
    words: str


@dataclass(frozen=True)
class ShownLift:
    """A lift as it is drawn: ``value`` and ends are None where they are not known; ``limit``: the
    change that a guardrail tolerates. Only relative lifts share a scale: of others there is no
    ``value`` here. ``text`` and ``range`` say the same."""

    text: str
    range: str
    kind: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    unadjusted: str = ""
    """The lift of the arms' values as they are, where the one shown is adjusted."""


@dataclass(frozen=True)
class CardRow:
    """A comparison of the scorecard, or a group of users of a forest plot."""

    title: str
    note: str
    lift: ShownLift
    role: str = ""
    arm: str = ""
    values: Sequence[str] = ()
    """Of the control, and of the treatment."""
    users: int | None = None
    pill: Pill | None = None
    reason: str = ""
    facts: Sequence[tuple[str, str]] = ()
    trend: Sequence[float] = ()
    """The lift at the end of each day, where it was known."""


@dataclass(frozen=True)
class DailyLift:
    """A lift as it stood at the end of a day."""

    day: datetime.date
    users: Mapping[str, int]
    lift: ShownLift


@dataclass(frozen=True)
class Fact:
    """A line of the health of an experiment, or of its settings."""

    title: str
    text: str
    kind: str = ""


@dataclass(frozen=True)
class ForestPlot:
    """The primary metric by groups of users."""

    title: str
    question: str
    rows: Sequence[CardRow]
    sentences: Sequence[str]


@dataclass(frozen=True)
class DayProgress:
    """Days with users that are over, of how many it may take (None: not known), and the least."""

    days: int
    of: int | None
    least: int
    words: str

    @property
    def share(self) -> float:
        """How far it is.

        >>> DayProgress(15, 20, 7, "").share
        0.75
        """
        return min(1.0, self.days / max(self.of or self.least, 1))


@dataclass(frozen=True)
class Scorecard:
    """``focus``: the treatment that the sentence, the course and the forests are about.
    ``primary``: the title of the metric that decides; ``form``: how its lifts are written, where
    they are no shares of the control's value. ``units``: what is counted in arms."""

    name: str
    title: str
    primary: str
    form: str | None
    units: str
    who: str
    when: str
    hypothesis: str
    owner: str
    url: str
    focus: str
    treatments: Sequence[str]
    control: str
    pill: Pill | None
    sentence: str
    sure: Sequence[str]
    impact: str
    decided: str
    users: Sequence[tuple[str, int]]
    split: Fact | None
    guardrails: Fact | None
    progress: DayProgress | None
    rows: Sequence[CardRow]
    course: Sequence[DailyLift]
    ages: ForestPlot | None
    segments: Sequence[ForestPlot]
    health: Sequence[Fact]
    settings: Sequence[Fact]
    method: str
    warnings: Sequence[str]


def scorecard(
    found: Document, explorations: Sequence[Document] = (), focus: str | None = None
) -> Scorecard:
    """That of a readout (``readout_document.document``, with ``history``). ``explorations``: by
    other dimensions; ``focus``: the treatment to look at, by default the one that is advised, or
    else the best."""
    has_begun = found["last"] is not None
    arm = focus or _focus(found)
    primary = _primary(found)
    advice = found["recommendation"]
    is_relative = _comparison(primary, arm)["verdict"]["scale"] == Scale.RELATIVE
    return Scorecard(
        name=found["name"],
        title=found["title"],
        primary=_lower(primary["title"]),
        form=None if is_relative else primary["form"],
        units="users" if found["unit"] == "user" else "units",
        who=found["who"],
        when=found["when"],
        hypothesis=found["hypothesis"],
        owner=found["owner"],
        url=found["url"],
        focus=arm,
        treatments=[name for name in found["split"] if name != found["control"]],
        control=found["control"],
        pill=advice_pill(advice),
        sentence=_sentence(found, primary, arm) if has_begun else f"It {found['when']}.",
        sure=list(_sure(found, arm)) if has_begun else [],
        impact=_impact(found, primary, arm) if has_begun else "",
        decided=_decided(advice),
        users=list(found["users"].items()) if has_begun else [],
        split=_split(primary) if has_begun else None,
        guardrails=_guardrails(found) if has_begun else None,
        progress=_progress(found) if has_begun else None,
        rows=list(_rows(found)) if has_begun else [],
        course=list(_course(found, primary, arm)),
        ages=_ages(primary, arm) if has_begun else None,
        segments=[_segments(each, arm) for each in explorations],
        health=list(_health(found, primary)) if has_begun else [],
        settings=list(_settings(found)),
        method=found["method"],
        warnings=found["warnings"],
    )


def _primary(found: Document) -> Document:
    metric: Document = next(each for each in found["metrics"] if each["role"] == "primary")
    return metric


def _focus(found: Document) -> str:
    """The treatment that is advised, or else the best so far."""
    advice, primary = found["recommendation"], _primary(found)
    lifts = {
        each["arm"]: (each["adjusted"] or each)["absolute"]["value"]
        for each in primary["comparisons"]
    }
    return focus_of(None if advice is None else advice["arm"], lifts, primary["direction"])


def _comparison(metric: Document, arm: str) -> Document:
    found: Document = next(each for each in metric["comparisons"] if each["arm"] == arm)
    return found


def _value(metric: Document, arm: str) -> float | None:
    found: float | None = next(each["value"] for each in metric["arms"] if each["name"] == arm)
    return found


# What to do ------------------------------------------------------------------------------------


def advice_pill(advice: Document | None) -> Pill | None:
    """What to do, in two or three words."""
    if advice is None:
        return None
    kind, sign, words = _ADVICE[advice["action"]]
    text = words.format(arm=advice["arm"])
    if advice["action"] == Action.WAIT and advice["days"] is not None:
        text = f"Wait {counted(advice['days'], 'more day')}"
    return Pill(kind, sign, text)


def _decided(advice: Document | None) -> str:
    if advice is None or advice["since"] is None:
        return ""
    return (
        f"Decided at the end of {_date(advice['since'])}. The first decision counts; later looks "
        "may fall back behind it by chance."
    )


def _sentence(found: Document, primary: Document, arm: str) -> str:
    """What happened, in a sentence or two."""
    advice = found["recommendation"]
    if advice is not None and advice["action"] == Action.DO_NOT_TRUST:
        return (
            "The users are not divided as planned. Assignment or logging is broken for an arm: do "
            "not use these numbers."
        )
    if advice is not None and advice["action"] == Action.DO_NOT_TRUST_ARMS:
        several = share(found["users_in_several_arms_ratio"])
        return f"{several} of the users were seen in more than one arm: do not use these numbers."
    held = _guardrail_sentence(found, arm)
    return " ".join(part for part in (_moved(found, primary, arm), held) if part)


def _moved(found: Document, primary: Document, arm: str) -> str:
    comparison = _comparison(primary, arm)
    lift, interval, raw = comparison["lift"], comparison["interval"], comparison["unadjusted"]
    title = _lower(primary["title"])
    then, now = _value(primary, found["control"]), _value(primary, arm)
    if lift is None or then is None or now is None:
        return f"Too early to tell whether {arm} changes the {title}."
    form = primary["form"]
    if interval is None:
        both = f"{value_text(form, then)} without it, {value_text(form, now)} with it"
        return f"Too early to tell whether {arm} changes the {title}: {both} so far."
    write = _writer(comparison, form)
    if interval["low"] > 0 or interval["high"] < 0:
        rises = interval["low"] > 0
        verb = "raises" if rises else "lowers"
        nearest = interval["low"] if rises else interval["high"]
        values = f"from {value_text(form, then)} to {value_text(form, now)}"
        sure = f"{write(lift)}, at least {write(nearest)}"
        if raw is None:
            return f"{_capital(arm)} {verb} the {title} {values}: {sure}."
        return (
            f"{_capital(arm)} {verb} the {title}: {sure}, adjusted for "
            f"{comparison['adjusted_for']} (unadjusted {values}: {write(raw)})."
        )
    best, worst = interval["high"], interval["low"]
    return (
        f"Too early to tell: {arm} may change the {title} by anything from {write(worst)} to "
        f"{write(best)}."
    )


def _guardrail_sentence(found: Document, arm: str) -> str:
    guards = [m for m in found["metrics"] if m["role"] == "guardrail"]
    outcomes = {m["title"]: _comparison(m, arm)["verdict"]["outcome"] for m in guards}
    harmed = [title for title, outcome in outcomes.items() if outcome == Outcome.HARM]
    open_ = [
        title
        for title, outcome in outcomes.items()
        if outcome in (Outcome.KEEP_RUNNING, Outcome.WORSE_WITHIN)
    ]
    if harmed:
        return (
            f"{_joined(harmed)} {'is' if len(harmed) == 1 else 'are'} harmed more than tolerated."
        )
    if open_:
        return f"Whether {_joined([_lower(title) for title in open_])} suffers is not known yet."
    return "No guardrail is harmed." if outcomes else ""


def _sure(found: Document, arm: str) -> Iterator[str]:
    """What the sentence rests on."""
    percent = share(found["alpha"])
    level = share(1 - found["alpha"])
    if found["decide"] == "at_end":
        yield (
            f"It is decided by one look after the last day: if {arm} made no difference, at most "
            f"{percent} of experiments would be decided like this. Ranges until then hold at every "
            "look."
        )
    else:
        yield (
            f"If {arm} made no difference, at most {percent} of experiments would ever look like "
            f"this, even if you check every day. Ranges are {level} and safe to check daily."
        )
    if found["recommendation"] is not None:
        yield found["recommendation"]["reason"]


def _impact(found: Document, primary: Document, arm: str) -> str:
    """What the lift comes to, for a count; nothing where the interval does not exclude 0."""
    comparison = _comparison(primary, arm)
    noun, data, total = primary["counts"], found["data"], primary["denominator"]
    estimate = (comparison["adjusted"] or comparison)["absolute"]
    interval = estimate["fixed" if found["decide"] == "at_end" else "anytime"]
    is_known = interval is not None and (interval["low"] > 0 or interval["high"] < 0)
    if not noun or not total or not data or not is_known or found["recommendation"] is None:
        return ""
    if found["recommendation"]["action"] in DISTRUST:
        return ""
    lift, below = estimate["value"], primary["counted"]
    more = "more" if lift > 0 else "fewer"
    said = f"That is {two_digits(abs(lift) * _PER)} {more} {noun} per {_PER:,} {below}"
    days = (data["to_ms"] - data["from_ms"]) / _DAY_MS
    if data["days"] < 1 or days < 1:
        return f"{said}."
    daily = total / days
    ends = sorted(abs(interval[end]) * daily for end in ("low", "high"))
    return (
        f"{said}: about {two_digits(abs(lift) * daily)} a day ({two_digits(ends[0])} to "
        f"{two_digits(ends[1])}) at the experiment's {two_digits(daily)} {below} a day, if {arm} "
        f"replaces {found['control']} everywhere."
    )


# Lifts -----------------------------------------------------------------------------------------


def _writer(comparison: Document, form: str) -> Any:
    """Writes a lift in the scale that is shown."""
    if comparison["verdict"]["scale"] == Scale.RELATIVE:
        return change
    return lambda value: difference(form, value)


def lift_of(comparison: Document, metric: Document, kind: str) -> ShownLift:
    """The lift of a comparison (``readout_document.shown``), and its interval. ``metric``: its
    form, direction and margin."""
    lift, interval, raw = comparison["lift"], comparison["interval"], comparison["unadjusted"]
    write = _writer(comparison, metric["form"])
    unadjusted = "" if raw is None else write(raw)
    if lift is None:
        return ShownLift("–", "not defined", kind, unadjusted=unadjusted)
    text = write(lift)
    if interval is None:
        return ShownLift(text, "no range yet", kind, unadjusted=unadjusted)
    ranges = f"{write(interval['low'])} to {write(interval['high'])}"
    if comparison["verdict"]["scale"] != Scale.RELATIVE:
        return ShownLift(text, ranges, kind, unadjusted=unadjusted)
    margin = metric["margin"]
    limit = None
    if margin is not None:
        limit = margin if metric["direction"] == "lower" else -margin
    ends = interval["low"], interval["high"]
    return ShownLift(text, ranges, kind, lift, *ends, limit, unadjusted)


def _pill(comparison: Document) -> Pill:
    kind, sign, words = _VERDICTS[comparison["verdict"]["outcome"]]
    return Pill(kind, sign, words)


def _rows(found: Document) -> Iterator[CardRow]:
    """Every metric of every treatment, the primary one first."""
    order = {"primary": 0, "guardrail": 2}
    for metric in sorted(found["metrics"], key=lambda each: order.get(each["role"], 1)):
        for comparison in metric["comparisons"]:
            arm, pill = comparison["arm"], _pill(comparison)
            is_invalid = comparison["verdict"]["outcome"] == Outcome.INVALID
            form = metric["form"]
            values = [_value(metric, found["control"]), _value(metric, arm)]
            yield CardRow(
                title=metric["title"],
                note=_rule(metric),
                role=metric["role"],
                arm=arm,
                values=["–" if v is None else value_text(form, v) for v in values],
                lift=lift_of(comparison, metric, OPEN if is_invalid else pill.kind),
                pill=pill,
                reason=comparison["verdict"]["reason"],
                facts=list(_facts(found, metric, comparison)),
                trend=_trend(found, metric["name"], arm),
            )


def _trend(found: Document, metric: str, arm: str) -> list[float]:
    days = (entry["metrics"].get(metric, {}).get(arm) for entry in found.get("history", ()))
    return [its["value"] for its in days if its is not None and its["value"] is not None]


def _rule(metric: Document) -> str:
    tolerated = []
    if metric["margin"] is not None:
        tolerated.append(share(metric["margin"]))
    if metric["margin_absolute"] is not None:
        size = difference(metric["form"], metric["margin_absolute"]).lstrip("+")
        tolerated.append(size)
    if tolerated:
        verb = "fall" if metric["direction"] == "higher" else "rise"
        return f"may {verb} by up to {' and '.join(tolerated)}"
    return "lower is better" if metric["direction"] == "lower" else ""


def _facts(found: Document, metric: Document, comparison: Document) -> Iterator[tuple[str, str]]:
    """All numbers of a comparison."""
    yield "Name", metric["name"]
    scales = [("relative", change), ("absolute", lambda x: difference(metric["form"], x))]
    lifts = [("", comparison)]
    if comparison["adjusted"]:
        lifts = [("adjusted, ", comparison["adjusted"]), ("unadjusted, ", comparison)]
    for of, estimates in lifts:
        for scale, write in scales:
            estimate = estimates[scale]
            if estimate["value"] is None:
                continue
            texts = [write(estimate["value"])]
            for name, title in (("anytime", "safe to check daily"), ("fixed", "one look")):
                its = estimate[name]
                if its is not None:
                    p = p_words(its["p_adjusted"])
                    texts.append(f"{write(its['low'])} to {write(its['high'])} ({title}, {p})")
            yield f"Change, {of}{scale}", "; ".join(texts)
    if comparison["adjustment"]:
        yield "Days before", comparison["adjustment"]
    if len(metric["comparisons"]) > 1:
        yield "Several arms", "Ranges and p-values are corrected for all treatments (Holm)."
    least = comparison["detectable"]["relative_anytime"]
    if least is not None:
        users = counted(comparison["users"], "user")
        yield "Could be found", f"With {users} changes above {share(least)} are found reliably."
    if comparison["waits_words"]:
        yield "Days until a change would be found", comparison["waits_words"]


def _course(found: Document, primary: Document, arm: str) -> Iterator[DailyLift]:
    scale = _comparison(primary, arm)["verdict"]["scale"]
    write = change if scale == Scale.RELATIVE else lambda x: difference(primary["form"], x)
    for entry in found.get("history", ()):
        its = entry["metrics"].get(primary["name"], {}).get(arm)
        if its is None or its["value"] is None:
            continue
        interval, low, high, ranges = its["anytime"], None, None, "–"
        if interval is not None:
            low, high = float(interval["low"]), float(interval["high"])
            ranges = f"{write(low)} to {write(high)}"
        lift = ShownLift(write(its["value"]), ranges, "", its["value"], low, high)
        yield DailyLift(datetime.date.fromisoformat(entry["day"]), entry["users"], lift)


# Groups of users -------------------------------------------------------------------------------

_AGES = {"first day": "First day", "days 2-3": "Days 2 to 3", "days 4-7": "Days 4 to 7"}


def _ages(primary: Document, arm: str) -> ForestPlot | None:
    rows = []
    for entry in primary["ages"]:
        comparison = _comparison(entry, arm)
        title = _AGES.get(entry["age"], "After a week")
        lift = lift_of(comparison, {**primary, "margin": None}, side(comparison, primary))
        rows.append(CardRow(title, "", lift, users=sum(each["users"] for each in entry["arms"])))
    if len(rows) < 2:
        return None
    words = "A change that shrinks from row to row is a novelty effect."
    return ForestPlot("By days since exposure", "Does the effect fade?", rows, [words])


def _segments(found: Document, arm: str) -> ForestPlot:
    rows = []
    for value, readout in found["values"].items():
        if readout["last"] is None:
            continue
        primary = _primary(readout)
        comparison = _comparison(primary, arm)
        lift = lift_of(comparison, {**primary, "margin": None}, side(comparison, primary))
        rows.append(CardRow(value, "", lift, users=sum(readout["users"].values())))
    tests = [each["sentence"] for each in found["heterogeneity"] if each["arm"] == arm]
    return ForestPlot(
        f"By {found['by']}", "Is it the same everywhere?", rows, [*tests, found["words"]]
    )


def side(comparison: Document, metric: Document) -> str:
    """Whether all of an interval is a gain, or a loss."""
    interval = comparison["interval"]
    if interval is None or interval["low"] <= 0 <= interval["high"]:
        return OPEN
    return GOOD if (interval["low"] > 0) == (metric["direction"] == "higher") else BAD


# What it rests on ------------------------------------------------------------------------------


def _split(primary: Document) -> Fact:
    its = primary["split_test"]
    total = sum(its["users"].values())
    shares = " : ".join(f"{100 * n / total:.1f}" if total else "–" for n in its["users"].values())
    planned = " : ".join(number(100 * p).removesuffix(".0") for p in its["expected"].values())
    kind = BAD if its["is_wrong"] else GOOD if total else OPEN
    return Fact("Split", f"{shares}, planned {planned}", kind)


def _guardrails(found: Document) -> Fact | None:
    guards = [m for m in found["metrics"] if m["role"] == "guardrail"]
    return guardrails_held([c["verdict"]["outcome"] for m in guards for c in m["comparisons"]])


def guardrails_held(outcomes: Sequence[str]) -> Fact | None:
    """How many guardrails hold, of these verdicts; None without any.

    >>> guardrails_held(["no harm beyond the margin", "keep running"]).text
    '1 of 2 hold'
    """
    if not outcomes:
        return None
    held = sum(outcome in (Outcome.NO_HARM, Outcome.BETTER) for outcome in outcomes)
    is_harmed = any(outcome in (Outcome.HARM, Outcome.WORSE) for outcome in outcomes)
    kind = BAD if is_harmed else GOOD if held == len(outcomes) else OPEN
    return Fact("Guardrails", f"{held} of {len(outcomes)} hold", kind)


def _progress(found: Document) -> DayProgress | None:
    data, advice = found["data"], found["recommendation"]
    if data is None:
        return None
    days, start = data["days"], datetime.date.fromisoformat(found["start"])
    end = None if found["end"] is None else datetime.date.fromisoformat(found["end"])
    action, more = (None, None) if advice is None else (advice["action"], advice["days"])
    of = days_in_all(days, start, end, action, more)
    if of is not None and of > days:
        words = f"Day {days} of {'about ' * (end is None)}{of}"
    else:
        words = data["words"][0].upper() + data["words"][1:]
    return DayProgress(days, of, found["min_days"], words)


def days_in_all(
    days: int, start: datetime.date, end: datetime.date | None, action: str | None, more: int | None
) -> int | None:
    """How many days an experiment takes that has had so many: until its ``end``, or as long as its
    advice waits (``more``); None where that is not known.

    >>> days_in_all(3, datetime.date(2026, 11, 2), datetime.date(2026, 11, 15), None, None)
    14
    >>> days_in_all(3, datetime.date(2026, 11, 2), None, "keep running", 9)
    12
    """
    if end is not None:
        return max(days, (end - start).days + 1)
    if action in (Action.WAIT, Action.KEEP_RUNNING) and more is not None:
        return days + more
    return None


def _health(found: Document, primary: Document) -> Iterator[Fact]:
    its, titles = primary["split_test"], {m["name"]: m["title"] for m in found["metrics"]}
    users = " : ".join(f"{n:,}" for n in its["users"].values())
    how = "not as planned" if its["is_wrong"] else "as planned"
    if sum(its["users"].values()):
        kind = BAD if its["is_wrong"] else GOOD
        yield Fact("Split", f"{users}, {how} ({p_words(its['p_value'])})", kind)
    else:
        yield Fact("Split", "no user was in an arm yet", OPEN)
    several, ratio = found["users_in_several_arms"], found["users_in_several_arms_ratio"]
    text = f"{several:,} ({share(ratio)}), left out of all days" if several else "none"
    yield Fact("Users in more than one arm", text, WARN if ratio >= 0.01 else GOOD)
    if found["outside"] is not None:
        before, never = found["outside"]["before_exposure"], found["outside"]["unexposed"]
        parts = [
            *([f"{before:,} came before their user saw an arm"] if before else []),
            *([f"{never:,} are of users who never saw an arm"] if never else []),
        ]
        yield Fact("Clicks and purchases ignored", "; ".join(parts) or "none", "")
    if found["user_sample_ratio"] < 1:
        yield Fact("Users read", f"{share(found['user_sample_ratio'])} of all, by hash", WARN)
    for warning in found["warnings"]:
        yield Fact("Warning", warning, WARN)
    for remark in found["remarks"]:
        name, _, rest = remark.partition(": ")
        title = titles.get(name)
        yield Fact(title or "Note", rest if title else remark)


def _settings(found: Document) -> Iterator[Fact]:
    total = sum(found["split"].values())
    shares = ", ".join(f"{arm} {share(part / total)}" for arm, part in found["split"].items())
    yield Fact("Arms", f"{found['control']} is the control; planned: {shares}")
    where = found["dimension"] or ", ".join(found["arm"] or []) or "the schedule"
    yield Fact("Where events say the arm", where)
    yield Fact("Unit", found["unit"])
    for metric in found["metrics"]:
        rule = f"{metric['title']}, {metric['direction']} is better"
        note = _rule(metric)
        yield Fact(
            metric["role"].capitalize(),
            f"{rule}{f', {note}' if 'may' in note else ''} ({metric['name']})",
        )
    level = share(1 - found["alpha"])
    how = "one look after the last day" if found["decide"] == "at_end" else "safe to check daily"
    yield Fact("Ranges", f"{level}, {how}; at least {counted(found['min_days'], 'whole day')}")
    if found["covariate_days"]:
        before = counted(found["covariate_days"], "day")
        yield Fact("Less noise", f"what users did in the {before} before is taken into account")
    end = f" to {_date(found['end'])}" if found["end"] else ""
    yield Fact("Declared", f"{_date(found['start'])}{end}")


# Words -----------------------------------------------------------------------------------------


def _capital(arm: str) -> str:
    """The name of an arm at the beginning of a sentence.

    >>> _capital("new"), _capital("v2_big"), _capital("B")
    ('New', 'v2_big', 'B')
    """
    return arm[0].upper() + arm[1:] if arm.isalpha() else arm


def _lower(title: str) -> str:
    """A title within a sentence; abbreviations stay.

    >>> _lower("Click-through rate"), _lower("NDCG@10")
    ('click-through rate', 'NDCG@10')
    """
    return title if title[1:2].isupper() else title[0].lower() + title[1:]


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _date(iso: str | datetime.date) -> str:
    day = iso if isinstance(iso, datetime.date) else datetime.date.fromisoformat(iso)
    return f"{day.day} {day:%b %Y}"
