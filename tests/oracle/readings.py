"""Every series, counted event by event for each window and rollup."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

from streamer.settings.model import Settings

from .acceptance import Acceptance
from .alert_readings import read_alerts
from .briefly import briefly
from .composites import DAY_MS, CompositeIntervals, read_composites
from .dimensions import Kept, Segment
from .drift import DriftReadings
from .engagement import Engagement
from .experiment_readings import read_experiments
from .intervals import Intervals
from .items import ItemReadings
from .joining import Joins, effective_dims, is_feedback
from .off_policy import OffPolicyReadings
from .own_ratios import RatioReadings
from .scores import ScoreReadings
from .shape import ALL_KINDS, EXPOSURES, Address, Event, Labels, Readings, Row
from .sink import Sink
from .slate_readings import SlateReadings
from .slates import Slate, slates_of
from .span import span_of, span_of_items
from .user_days import facts_of

POSITIONS = 50
MATURITIES = ("provisional", "mature")


@dataclass
class Cell:
    """What one segment has in one window (or since the start)."""

    impressions: int = 0
    requests: int = 0
    empty_slates: int = 0
    clicks: int = 0
    clicks_of_users: int = 0
    conversions: int = 0
    conversion_lines: int = 0
    refunds: int = 0
    orders: int = 0
    lines: int = 0
    sold_micros: int = 0
    refund_micros: int = 0
    value_micros: int = 0
    feedback: Counter[str] = field(default_factory=Counter)
    position_impressions: Counter[str] = field(default_factory=Counter)
    position_clicks: Counter[str] = field(default_factory=Counter)
    ctr_impressions: Counter[str] = field(default_factory=Counter)
    ctr_clicked: Counter[str] = field(default_factory=Counter)
    cvr_clicked: Counter[str] = field(default_factory=Counter)
    cvr_converted: Counter[str] = field(default_factory=Counter)


def read(verdict: Acceptance, joins: Joins, settings: Settings) -> Readings:
    """All readings at S, after every topic was read to its end."""
    kept = Kept(verdict.events, settings, verdict.key)
    out = Sink()
    read_counters(out, verdict, joins, kept, settings)
    read_totals(out, verdict, joins, kept, settings)
    stream_ms = verdict.stream_time_ms()
    if stream_ms is not None:
        out.put("stream_time_seconds", {}, stream_ms / 1000)
        read_experiments(out, verdict, joins, settings)
        facts = list(facts_of(verdict, joins, kept, settings))
        read_alerts(out, facts, kept, settings, stream_ms)
        engagement = Engagement(verdict.events, joins, kept, settings)
        engagement.read_totals(out, verdict, joins, settings)
        all_slates = slates_of(joins, settings)
        slates = SlateReadings(all_slates, kept, settings)
        items = ItemReadings(verdict.events, joins, all_slates, kept, settings)
        lengths_ms = settings.windows.lengths_ms
        of_items = max(settings.item_windows, key=lambda label: lengths_ms[label])
        longest = max(lengths_ms, key=lambda label: lengths_ms[label])

        def read_window(into: Sink, label: str, at_ms: int) -> Window:
            window = Window(label, at_ms, verdict, joins, kept, settings)
            window.add_slates(all_slates)
            window.read(into)
            clicks = {segment: cell.clicks_of_users for segment, cell in window.cells.items()}
            tallied = engagement.read(into, window.span, clicks)
            Intervals(window.span, at_ms, kept, settings).read(into, facts, tallied)
            slates.read(into, window.span, at_ms)
            ScoreReadings(joins, kept, settings).read(into, window.span, at_ms)
            OffPolicyReadings(joins, kept, settings).read(into, window.span, at_ms)
            items.read(into, window.span, span_of(longest, at_ms, settings))
            of_catalog = span_of_items(of_items, at_ms, settings)
            of_items_now = span_of_items(label, at_ms, settings)
            items.read_counts(into, of_items_now, of_catalog, at_ms)
            items.read_people(into, of_items_now, window.span)
            RatioReadings(verdict, joins, kept, settings).read(into, window.span, tallied)
            return window

        for label in settings.windows.lengths:
            window, past = read_window(out, label, stream_ms), Sink()
            has_past = label in settings.windows.day_before
            then = span_of(label, stream_ms - DAY_MS, settings)
            first_ms = min(event.event_ms for event in verdict.events)
            is_whole = first_ms <= then.first * then.pane_ms
            has_past = is_whole and label in settings.windows.day_before
            if has_past:
                read_window(past, label, stream_ms - DAY_MS)
                shown = {segment_of(key[1], settings) for key in out.readings if is_of(key, label)}
                DriftReadings(joins, kept, settings).read(out, window.span, then, shown)
            read_composites(out, past.readings, settings, label)
            of_groups = CompositeIntervals(window.span, stream_ms, kept, settings)
            of_groups.read(out, facts, has_past)
    return briefly(out.readings, settings)


def is_of(key: tuple[str, Labels], label: str) -> bool:
    """Whether a series is of the window."""
    return ("window", label) in key[1]


def segment_of(labels: Labels, settings: Settings) -> Segment:
    """The segment of a series."""
    return frozenset((name, text) for name, text in labels if name in settings.dimension_names)


def read_counters(
    out: Sink, verdict: Acceptance, joins: Joins, kept: Kept, settings: Settings
) -> None:
    """Counters that have no dimension labels."""
    events = [e for e in verdict.events if not e.line]
    accepted = Counter(e.topic for e in events)
    anonymous = Counter(e.topic for e in events if e.person is None)
    cut = Counter(e.topic for e in events for _ in range(e.cut))
    duplicates = Counter(topic for topic, _, _ in verdict.duplicates)
    late = Counter(topic for topic, _, _ in verdict.late)
    for topic in ALL_KINDS:
        if topic == EXPOSURES and settings.kafka.topics.exposures is None:
            continue
        labels = {"topic": topic}
        out.put("source_info", {**labels, "source": topic, "cluster": "kafka", "format": "json"}, 1)
        out.put("events_total", labels, verdict.seen[topic])
        out.put("accepted_total", labels, accepted[topic])
        out.put("duplicates_total", labels, duplicates[topic])
        out.put("late_total", labels, late[topic])
        out.put("ignored_total", labels, verdict.ignored[topic])
        out.put("anonymous_total", labels, anonymous[topic])
        out.put("cut_values_total", labels, cut[topic])
    for (topic, reason), n in Counter((r[0], r[3]) for r in verdict.rejects).items():
        out.put("rejected_total", {"topic": topic, "reason": reason}, n)
    missed = Counter(a[0] for a in joins.final if joins.joined[a] is None and not is_line(a))
    unsettled = Counter(a[0] for a in joins.unsettled if not is_line(a))
    for topic in ("clicks", "conversions"):
        out.put("unattributed_total", {"topic": topic}, missed[topic])
        out.put("unsettled", {"topic": topic}, unsettled[topic])
    for i, dimension in enumerate(settings.dimensions):
        capped = sum(kept.capped(e, i) for e in events)
        out.put("label_values_capped_total", {"dimension": dimension.name}, capped)
    for rollup in settings.rollups:
        if len({*rollup}) > 1:
            names = [name for name in settings.dimension_names if name in rollup]
            out.put("segments_capped_total", {"rollup": " x ".join(names)}, 0)
    out.put("join_gap_total", {}, 0)
    out.put("settled_moved_total", {}, 0)
    out.put("identity_exact", {}, 1)
    out.put("user_sample_ratio", {}, 1.0)
    out.put("users_behind_seconds", {}, 0)


def read_totals(
    out: Sink, verdict: Acceptance, joins: Joins, kept: Kept, settings: Settings
) -> None:
    """Since the state began: settled events only."""
    cells: dict[Segment, Cell] = defaultdict(Cell)
    unsettled = set(joins.unsettled)
    for event in verdict.events:
        if event.topic == "sessions" or event.address in unsettled:
            continue
        for segment in kept.segments(effective_dims(event, joins)):
            count(cells[segment], event, settings)
    for segment, cell in cells.items():
        labels = dict(segment)
        if cell.impressions or cell.feedback or cell.lines:
            out.put("impressions_total", labels, cell.impressions)
            out.put("clicks_total", labels, cell.clicks)
        out.support("conversions_total", labels, cell.orders)
        if cell.sold_micros or cell.lines or cell.refunds:
            out.put("conversion_value_total", labels, cell.sold_micros / 1e6)
        out.support("refunds_total", labels, cell.refunds)
        out.support("refund_value_total", labels, cell.refund_micros / 1e6)
        for kind, n in cell.feedback.items():
            out.put("feedback_total", {"feedback": kind, **labels}, n)


def count(cell: Cell, event: Event, settings: Settings) -> None:
    """Add one event where its own time and effective dimensions put it."""
    if event.topic == "impressions":
        cell.impressions += len(event.shown)
        cell.requests += not event.shown
        cell.empty_slates += not event.shown
    elif event.topic == "conversions":
        cell.conversions += event.orders * (event.line == 0)
        cell.conversion_lines += event.orders
        cell.refunds += event.is_refund and event.line == 0
        cell.orders += event.orders > 0 and event.line == 0
        cell.lines += event.orders > 0
        cell.sold_micros += max(0, event.value_micros)
        cell.value_micros += event.value_micros
        cell.refund_micros += max(0, -event.value_micros)
    elif event.topic == "clicks":
        kind = event.kind if is_feedback(event, settings) else "other"
        cell.feedback[kind] += 1
        cell.clicks += event.kind == "click"
        cell.clicks_of_users += event.kind == "click" and event.person is not None


def is_line(address: Address) -> bool:
    """Whether it is of a further line of an order, which was counted with the first."""
    return address[0] == "conversions" and len(address) > 3


def position_class(position: int) -> str:
    return str(position) if position <= POSITIONS else "other"


class Window:
    """One window, read at S."""

    def __init__(
        self,
        label: str,
        stream_ms: int,
        verdict: Acceptance,
        joins: Joins,
        kept: Kept,
        settings: Settings,
    ) -> None:
        self.stream_ms = stream_ms
        self.joins = joins
        self.kept = kept
        self.settings = settings
        self.span = span_of(label, stream_ms, settings)
        self.cells: dict[Segment, Cell] = defaultdict(Cell)
        self.whole = Cell()
        for event in verdict.events:
            if event.topic != "sessions" and self.span.covers(event.event_ms):
                self.add_event(event)
        for row in joins.rows:
            if self.span.covers(row.event.event_ms):
                self.add_row(row)

    def add_slates(self, slates: list[Slate]) -> None:
        for event in (slate.event for slate in slates):
            if self.span.covers(event.event_ms):
                for cell in self.places(event.dims):
                    cell.requests += 1

    def is_mature(self, event_ms: int, horizon_ms: int) -> bool:
        """Feedback on what happened in that pane can no longer come."""
        wait_ms = horizon_ms + self.settings.time.max_lateness_ms
        return self.span.is_mature(event_ms, wait_ms, self.stream_ms)

    def places(self, dims: tuple[str | None, ...]) -> list[Cell]:
        return [self.whole, *(self.cells[s] for s in self.kept.segments(dims))]

    def add_event(self, event: Event) -> None:
        for cell in self.places(effective_dims(event, self.joins)):
            count(cell, event, self.settings)
            if event.topic == "impressions":
                for shown in event.shown:
                    if shown.position is not None:
                        cell.position_impressions[position_class(shown.position)] += 1
            elif event.topic == "clicks":
                position = self.effective_position(event)
                if event.kind == "click" and position is not None:
                    cell.position_clicks[position_class(position)] += 1

    def effective_position(self, event: Event) -> int | None:
        row = self.joins.joined.get(event.address)
        if event.position is None and row is not None:
            return row.shown.position
        return event.position

    def add_row(self, row: Row) -> None:
        """Attributed counts: by the impression's own time and dimensions."""
        horizons = self.settings.attribution
        for cell in self.places(row.event.dims):
            for maturity in MATURITIES:
                provisional = maturity == "provisional"
                if provisional or self.is_mature(row.event.event_ms, horizons.click_ms):
                    cell.ctr_impressions[maturity] += 1
                    cell.ctr_clicked[maturity] += row.clicked
                if provisional or self.is_mature(row.event.event_ms, horizons.conversion_ms):
                    cell.cvr_clicked[maturity] += row.clicked
                    cell.cvr_converted[maturity] += row.converted

    def read(self, out: Sink) -> None:
        for segment, cell in self.cells.items():
            labels = {"window": self.span.label, **dict(segment)}
            read_traffic(out, labels, cell)
            read_attributed(out, labels, cell)
            read_positions(out, labels, cell, self.whole)


