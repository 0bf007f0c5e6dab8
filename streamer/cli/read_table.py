"""What was read, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from streamer.cli.terminal import Grid, TextColumn, name_column, text_column
from streamer.ingest.read_sample import KindRead, TopicRead
from streamer.query.what_was_read import WhatWasRead, joins_in_words, unknown_arms
from streamer.settings.model import Settings


def print_read(console: Console, settings: Settings, read: WhatWasRead) -> None:
    """Print what was read of topics and of kinds of events."""
    _topics(read.topics).print(console)
    if read.kinds:
        _kinds(settings, read).print(console)


def _topics(topics: Sequence[TopicRead]) -> Grid:
    counts = map(TextColumn, ("events", "accepted", "duplicates", "late", "ignored"))
    columns = (name_column("topic"), *counts, text_column("rejected"), TextColumn("with\na user"))
    table = Grid(*columns, title="What was read")
    for topic in topics:
        rejected = ", ".join(f"{n:,} {reason}" for reason, n in sorted(topic.rejected.items()))
        with_person = _share(topic.accepted - topic.anonymous, topic.accepted)
        numbers = (topic.records, topic.accepted, topic.duplicates, topic.late, topic.ignored)
        counted = ("" if n is None else f"{n:,}" for n in numbers)
        table.add(topic.topic, *counted, rejected or "0", with_person)
    return table


def _kinds(settings: Settings, read: WhatWasRead) -> Grid:
    table = Grid(
        *(
            name_column("kind"),
            TextColumn("events"),
            TextColumn("with a user"),
            TextColumn("joined an impression"),
        ),
        *(text_column("others"), TextColumn("with\na value")),
        title=f"Of {read.sampled:,} events looked at",
    )
    for kind in read.kinds:
        table.add(kind.kind, *_cells(kind, read.kinds[0]))
    if arms := unknown_arms(settings, read.arms):
        names = ", ".join(f"{arm} {n:,}" for arm, n in list(arms.items())[:10])
        table.caption = f"Values that are no arm of an experiment: {names}"
    return table


def _cells(kind: KindRead, shown: KindRead) -> Iterator[str]:
    yield f"{kind.events:,}"
    yield _share(kind.with_person, kind.counted)
    is_feedback = kind.kind in ("clicks", "conversions")
    yield from joins_in_words(kind, shown) if is_feedback else ("", "")
    yield _share(kind.valued, kind.counted) if kind.kind == "conversions" else ""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""
