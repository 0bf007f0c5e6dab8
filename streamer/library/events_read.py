"""What was read of events: how many of each topic and kind, what about them is implausible, and
those that do not count."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamer.formatting import printable
from streamer.ingest.read_sample import TopicRead
from streamer.ingest.rejections import Explainer
from streamer.library.table import Cell, Table
from streamer.query.what_was_read import WhatWasRead
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.sources.line_batch import NO_TOPIC
from streamer.sources.replay import Dead

_MANY_LATE, _MANY_REJECTED = 0.01, 0.5
"""Shares of the events of a topic."""


def _doubts(topic: TopicRead) -> Iterator[str]:
    """What is likely wrong about the events of a topic, and what to do."""
    if (late := topic.late or 0) > _MANY_LATE * topic.records:
        yield (
            f"{late:,} of {topic.records:,} events of {topic.topic} are late: they stand "
            "behind events that are newer by more than time.max_lateness; sort them by time"
        )
    if (rejected := sum(topic.rejected.values())) > _MANY_REJECTED * topic.records:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in topic.rejected.items())
        yield (
            f"{rejected:,} of {topic.records:,} events of {topic.topic} are rejected ({reasons}): "
            "rejected says why"
        )


class EventsRead:
    """What was read since counting began.

    ``topics``: a row each, with ``events``, of which ``accepted``, ``duplicates``, ``late``,
    ``ignored`` and ``rejected``. ``kinds``: of the first events, by kind, how many have a user, and
    of feedback how many ``joined`` an impression, and why others ``missed``. ``findings``: what is
    most likely a wrong mapping, and what to do about it.
    """

    def __init__(self, read: WhatWasRead, no_topic: int = 0, notes: Sequence[str] = ()) -> None:
        """``no_topic``: events that belong to none; ``notes``: findings besides."""
        self._read, self._no_topic, self._notes = read, no_topic, notes

    @property
    def topics(self) -> Table:
        """A row for each topic."""
        names = ("topic", "events", "accepted", "duplicates", "late", "ignored", "rejected")
        n = self._no_topic
        others = [TopicRead("(of no topic)", n, late=0, rejected={"no topic": n})] if n else []
        rows: list[dict[str, Cell]] = [
            {name: getattr(topic, name, 0) for name in names}
            | {"events": topic.records, "rejected": sum(topic.rejected.values())}
            for topic in (*self._read.topics, *others)
        ]
        return Table.of_rows(rows, names)

    @property
    def kinds(self) -> Table:
        """A row for each kind of events, of the first ones."""
        names = ("kind", "events", "with_person", "compared", "joined", "missed")
        rows = [{name: getattr(kind, name) for name in names} for kind in self._read.kinds]
        return Table.of_rows(rows, names)

    @property
    def findings(self) -> list[str]:
        """What is implausible, with its correction; empty where all is well."""
        topics = (text for topic in self._read.topics for text in _doubts(topic))
        return [*self._notes, *topics, *(str(each) for each in self._read.implausible)]

    def __repr__(self) -> str:
        kinds = [repr(self.kinds)] if self._read.kinds else []
        return "\n\n".join([repr(self.topics), *kinds, *map(printable, self.findings)])

    def _repr_html_(self) -> str:
        from html import escape

        tables = [self.topics, self.kinds] if self._read.kinds else [self.topics]
        texts = (f"<p>{escape(printable(text))}</p>" for text in self.findings)
        return "".join([*(table._repr_html_() for table in tables), *texts])


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """An event that does not count. ``field`` is its name in the event ("": the event as a whole),
    ``found`` what stands there, ``expected`` what may stand there; ``value`` is the event,
    unchanged."""

    topic: str
    reason: str
    field: str
    found: str
    expected: str
    value: bytes


class RejectedEvents:
    """Events that do not count: iterate over the first ``limits.MAX_KEPT_REJECTS`` of them.
    ``len`` and ``reasons`` are of all."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kept: list[Dead] = []
        self._reasons = Tally[str]()
        self._of_no_topic = 0

    def count(self, reasons: Mapping[str, int], of_no_topic: int) -> None:
        """Count some that are not kept."""
        self._reasons.update(reasons)
        self._of_no_topic += of_no_topic

    def add(self, dead: Dead) -> None:
        """Count one, and keep it if there is room."""
        self._reasons[dead.reason] += 1
        self._of_no_topic += dead.topic == NO_TOPIC
        if len(self._kept) < limits.MAX_KEPT_REJECTS:
            self._kept.append(dead)

    @property
    def reasons(self) -> Mapping[str, int]:
        """Reason → how many."""
        return dict(self._reasons)

    @property
    def of_no_topic(self) -> int:
        """How many belong to no topic, as their type is missing or unknown."""
        return self._of_no_topic

    def __len__(self) -> int:
        return self._reasons.total()

    def __iter__(self) -> Iterator[RejectedEvent]:
        explainer = Explainer(self._settings)
        for dead in self._kept:
            why = explainer.explain(dead.topic, dead.value, dead.reason, dead.beside)
            log = self._settings.logs.get(dead.topic)
            topic = "" if log is None else log.topic
            yield RejectedEvent(topic, dead.reason, why.field, why.found, why.expected, dead.value)

    def __repr__(self) -> str:
        counts = ", ".join(f"{n:,} {reason}" for reason, n in self._reasons.most_common())
        return f"{len(self):,} rejected events{f' ({counts})' if counts else ''}"