def read_traffic(out: Sink, labels: dict[str, str], cell: Cell) -> None:
    if cell.impressions or cell.feedback or cell.conversion_lines:
        out.put("window_impressions", labels, cell.impressions)
        out.put("window_clicks", labels, cell.clicks)
    out.support("window_requests", labels, cell.requests)
    out.ratio("zero_results_ratio", labels, cell.empty_slates, cell.requests)
    out.support("window_conversions", labels, cell.conversions)
    out.support("window_conversion_lines", labels, cell.conversion_lines)
    if cell.value_micros or cell.conversion_lines or cell.refunds:
        out.put("window_conversion_value", labels, cell.value_micros / 1e6)
    out.support("window_refunds", labels, cell.refunds)
    out.support("window_refund_value", labels, cell.refund_micros / 1e6)
    value = Fraction(cell.value_micros, 10**6)
    out.ratio("order_value_mean", labels, value, cell.conversions)
    out.ratio("conversion_value_per_click", labels, value, cell.clicks)
    out.ratio("conversion_value_per_impression", labels, value, cell.impressions)
    for kind, n in cell.feedback.items():
        out.put("window_feedback", {"feedback": kind, **labels}, n)
    out.ratio("ctr_ratio", labels, cell.clicks, cell.impressions)
    out.ratio("cvr_ratio", labels, cell.conversions, cell.clicks)


