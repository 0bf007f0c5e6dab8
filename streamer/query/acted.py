"""What was acted on: stored before anything is sent, and quoted by readouts ever after."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from streamer.formatting import minute
from streamer.query.notes import Note, Severity
from streamer.settings import limits
from streamer.state.annotations import Annotation

_RECORD, _DELIVERY = "r:", "d:"
_LOOKED = "looked"


class Told(StrEnum):
    """What became of a delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    DRY_RUN = "dry run"


class Numbers(msgspec.Struct, frozen=True):
    """Of the arm and the metric that it is about, at that moment: values, and the lift with the
    ends of the interval that decides, relative to the control or in the unit of the metric."""

    metric: str
    users: int
    control: float | None
    value: float | None
    lift: float | None
    low: float | None
    high: float | None
    is_relative: bool = True


class ActionRecord(msgspec.Struct, frozen=True):
    """What happened to an experiment. ``key``: the same whoever sends it, and however often;
    ``at_ms``: by the store's clock; ``commits``: partition → the commit that it was read from;
    ``is_past``: it had happened before anybody looked, and nobody is told."""

    key: str
    kind: str
    experiment: str
    start: datetime.date
    arm: str
    action: str
    sentence: str
    reason: str
    at_ms: int
    stream_ms: int
    commits: Mapping[int, int]
    since: datetime.date | None = None
    numbers: Numbers | None = None
    owner: str = ""
    url: str = ""
    is_past: bool = False
    seen_ms: int = 0
    """Stream time of the look before, at which it did not hold."""

    @property
    def subject(self) -> tuple[str, datetime.date, str, str]:
        """What it is of: of one of its kind there is one record until it is withdrawn."""
        return self.experiment, self.start, self.kind, self.arm


class Delivery(msgspec.Struct, frozen=True):
    """A record on its way to one receiver. ``hook``: a digest of its settings; ``next_ms``: when it
    is tried again; ``problem``: what the last attempt met."""

    record: str
    hook: str
    place: str
    state: Told = Told.PENDING
    attempts: int = 0
    began_ms: int = 0
    next_ms: int = 0
    ended_ms: int = 0
    problem: str = ""

    @property
    def is_told(self) -> bool:
        """Whether the receiver has taken it."""
        return self.state is Told.DELIVERED

    @property
    def key(self) -> str:
        """Of the delivery in the store."""
        return f"{self.record}/{self.hook}"


class ToldDecision(msgspec.Struct, frozen=True):
    """A record, and what became of its deliveries."""

    record: ActionRecord
    told: Sequence[Delivery]


class DecisionList(msgspec.Struct, frozen=True):
    """Those that are asked for, the oldest first."""

    decisions: Sequence[ToldDecision]


class Acted(msgspec.Struct):
    """Everything that is stored of actions. ``looked_ms``: when somebody looked last."""

    records: dict[str, ActionRecord] = {}
    deliveries: dict[str, Delivery] = {}
    looked_ms: int = 0

    @classmethod
    def of(cls, stored: Mapping[str, bytes]) -> Acted:
        """What a store keeps; entries that cannot be read are left out."""
        found = cls()
        for name, data in stored.items():
            try:
                if name == _LOOKED:
                    found.looked_ms = msgspec.json.decode(data, type=int)
                elif name.startswith(_RECORD):
                    record = msgspec.json.decode(data, type=ActionRecord)
                    found.records[record.key] = record
                elif name.startswith(_DELIVERY):
                    delivery = msgspec.json.decode(data, type=Delivery)
                    found.deliveries[delivery.key] = delivery
            except msgspec.MsgspecError:
                continue
        return found

    def ordered(self) -> list[ActionRecord]:
        """The records, the oldest first."""
        return sorted(self.records.values(), key=lambda record: (record.at_ms, record.key))

    def of_record(self, key: str) -> list[Delivery]:
        """The deliveries of a record."""
        return [each for each in self.deliveries.values() if each.record == key]

    def told_of(self, record: ActionRecord) -> ToldDecision:
        """A record with its deliveries."""
        return ToldDecision(record, self.of_record(record.key))

    def marks(self) -> dict[str, Annotation]:
        """The records as marks on charts."""
        most = limits.MAX_ANNOTATION_CHARS
        return {r.key: Annotation(r.at_ms, r.sentence[:most]) for r in self.ordered()}

    def notes(self, experiment: str, start: datetime.date) -> list[Note]:
        """What readouts of an experiment quote."""
        own = [r for r in self.ordered() if (r.experiment, r.start) == (experiment, start)]
        return [_note(record, self.of_record(record.key)) for record in own]


def stored(
    records: Iterable[ActionRecord] = (),
    deliveries: Iterable[Delivery] = (),
    looked_ms: int | None = None,
) -> dict[str, bytes]:
    """As a store keeps them."""
    found = {f"{_RECORD}{each.key}": msgspec.json.encode(each) for each in records}
    found |= {f"{_DELIVERY}{each.key}": msgspec.json.encode(each) for each in deliveries}
    if looked_ms is not None:
        found[_LOOKED] = msgspec.json.encode(looked_ms)
    return found


def forgotten(acted: Acted, most: int) -> dict[str, bytes]:
    """What leaves where there are more records: the oldest, with their deliveries."""
    leaving = acted.ordered()[: max(0, len(acted.records) - most)]
    names = [f"{_RECORD}{record.key}" for record in leaving]
    for record in leaving:
        names += [f"{_DELIVERY}{each.key}" for each in acted.of_record(record.key)]
    return dict.fromkeys(names, b"")


_WORDS = {
    Told.DELIVERED: "told",
    Told.PENDING: "still to be told",
    Told.FAILED: "could not be told",
    Told.DRY_RUN: "would have been told",
}


def _note(record: ActionRecord, deliveries: Sequence[Delivery]) -> Note:
    words = [
        f"{_WORDS[state]}: {', '.join(sorted({d.place for d in some}))}"
        for state in Told
        if (some := [each for each in deliveries if each.state is state])
    ]
    to = f" ({'; '.join(words)})" if words else ""
    text = f"{minute(record.at_ms)} UTC: {record.sentence}{to}."
    severity = Severity.INFO if record.kind == "decided" else Severity.WARNING
    return Note("acted on", text, severity)
