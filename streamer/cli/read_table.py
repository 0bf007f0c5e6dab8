"""What was read, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from streamer.ingest.read_sample import KindRead, ReadSample, TopicRead
from streamer.ingest.record import record_decoder
from streamer.query.what_was_read import WhatWasRead, unknown_arms
from streamer.settings.model import Settings
from streamer.sources.files import NO_TOPIC, Line

_WIDTH = 120
"""Characters of a line, where the output is no terminal."""
_MISSES = {"pair": "item not shown to the user", "ts": "before the impression"}


def looked_at(
    batches: Iterable[list[Line]], sample: ReadSample, settings: Settings
) -> Iterator[list[Line]]:
    """The same lines, the first of which are looked at on the way."""
    decoder = record_decoder(settings)
    for lines in batches:
        for log, _, raw in lines if not sample.is_full else ():
            if log != NO_TOPIC:
                sample.add(log, raw, decoder.decode_all(log, raw))
        yield lines


def console_of(*, is_stderr: bool = False) -> Console:
    """A console of plain tables."""
    console = Console(highlight=False, stderr=is_stderr)
    if not console.is_terminal:
        console.width = _WIDTH
    return console


def print_read(console: Console, settings: Settings, read: WhatWasRead) -> None:
    """Print what was read of topics and of kinds of events."""
    console.print(_topics(read.topics))
    if read.kinds:
        console.print(_kinds(settings, read))


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left")
    return table


def _topics(topics: Sequence[TopicRead]) -> Table:
    counts = ("events", "accepted", "duplicates", "late", "ignored", "rejected", "with a user")
    table = _table("What was read", "topic", *counts)
    for topic in topics:
        rejected = ", ".join(f"{n:,} {reason}" for reason, n in sorted(topic.rejected.items()))
        with_user = _share(topic.accepted - topic.anonymous, topic.accepted)
        numbers = (topic.records, topic.accepted, topic.duplicates, topic.late, topic.ignored)
        counted = ("" if n is None else f"{n:,}" for n in numbers)
        table.add_row(topic.topic, *counted, rejected or "0", with_user)
    return table


def _kinds(settings: Settings, read: WhatWasRead) -> Table:
    headings = (
        "events",
        "with a user",
        "joined an impression",
        "others: what differs",
        "with a value",
    )
    table = _table(f"Of {read.sampled:,} events looked at", "kind", *headings)
    for kind in read.kinds:
        table.add_row(kind.kind, *_cells(kind))
    if arms := unknown_arms(settings, read.arms):
        names = ", ".join(f"{name} {n:,}" for name, n in list(arms.items())[:10])
        table.caption = f"Values that are no arm of an experiment: {names}"
    return table


def _cells(kind: KindRead) -> Iterator[str]:
    yield f"{kind.events:,}"
    yield _share(kind.with_user, kind.counted)
    is_feedback = kind.kind in ("clicks", "conversions")
    yield f"{kind.joined:,} of {kind.compared:,}" if is_feedback else ""
    yield ", ".join(f"{_MISSES.get(name, name)} {n:,}" for name, n in kind.misses.most_common())
    yield _share(kind.valued, kind.counted) if kind.kind == "conversions" else ""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""