def read_attributed(out: Sink, labels: dict[str, str], cell: Cell) -> None:
    for maturity in MATURITIES:
        matured = {"maturity": maturity, **labels}
        shown, clicked = cell.ctr_impressions[maturity], cell.ctr_clicked[maturity]
        out.support("window_ctr_attributed_impressions", matured, shown)
        out.support("window_ctr_attributed_clicked", matured, clicked)
        out.ratio("ctr_attributed_ratio", matured, clicked, shown)
        clicked, converted = cell.cvr_clicked[maturity], cell.cvr_converted[maturity]
        out.support("window_cvr_attributed_clicked", matured, clicked)
        out.support("window_cvr_attributed_converted", matured, converted)
        out.ratio("cvr_attributed_ratio", matured, converted, clicked)


def read_positions(out: Sink, labels: dict[str, str], cell: Cell, whole: Cell) -> None:
    classes = set(cell.position_impressions) | set(cell.position_clicks)
    expected = Fraction(0)
    for name in classes:
        placed = {"position": name, **labels}
        shown, clicks = cell.position_impressions[name], cell.position_clicks[name]
        out.support("window_position_impressions", placed, shown)
        out.support("window_position_clicks", placed, clicks)
        out.ratio("ctr_position_ratio", placed, clicks, shown)
        if shown:
            share = Fraction(whole.position_clicks[name], whole.position_impressions[name])
            expected += shown * share
    out.support("window_coec_expected_clicks", labels, float(expected))
    out.ratio("coec_ratio", labels, sum(cell.position_clicks.values()), expected)
