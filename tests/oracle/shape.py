"""What goes into the oracle and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field

Place = tuple[str, int, int]
"""(topic, partition, offset) of a record."""
Address = Place | tuple[str, int, int, int]
"""That of an event; of a line but the first its number, too."""
Labels = frozenset[tuple[str, str]]
Readings = dict[tuple[str, Labels], int | float]

KINDS = ("impressions", "clicks", "conversions", "sessions")
"""The kinds of events that are counted."""
EXPOSURES = "exposures"
"""The kind of events that say who is in which arm of an experiment."""
ALL_KINDS = (*KINDS, EXPOSURES)
SHOWN = "shown"
"""Topic of records that are an impression and, where `click` says so, the click on it."""
SOLD = "sold"
"""Topic of such records that may be orders, too, or a click and its order."""
KINDS_OF = {
    SHOWN: ("impressions", "clicks"),
    SOLD: ("impressions", "clicks", "conversions"),
    **{kind: (kind,) for kind in ALL_KINDS},
}
"""Topic → kinds of the events that stand in it."""
LINE_TYPES = {
    "impression": "impressions",
    "click": "clicks",
    "conversion": "conversions",
    "refund": "conversions",
    "session": "sessions",
    "exposure": EXPOSURES,
}


@dataclass(frozen=True)
class Record:
    """One record of a log. ``topic`` is a kind, whatever the Kafka topic is called."""

    topic: str
    partition: int
    offset: int
    record_ms: int
    raw: bytes | None

    @property
    def address(self) -> Place:
        return (self.topic, self.partition, self.offset)


@dataclass(frozen=True)
class Shown:
    """One shown item of an impression event."""

    item_id: str
    position: int | None
    score: float | None = None
    said: dict[str, float] = field(default_factory=dict, compare=False)
    """Field about policies → its value, where there is one."""
    numbers: dict[str, float] = field(default_factory=dict, compare=False)
    """Field that ratios add up → its value, likewise; of events, too."""
    texts: dict[str, str] = field(default_factory=dict, compare=False)
    """Field that ratios ask for → its value as it is written, likewise."""
    category: str | None = None
    impression_id: str | None = None

    @property
    def key(self) -> str:
        """What feedback names it by."""
        return joined_by(self.item_id, self.impression_id)


def joined_by(item_id: str | None, impression_id: str | None) -> str:
    """What an impression and its feedback have in common: its id, else the item."""
    return f"item {item_id}" if impression_id is None else f"impression {impression_id}"


@dataclass
class Line:
    """One line of feedback, or of an order."""

    item_id: str | None
    position: int | None = None
    value: float | None = None
    rating: float | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    impression_id: str | None = None


@dataclass
class Event:
    """One valid record, with its own dimension values (None = missing) in settings order."""

    event_ms: int
    user_id: str | None
    event_id: str | None
    request_id: str | None
    dims: tuple[str | None, ...]
    cut: int = 0
    join_id: str | None = None
    item_id: str | None = None
    impression_id: str | None = None
    position: int | None = None
    shown: list[Shown] = field(default_factory=list)
    is_list: bool = False
    reference: tuple[str, ...] = ()
    held_out: str | None = None
    kind: str = "click"
    dwell_ms: int | None = None
    rating: float | None = None
    value: float | None = None
    value_micros: int = 0
    is_return: bool = False
    """Whether its numbers are subtracted."""
    refunds_order: bool = False
    worth_micros: tuple[int, ...] = ()
    """Of a conversion the value of each line."""
    order: Event | None = None
    """The first line of the order that a refund names, where that is known."""
    lines: list[Line] = field(default_factory=list)
    line: int = 0
    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    """Numbers as they are asked for: what stands beside lines is said of each."""
    session_id: str | None = None
    action: str | None = None
    experiment: str | None = None
    arm: str | None = None
    """Of an event of exposures: the key of an experiment, and the arm."""
    said_of_arms: tuple[tuple[str, str | None, str], ...] = ()
    """Path, key of an experiment (None: whichever is of the path) and arm that a field says."""
    is_shared: bool = False
    """Whether its record is other events, too."""
    # Where it stands; filled at acceptance.
    topic: str = ""
    partition: int = 0
    offset: int = 0
    arrival_ms: int = 0

    @property
    def address(self) -> Address:
        """Where it stands; lines but the first have addresses of their own."""
        place = (self.topic, self.partition, self.offset)
        return place if not self.line else (*place, self.line)

    @property
    def person(self) -> str | None:
        """Who did it, by the id of joins where it has one; None: it is anonymous. An id of joins
        that names a record is nobody."""
        if self.join_id is not None and not self.join_id.startswith("record:"):
            return f"join {self.join_id}"
        return None if self.user_id is None else f"user {self.user_id}"

    @property
    def who(self) -> str:
        """Whose event it is: an anonymous one is that of its record, of its request, or its own."""
        if self.person is not None:
            return self.person
        if self.join_id is not None:
            return self.join_id
        if self.request_id is not None:
            return f"request {self.request_id}"
        return f"{self.topic} {self.event_ms}"

    @property
    def of_item(self) -> str:
        """What feedback is on: without an item its impression."""
        return self.item_id or self.impression_id or ""

    @property
    def joined_request(self) -> str | None:
        """The request by which feedback joins: an impression needs none."""
        return None if self.impression_id is not None else self.request_id

    @property
    def orders(self) -> int:
        """How many orders a conversion is: one, none where it gives money back, one less where all
        of the order is given back."""
        if self.refunds_order:
            return -1
        return int(not self.is_return and sum(self.worth_micros) >= 0)

    @property
    def is_refund(self) -> bool:
        return self.topic == "conversions" and self.orders < 1

    @property
    def joins_as(self) -> str:
        """Who it joins others as: nobody's events that are one record join each other alone."""
        is_nobodys = self.person is None and self.join_id is None and self.request_id is None
        return f"record {self.offset}" if self.is_shared and is_nobodys else self.who


def is_person(who: str) -> bool:
    """Whether what an event counts under is a person; if not, it is nobody's."""
    return who.startswith(("user ", "join "))


@dataclass(eq=False)
class Row:
    """One shown item of one accepted impression, and what joined it."""

    event: Event
    index: int
    shown: Shown
    repeat: bool
    feedback: list[Event] = field(default_factory=list)
    conversions: list[Event] = field(default_factory=list)

    @property
    def newness(self) -> tuple[int, int, int]:
        return (self.event.event_ms, self.event.offset, self.index)

    @property
    def clicked(self) -> bool:
        return any(f.kind == "click" for f in self.feedback)

    @property
    def converted(self) -> bool:
        return self.clicked and self.is_ordered

    @property
    def is_ordered(self) -> bool:
        return sum(event.orders for event in self.conversions) > 0


@dataclass
class OracleResult:
    """Everything the oracle knows at the end of the log, after all topics were read to it."""

    readings: Readings
    accepted: list[Address]
    rejects: list[tuple[str, int, int, str]]
    late: list[Place]
    duplicates: list[Place]
    joined: dict[Address, tuple[int, int, int] | None]
    unsettled: list[Address]
    stream_time_ms: int | None
