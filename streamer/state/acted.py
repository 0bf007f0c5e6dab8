"""What was acted on, as a store keeps it: written before anything is sent."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

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


class Delivery(msgspec.Struct, frozen=True):
    """A record on its way to one receiver. ``hook``: a digest of its settings; ``problem``: what
    the last attempt met."""

    record: str
    hook: str
    place: str
    state: Told = Told.PENDING
    attempts: int = 0
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
        """What a store keeps."""
        return cls().after(stored)

    def after(self, changes: Mapping[str, bytes]) -> Acted:
        """With what was written, too; entries that cannot be read are left out."""
        acted = Acted(dict(self.records), dict(self.deliveries), self.looked_ms)
        for name, data in changes.items():
            try:
                if name == _LOOKED:
                    acted.looked_ms = msgspec.json.decode(data, type=int)
                elif not data:
                    acted.records.pop(name.removeprefix(_RECORD), None)
                    acted.deliveries.pop(name.removeprefix(_DELIVERY), None)
                elif name.startswith(_RECORD):
                    record = msgspec.json.decode(data, type=ActionRecord)
                    acted.records[record.key] = record
                elif name.startswith(_DELIVERY):
                    delivery = msgspec.json.decode(data, type=Delivery)
                    acted.deliveries[delivery.key] = delivery
            except msgspec.MsgspecError:
                continue
        return acted

    def next_ms(self, now_ms: int) -> int:
        """The time of the next records: after all others, even where a clock was set back."""
        return max([now_ms, *(record.at_ms + 1 for record in self.records.values())])

    def has_same(self, other: Acted) -> bool:
        """Whether another one has the same records, and they are told alike."""
        return (self.records, self.deliveries) == (other.records, other.deliveries)

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

    def of_experiment(self, name: str, start: datetime.date) -> list[ToldDecision]:
        """The records of an experiment, the oldest first."""
        own = [r for r in self.ordered() if (r.experiment, r.start) == (name, start)]
        return [self.told_of(record) for record in own]


def stored(
    records: Iterable[ActionRecord] = (),
    deliveries: Iterable[Delivery] = (),
    looked_ms: int | None = None,
) -> dict[str, bytes]:
    """As a store keeps them."""
    changes = {f"{_RECORD}{record.key}": msgspec.json.encode(record) for record in records}
    changes |= {f"{_DELIVERY}{sent.key}": msgspec.json.encode(sent) for sent in deliveries}
    if looked_ms is not None:
        changes[_LOOKED] = msgspec.json.encode(looked_ms)
    return changes


def forgotten(acted: Acted, most: int) -> dict[str, bytes]:
    """What leaves where there are more records: the oldest, with their deliveries."""
    leaving = acted.ordered()[: max(0, len(acted.records) - most)]
    names = [f"{_RECORD}{record.key}" for record in leaving]
    for record in leaving:
        names += [f"{_DELIVERY}{each.key}" for each in acted.of_record(record.key)]
    return dict.fromkeys(names, b"")
