"""What fires now, in sentences for whoever is on call: what, how much and at least how much, where,
and what speaks for lost data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct

from streamer.encoding.segments import ALL
from streamer.formatting import change, counted, value_text, whole_percent
from streamer.metrics.compared_metrics import ComparedRatio
from streamer.metrics.sums import topic_of
from streamer.query.checks import CHECKS, AlertVerdict
from streamer.query.silence import LEAST_EXPECTED, Silence
from streamer.stats.alerting.baseline import LEAST_EVENTS, MetricChange, Status
from streamer.stats.alerting.traffic import Traffic

_BEHIND_SECONDS = 60.0
_JOINED = frozenset({"clicks", "conversions"})
"""Topics of which the segments of one are known by the other: lost clicks take orders along."""


class _ShareWords(NamedTuple):
    """A share of the pipeline: up to what it is fine; its title; its name in a line; and what it is
    a share of."""

    most: float
    title: str
    name: str
    of: str


_REFUSED = _ShareWords(0.01, "Refused", "refused", "of the records were refused")
_LATE = _ShareWords(0.01, "Late", "late", "of the events came too late to count")
_UNATTRIBUTED = _ShareWords(
    most=0.2,
    title="Clicks not joined",
    name="clicks without an impression",
    of="of the clicks joined no impression",
)


class Vital(Struct, frozen=True):
    """One figure of the pipeline, up to what it is fine, and whether it is."""

    title: str
    text: str
    bound: str
    is_fine: bool


@dataclass(frozen=True)
class Pipeline:
    """What became of records lately. ``period``: since when, in words; shares are None where
    nothing was read."""

    behind_seconds: float = 0.0
    period: str = ""
    refused: float | None = None
    late: float | None = None
    unattributed: float | None = None
    left_early: int = 0
    """Impressions and feedback that left before their time, as a bound of memory was reached."""

    @property
    def _shares(self) -> Iterator[tuple[_ShareWords, float | None]]:
        yield _REFUSED, self.refused
        yield _LATE, self.late
        yield _UNATTRIBUTED, self.unattributed

    @property
    def problems(self) -> list[str]:
        """What is beyond what a healthy pipeline shows, in words."""
        found = []
        if self.behind_seconds > _BEHIND_SECONDS:
            found.append(f"the values shown are {self.behind_seconds:,.0f} s behind the logs")
        for words, share in self._shares:
            if share is not None and share > words.most:
                found.append(f"{whole_percent(share)} {words.of} {self.period}")
        if self.left_early:
            found.append(
                f"{self.left_early:,} impressions and feedback left memory early {self.period}: "
                "joined rates are not exact"
            )
        return found

    @property
    def words(self) -> str:
        """Its state in one line.

        >>> Pipeline(0.3, "in the past 50 minutes", 0.0, 0.001, 0.03).words
        'refused 0%, late 0.1%, clicks without an impression 3.0% in the past 50 minutes'
        """
        known = [
            f"{words.name} {whole_percent(share)}"
            for words, share in self._shares
            if share is not None
        ]
        return f"{', '.join(known)} {self.period}" if known else "no records lately"

    @property
    def vitals(self) -> list[Vital]:
        """Each figure by itself.

        >>> [vital.text for vital in Pipeline(0.3, "", 0.0, 0.02, None).vitals]
        ['0.3 s', '0%', '2.0%', '–']
        """
        behind = self.behind_seconds
        bound = f"fine up to {_BEHIND_SECONDS:.0f} s"
        vitals = [Vital("Behind", f"{behind:.3g} s", bound, behind <= _BEHIND_SECONDS)]
        for words, share in self._shares:
            text = "–" if share is None else whole_percent(share)
            bound = f"fine up to {whole_percent(words.most)}"
            vitals.append(Vital(words.title, text, bound, (share or 0.0) <= words.most))
        return vitals


class FiringAlert(Struct, frozen=True):
    """A segment of which a check is bad, in words. ``size``: how much it changed, and at least how
    much; ``likely``: what it looks like; ``since_ms``: when it began, between the two other times,
    where that is known."""

    alert: str
    segment: Mapping[str, str]
    name: str
    where: str
    check: str
    status: Status
    sign: str
    headline: str
    size: str
    evidence: Sequence[str]
    likely: str
    since_ms: int | None = None
    since_low_ms: int | None = None
    since_high_ms: int | None = None


def firing_alerts(
    watched: Sequence[AlertVerdict],
    ratios: Mapping[str, ComparedRatio],
    names: Sequence[str],
    pipeline: Pipeline,
    silent: Sequence[Silence] = (),
) -> list[FiringAlert]:
    """Each segment of which a check is bad: the one first that has lost most beside what narrower
    ones explain. ``names``: of the dimensions."""
    found: dict[tuple[str, str, tuple[str, ...]], tuple[float, _Firing]] = {}
    for verdict in watched:
        bad = [
            check for check in CHECKS if (v := verdict.checks.get(check.name)) and v.status.is_bad
        ]
        if bad:
            of = _Firing(verdict, bad[0].name, ratios[verdict.alert.metric], names)
            key = (verdict.alert.metric, of.check, verdict.segment)
            loss = of.loss(watched)
            if key not in found or loss > found[key][0]:
                found[key] = loss, of  # two alerts may watch the same
    every = [of for _, of in found.values()]
    losses = {id(of): loss for loss, of in found.values()}

    def unexplained(of: _Firing) -> float:
        narrower = [losses[id(each)] for each in every if each.is_within(of)]
        return losses[id(of)] - max(narrower, default=0.0)

    def lost_beside(of: _Firing) -> _Firing | None:
        """The segment whose events look lost and are at least half of what this one misses."""
        lost = [each for each in every if each is not of and each.is_lost and each.overlaps(of)]
        most = max(lost, key=lambda each: losses[id(each)], default=None)
        return most if most and 2 * losses[id(most)] >= losses[id(of)] else None

    def of_other_topics(of: _Firing) -> list[_Firing]:
        """What alerts say of the same segment by events of other topics."""
        same = [verdict for verdict in watched if verdict.segment == of.verdict.segment]
        others = [_Firing(v, CHECKS[0].name, ratios[v.alert.metric], names) for v in same]
        return [other for other in others if of.topic and other.topic not in ("", of.topic)]

    ordered = sorted(every, key=lambda of: -unexplained(of))
    return [of.shown(pipeline, silent, lost_beside(of), of_other_topics(of)) for of in ordered]


@dataclass(frozen=True)
class _Firing:
    """One segment, and the check of which is spoken first."""

    verdict: AlertVerdict
    check: str
    ratio: ComparedRatio
    dimensions: Sequence[str]

    @property
    def own(self) -> dict[str, str]:
        """The dimensions that its segment has a value of."""
        pairs = zip(self.dimensions, self.verdict.segment, strict=True)
        return {name: value for name, value in pairs if value != ALL}

    @property
    def name(self) -> str:
        """What its segment is called."""
        return ", ".join(self.own.values()) or "all together"

    @property
    def change(self) -> MetricChange | Traffic:
        """What the check says."""
        return self.verdict.checks[self.check]

    @property
    def topic(self) -> str:
        """The kind of topic whose events its metric counts."""
        return topic_of(self.ratio.above)

    def is_like(self, other: _Firing) -> bool:
        """Whether it is about the same metric, and what the same check says of it."""
        is_same = self.verdict.alert.metric == other.verdict.alert.metric
        return is_same and self.check == other.check

    def is_within(self, other: _Firing) -> bool:
        """Whether its segment is a part of another one's."""
        return self.is_like(other) and self.own.items() > other.own.items()

    def overlaps(self, other: _Firing) -> bool:
        """Whether an event may belong to both segments."""
        pairs = other.own.items()
        return self.is_like(other) and all(self.own.get(n, v) == v for n, v in pairs)

    @property
    def _missing(self) -> float:
        """How many of the numerator are usual where none came: in the newest panes, or else in the
        window."""
        found, began = self.verdict.metric, self.verdict.began
        if self.ratio.form != "percent":
            return 0.0
        usual = found.baseline or 0.0
        if began is not None and usual * began.nothing >= LEAST_EXPECTED:
            return usual * began.nothing
        return usual * found.support if found.value == 0 else 0.0

    @property
    def is_lost(self) -> bool:
        """Whether its events look lost: none came of as many as cannot be missing by chance."""
        return self.check == CHECKS[0].name and self._missing >= LEAST_EVENTS

    @property
    def is_beyond_traffic(self) -> bool:
        """Whether it changed by more than impressions that came twice, or not, explain."""
        own, traffic = self.verdict.metric, self.verdict.traffic
        ends = (own.change_low, own.change_high)
        if traffic is None or traffic.change_low is None or traffic.change_high is None:
            return False
        if own.status is Status.DROPPED:
            return ends[1] is not None and ends[1] < 1 / (1 + traffic.change_high) - 1
        most = math.inf if traffic.change_low <= -1 else 1 / (1 + traffic.change_low) - 1
        return ends[0] is not None and ends[0] > most

    def shown(
        self,
        pipeline: Pipeline,
        silent: Sequence[Silence],
        beside: _Firing | None,
        others: Sequence[_Firing],
    ) -> FiringAlert:
        """As faces show it. ``beside``: a segment whose events look lost; ``others``: what events
        of other topics say of this one."""
        return FiringAlert(
            alert=self.verdict.alert.name,
            segment=dict(zip(self.dimensions, self.verdict.segment, strict=True)),
            name=self.name,
            where=", ".join(f"{n} {v}" for n, v in self.own.items()) or "all together",
            check=self.check,
            status=self.change.status,
            sign="▲" if (self.change.change or -1.0) > 0 else "▼",
            headline=self._what(),
            size=self.size,
            evidence=self._evidence(pipeline, silent),
            likely=self._likely(pipeline, beside, others),
            **self._since(),
        )

    def _since(self) -> dict[str, int]:
        began = self.verdict.began
        if began is None or self.check != CHECKS[0].name:
            return {}
        ends = {"since_low_ms": began.low_ms, "since_high_ms": began.high_ms}
        return {"since_ms": began.since_ms, **ends}

    def _what(self) -> str:
        of = f" of {', '.join(self.own.values())}" if self.own else ""
        found = self.change
        if isinstance(found, Traffic):
            usual = 0 if found.usual is None else found.usual
            return f"Traffic{of} is {counted(found.events, 'event')} instead of {usual:,.0f}"
        title = f"{self.ratio.title}{of}"
        if found.status is Status.NO_TRAFFIC:
            return f"{title}: nothing was counted, {found.expected_support:,.0f} are usual"
        now, usual_value = (
            "unknown" if value is None else value_text(self.ratio.form, value)
            for value in (found.value, found.baseline)
        )
        where = " in the past 7 days" if self.check == "reference" else ""
        return f"{title} is {now}{where} instead of {usual_value}"

    @property
    def size(self) -> str:
        """ "−100%, at least −78%": the end of the interval that is nearer to none."""
        found = self.change
        if found.change is None or found.change_low is None or found.change_high is None:
            return ""
        least = min((found.change_low, found.change_high), key=abs)
        return f"{change(found.change)}, at least {change(least)}"

    @property
    def range(self) -> str:
        """ "−2% to +3%": the interval of its change."""
        found = self.change
        ends = (found.change_low, found.change_high)
        return " to ".join(change(end) for end in ends if end is not None)

    def _evidence(self, pipeline: Pipeline, silent: Sequence[Silence]) -> list[str]:
        """What tells data from reality, a line each."""
        lines = []
        traffic = self.verdict.traffic
        if self.change is not traffic and traffic is not None:
            beside = "" if traffic.usual is None else f", usually {traffic.usual:,.0f}"
            lines.append(f"traffic {traffic.events:,}{beside}")
        lines += [
            each.text[0].lower() + each.text[1:]
            for each in silent
            if self.own.get(each.dimension) == each.value
        ]
        return [*lines, pipeline.words]

    def _takes_along(self, other: _Firing) -> bool:
        """Whether lost events of one of two metrics would be missing in the other one, too."""
        return bool(self.own) and {self.topic, other.topic} == _JOINED

    def _likely(self, pipeline: Pipeline, beside: _Firing | None, others: Sequence[_Firing]) -> str:
        """What it looks like, as far as numbers show."""
        if problems := pipeline.problems:
            return f"look at the data first: {'; '.join(problems)}"
        traffic, found = self.verdict.traffic, self.verdict.metric
        if traffic is not None and traffic.status.is_bad:
            return "traffic has moved, too: look for lost impressions, or for fewer visitors"
        if found.status is Status.NO_TRAFFIC:
            return "nothing arrives: look for lost impressions, or for a surface that is off"
        if self.is_lost:
            return (
                f"looks like lost events: none of the usual {self._missing:,.0f} or so came, while "
                "traffic did"
            )
        if beside is not None:
            return f"events of {beside.name} look lost, which explains most of it"
        moved = [
            each
            for each in others
            if each.verdict.metric.status is found.status and not self._takes_along(each)
        ]
        if (
            found.status.is_bad
            and moved
            and self.is_beyond_traffic
            and all(each.is_beyond_traffic for each in moved)
        ):
            told = " and ".join(f"{each.ratio.title} ({each.size})" for each in moved)
            return f"looks like a real change: events of another topic show it, too: {told}"
        calm = [each for each in others if each.verdict.metric.status is Status.WITHIN]
        told = "".join(f", and {each.ratio.title} is as usual ({each.range})" for each in calm[:1])
        return (
            f"cannot tell lost data from a real change: the pipeline shows no fault{told}. Compare "
            "orders and sessions of the same users"
        )

    def loss(self, watched: Sequence[AlertVerdict]) -> float:
        """How much of its alert's whole is gone, to put the worst first."""
        found = self.change
        if isinstance(found, Traffic):
            own, whole = abs((found.usual or 0) - found.events), 1.0
            every = [v.traffic for v in watched if v.alert is self.verdict.alert]
            sizes = [traffic.usual or 0 for traffic in every if traffic is not None]
            return own / max(whole, *sizes)
        expected = (found.baseline or 0) * found.expected_support
        lost = abs(found.change if found.change is not None else -1) * expected
        sizes = [
            (v.metric.baseline or 0) * v.metric.expected_support
            for v in watched
            if v.alert is self.verdict.alert
        ]
        return lost / max(1e-12, *sizes)
