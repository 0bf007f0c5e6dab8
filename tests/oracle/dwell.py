"""Time on an item: clicks and sessions may both report it, and it counts once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from streamer.settings.model import Settings

from .acceptance import Acceptance
from .dimensions import Dims, Kept, Segment
from .joining import Joins, effective_dims
from .shape import Event
from .sink import Sink
from .span import Span

BOUNDS_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800)


@dataclass(frozen=True)
class Report:
    """What one event says of the time on an item, and the time that it covers."""

    event: Event
    dwell_ms: int
    dims: Dims
    lower_ms: int
    upper_ms: int

    @property
    def rank(self) -> tuple[int, int, int]:
        """The largest dwell first, then the earliest."""
        return (self.dwell_ms, -self.event.event_ms, -self.event.offset)


@dataclass(frozen=True)
class Dwell:
    """A time that counts; ``event``: what reports it, ``upper_ms``: the end of the viewing,
    ``reports``: all that is said."""

    event: Event
    dwell_ms: int
    dims: Dims
    upper_ms: int
    reports: tuple[Event, ...]

    @property
    def event_ms(self) -> int:
        return self.event.event_ms


def dwells_of(events: list[Event], joins: Joins, settings: Settings) -> list[Dwell]:
    """What counts of all reports: those without a request each, of others one a viewing."""
    gap_ms = settings.attribution.session_gap_ms
    named: dict[tuple[int, str, str, str], list[Report]] = defaultdict(list)
    counted = []
    for report in reports_of(events, joins, gap_ms):
        event = report.event
        if event.request_id is None:
            counted.append(winner([report]))
        else:
            named[event.partition, event.joins_as, event.request_id, event.of_item].append(report)
    for reports in named.values():
        counted += [winner(viewing) for viewing in viewings(reports, gap_ms)]
    return counted


def reports_of(events: list[Event], joins: Joins, gap_ms: int) -> list[Report]:
    """Clicks of any kind, and `dwell` events of sessions, that carry a dwell."""
    reports = []
    for event in events:
        reports_dwell = event.topic == "clicks" or (
            event.topic == "sessions" and event.action == "dwell"
        )
        dwell_ms = event.dwell_ms
        if reports_dwell and event.of_item and dwell_ms is not None:
            dims = effective_dims(event, joins)
            lower_ms = event.event_ms - min(dwell_ms, gap_ms)
            reports.append(Report(event, dwell_ms, dims, lower_ms, event.event_ms + dwell_ms))
    return reports


def viewings(reports: list[Report], gap_ms: int) -> list[list[Report]]:
    """Reports of one item in one request, apart where nothing covers a gap."""
    found: list[list[Report]] = []
    upper_ms = 0
    for report in sorted(reports, key=lambda r: r.lower_ms):
        if found and report.lower_ms - upper_ms < gap_ms:
            found[-1].append(report)
            upper_ms = max(upper_ms, report.upper_ms)
        else:
            found.append([report])
            upper_ms = report.upper_ms
    return found


def winner(viewing: list[Report]) -> Dwell:
    """The largest report, a click's where equal; the other topic's best fills its dimensions."""
    best = {
        topic: max((r for r in viewing if r.event.topic == topic), key=lambda r: r.rank)
        for topic in {r.event.topic for r in viewing}
    }
    ranked = sorted(best.values(), key=lambda r: (r.dwell_ms, r.event.topic == "clicks"))
    first, dims = ranked[-1], ranked[-1].dims
    for other in ranked[:-1]:
        pairs = zip(dims, other.dims, strict=True)
        dims = tuple(theirs if own is None else own for own, theirs in pairs)
    upper_ms = max(r.upper_ms for r in viewing)
    reports = tuple(r.event for r in viewing)
    return Dwell(first.event, first.dwell_ms, dims, upper_ms, reports)


def is_settled(dwell: Dwell, verdict: Acceptance, joins: Joins, settings: Settings) -> bool:
    """No report that may still come can join the viewing, and no impression move it."""
    first = dwell.reports[0]
    if first.request_id is None:
        return first.address not in joins.unsettled
    skew_ms = settings.time.max_skew_ms
    clocks = [
        verdict.join_clock_ms(topic, first.partition, skew_ms)
        for topic in ("impressions", "clicks", "sessions")
    ]
    reach_ms = 2 * settings.attribution.session_gap_ms + settings.time.max_lateness_ms
    return dwell.upper_ms + reach_ms < min(clocks)


def read_dwell_totals(out: Sink, dwells: list[Dwell], kept: Kept) -> None:
    """Since the state began, of settled viewings."""
    cells: dict[Segment, list[int]] = defaultdict(list)
    for dwell in dwells:
        for segment in kept.segments(dwell.dims):
            cells[segment].append(dwell.dwell_ms)
    for segment, dwells_ms in cells.items():
        out.histogram("dwell_seconds", dict(segment), BOUNDS_SECONDS, dwells_ms)


def class_of(dwell_ms: int) -> str:
    """The least bound that is not less."""
    return next((str(b) for b in BOUNDS_SECONDS if b * 1000 >= dwell_ms), "inf")


def read_dwells(out: Sink, span: Span, dwells: list[Dwell], kept: Kept) -> None:
    """The series of a window."""
    cells: dict[Segment, list[int]] = defaultdict(list)
    for dwell in dwells:
        if span.covers(dwell.event_ms):
            for segment in kept.segments(dwell.dims):
                cells[segment].append(dwell.dwell_ms)
    for segment, dwells_ms in cells.items():
        labels = {"window": span.label, **dict(segment)}
        out.put("window_dwells", labels, len(dwells_ms))
        mean = Fraction(sum(dwells_ms), 1000)
        out.ratio("dwell_mean_seconds", labels, mean, len(dwells_ms))
        out.quantiles("window_dwell_seconds", labels, dwells_ms)
        for name in {class_of(ms) for ms in dwells_ms}:
            n = sum(class_of(ms) == name for ms in dwells_ms)
            out.put("window_dwell_distribution", {"upto_seconds": name, **labels}, n)
