"""``streamer why``: in which values an alert's metric moved, by reading the log again."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Sequence

from streamer import formatting
from streamer.cli.check_alerts import stored_views
from streamer.cli.files import feed
from streamer.cli.terminal import (
    STRONG,
    Grid,
    TextColumn,
    console_of,
    print_json,
    say,
    text_column,
    waiting,
)
from streamer.errors import UsageError
from streamer.ingest.record import of_texts
from streamer.kafka.topics import partition_count
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.compared_metrics import AlertMeasures, ComparedRatio
from streamer.query.alerts import AlertEvaluation
from streamer.query.causes import (
    Causes,
    ComparedPeriods,
    Period,
    alert_of,
    compared_with,
    horizon_ms,
    incident,
    ratio_of,
    recording,
    rows_of,
)
from streamer.settings.alerts import Alert
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.sources.file_span import with_times
from streamer.sources.files import FileSource
from streamer.sources.replay import Replay
from streamer.state.log_identity import resolve
from streamer.state.redis.store import RedisStore
from streamer.stats.alerting.crossings import Found, PeriodSums, RatioRows, Search, search
from streamer.worker.log_reader import LogReader


def main(args: argparse.Namespace) -> int:
    """Print what is found; UsageError where the alert's metric or the log does not allow it."""
    if args.begin is None and args.end is not None:
        raise UsageError("--to needs --from: when the incident began")
    given = None
    if args.begin is not None:
        given = Period(args.begin, args.end or time.time_ns() // 1_000_000)
        if given.begin_ms >= given.end_ms:
            raise UsageError("--from is not before --to")
    settings = load(args.config, os.environ)
    alert = alert_of(settings, args.alert)
    ratio = ratio_of(alert, AlertMeasures(settings).ratios)
    own = recording(settings, alert, args.field)
    if args.files:
        compared, rows = _of_files(of_texts(own), alert, ratio, args.files, given)
    else:
        compared, rows = asyncio.run(_of_topics(settings, own, alert, ratio, given))
    with waiting("looking for what changed"):
        found = search(rows, is_count=ratio.unit == 1)
    about = (alert.name, alert.metric, ratio.title, ratio.form)
    causes = Causes(*about, *compared, found)
    if args.json:
        print_json(causes)
    else:
        print_causes(causes)
    return 0


def _of_files(
    own: Settings, alert: Alert, ratio: ComparedRatio, files: Sequence[str], given: Period | None
) -> tuple[ComparedPeriods, RatioRows]:
    """Without times the last window of the files is what moved."""
    with waiting("reading the times"):
        held, (first_ms, last_ms) = with_times(files, own)
    end_ms = last_ms + 1 - AlertMeasures(own).series_of(alert)[0].lag_ms
    now = given or Period(end_ms - alert.window_ms, end_ms)
    now = Period(now.begin_ms, max(now.begin_ms + 1, min(now.end_ms, last_ms + 1)))
    compared = compared_with(alert, now, first_ms)
    replay = Replay(own, catalogue=Catalogue(own, (compared.then, compared.now)))
    feed(replay, FileSource(held, own))
    return compared, rows_of(replay.partitions[0], ratio.unit)


async def _of_topics(
    settings: Settings, own: Settings, alert: Alert, ratio: ComparedRatio, given: Period | None
) -> tuple[ComparedPeriods, RatioRows]:
    with waiting("asking Kafka and Redis"):
        own, _ = await resolve(own)
        now = given or await _incident(settings, alert)
        reader, partitions = LogReader(own), await partition_count(own)
        compared = compared_with(alert, now, await reader.retained_ms(partitions))
    catalogue, reach_ms = Catalogue(own, (compared.then, compared.now)), horizon_ms(own, ratio)
    late_ms, rows = own.time.max_lateness_ms, None
    times = (max(0, compared.then.begin_ms - reach_ms), now.end_ms + reach_ms + late_ms)
    for number in range(partitions):
        with waiting(f"reading partition {number} of {partitions}"):
            partition = await reader.read(catalogue, number, *times)
        rows = rows_of(partition, ratio.unit, rows)
    assert rows is not None
    return compared, rows


async def _incident(settings: Settings, alert: Alert) -> Period:
    """What the alert's status says now."""
    store = RedisStore(settings.redis)
    try:
        views = await stored_views(settings, store)
    finally:
        await store.close()
    if not views:
        raise UsageError("Redis holds no status of the alert: name the time with --from")
    measures = Catalogue(settings).alert_measures
    at_ms = max(view.header.stream_ms for view in views)
    return incident(AlertEvaluation(settings, alert, measures, views, at_ms))


def print_causes(causes: Causes) -> None:
    """What was found, in words and as a table."""
    console, search = console_of(), causes.search
    moved = _change(search.whole)
    say(console, f"{causes.title}: {_rates(search.whole, causes.form)} ({moved})", style=STRONG)
    note = f" ({causes.note})" if causes.note else ""
    say(console, f"{formatting.span(*causes.now)}, compared with {causes.compared}{note}")
    if search.people_share < 1:
        say(console, f"From a sample of {formatting.share(search.people_share)} of the people.")
    if search.crawlers:
        people = "1 person" if search.crawlers == 1 else f"{search.crawlers:,} people"
        amounts = (search.crawled.denominator_then, search.crawled.denominator_now)
        of = "{:,.0f} of the denominator then and {:,.0f} now".format(*amounts)
        say(console, f"Left out: {people} with {of}, who alone would have moved the total.")
    if not search.found:
        say(console, f"Nothing found: {_why_nothing(search)}.")
        return
    headings = ("then", "now", "value", "moved by", "beside others", "others then")
    grid = Grid(text_column("Values"), *map(TextColumn, headings))
    for found in search.found:
        grid.add(*_row(found, causes.form))
    grid.print(console)


def _why_nothing(search: Search) -> str:
    if not min(search.whole.denominator_then, search.whole.denominator_now):
        return "nothing was counted in one of the two periods"
    if not search.looked_at:
        return "too few events to look into any values"
    return f"none of {search.looked_at:,} values and crossings stands out"


def _row(found: Found, form: str) -> tuple[str, ...]:
    of, ends = found.sums, sorted((abs(found.low), abs(found.high)))
    amount = f"{formatting.number(abs(found.excess))} {'fewer' if found.excess < 0 else 'more'}"
    return (
        " × ".join(f"{name} {value}" for name, value in found.values.items()),
        f"{of.numerator_then:,.0f} of {of.denominator_then:,.0f}",
        f"{of.numerator_now:,.0f} of {of.denominator_now:,.0f}",
        _rates(of, form),
        found.by,
        f"{amount} ({' to '.join(map(formatting.number, ends))})",
        _change(found.left),
    )


def _change(of: PeriodSums) -> str:
    return "–" if of.change is None else formatting.change(of.change)


def _rates(of: PeriodSums, form: str) -> str:
    rates = (of.rate_then, of.rate_now)
    return " → ".join("none" if r is None else formatting.value_text(form, r) for r in rates)
