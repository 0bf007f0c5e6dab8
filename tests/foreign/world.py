"""One world, written down in every shape: lists that were shown, and what came of them. Always the
same, to the byte."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

FIRST_MS = 1_793_527_200_000
"""2026-11-01 10:00:00 UTC."""
PAGES = 400
USERS = 150
ARMS = ("A", "B")
SURFACES = ("home", "search", "detail")
COUNTRIES = ("DE", "FR", "US")
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
Object = dict[str, Any]


@dataclass
class Truth:
    """What a shape says, counted when it was made."""

    impressions: Counter[str] = field(default_factory=Counter)
    """By arm: an item that was shown in a list is one. "" where the shape has no arms."""
    clicks: Counter[str] = field(default_factory=Counter)
    """By arm of the list that was clicked."""
    conversions: int = 0
    """Orders; each is of one item."""
    value: float = 0.0
    """Of all orders: price times quantity, in units of the currency, exact to the cent."""
    users: int = 0
    """Those with at least one impression, by the name that the record has for them: where a shape
    has an anonymous id, that is another name than the one after the login."""
    people: int = 0
    """The same, where somebody is one before and after the login."""
    joined_clicks: int = 0
    """Clicks of an item that was shown to the same user before, in the same list: all of them,
    where a shape has lists at all."""


@dataclass(frozen=True)
class Shape:
    """Events as somebody writes them, with what they say."""

    files: Mapping[str, bytes]
    """Name of the file → bytes, in the order in which they are to be read."""
    truth: Truth
    has_conversions: bool = True
    has_value: bool = True
    has_arm: bool = True
    note: str = ""
    """What is peculiar about it."""


@dataclass(frozen=True)
class Page:
    """One list that was shown to somebody."""

    number: int
    at_ms: int
    user: int
    arm: str
    surface: str
    items: tuple[int, ...]
    clicked: tuple[int, ...]
    bought: int | None
    quantity: int
    is_signed_in: bool
    """Whether the site knows who this is; else there is only the browser."""

    @property
    def slate(self) -> list[tuple[int, int]]:
        """(position from 1, item)."""
        return list(enumerate(self.items, 1))

    @property
    def country(self) -> str:
        return COUNTRIES[self.user % 3]

    @property
    def value(self) -> float:
        return cents_of(self.bought) * self.quantity / 100 if self.bought is not None else 0.0


Kind = Literal["visit", "login", "shown", "impression", "click", "order"]


@dataclass(frozen=True)
class Happening:
    """Something that happened on a page: that it was opened (visit), that somebody became known
    (login), that the list was shown or one item of it (impression), a click, an order."""

    kind: Kind
    at_ms: int
    page: Page
    item: int = 0
    """0 where it is of no item."""
    position: int = 0
    """Of the item, from 1; 0 where it is of no item."""

    @property
    def id(self) -> str:
        return name_of("event", self.page.number, self.kind, self.item)

    @property
    def price(self) -> float:
        """Of one piece of the item."""
        return cents_of(self.item) / 100


@cache
def pages() -> tuple[Page, ...]:
    """In time order; the second arm clicks more. Every fifth user is anonymous at first."""
    random, made = Random(11), []
    for number in range(PAGES):
        user = random.randrange(USERS)
        arm = ARMS[user % 2]
        items = tuple(random.sample(range(1000, 1060), random.randint(1, 5)))
        rate = 0.08 if arm == "A" else 0.15
        clicked = tuple(item for item in items if random.random() < rate)
        bought = clicked[0] if clicked and random.random() < 0.35 else None
        made.append(
            Page(
                number=number,
                at_ms=FIRST_MS + number * 1_500 + random.randrange(1_400),
                user=user,
                arm=arm,
                surface=random.choice(SURFACES),
                items=items,
                clicked=clicked,
                bought=bought,
                quantity=random.randint(1, 3),
                is_signed_in=user % 5 != 0 or number > PAGES // 2,
            )
        )
    return tuple(made)


@cache
def happenings() -> tuple[Happening, ...]:
    """All of them, in time order: lists as a whole."""
    made, known = [], set[int]()
    for page in pages():
        if page.number % 3 == 0:
            made.append(Happening("visit", page.at_ms - 40, page))
        if page.is_signed_in and page.user not in known:
            known.add(page.user)
            made.append(Happening("login", page.at_ms - 20, page))
        made.append(Happening("shown", page.at_ms, page))
        dice = Random(page.number)
        for item in page.clicked:
            at_ms = page.at_ms + dice.randint(100, 900)
            made.append(Happening("click", at_ms, page, item, page.items.index(item) + 1))
        if page.bought is not None:
            at_ms = page.at_ms + dice.randint(2_000, 9_000)
            position = page.items.index(page.bought) + 1
            made.append(Happening("order", at_ms, page, page.bought, position))
    return tuple(sorted(made, key=lambda one: one.at_ms))


@cache
def single_happenings() -> tuple[Happening, ...]:
    """All of them, in time order: an impression for each item of a list."""
    return tuple(one for happening in happenings() for one in _single(happening))


def _single(happening: Happening) -> Iterator[Happening]:
    if happening.kind != "shown":
        yield happening
        return
    for position, item in happening.page.slate:
        yield Happening("impression", happening.at_ms, happening.page, item, position)


def truth(*, arm: bool = True, orders: bool = True, value: bool = True, anonymous: bool) -> Truth:
    """Of a shape that says everything, or no arm, no orders, no value of them; and whether it has
    an anonymous id."""
    found = Truth()
    for page in pages():
        name = page.arm if arm else ""
        found.impressions[name] += len(page.items)
        found.clicks[name] += len(page.clicked)
    bought = [page for page in pages() if page.bought is not None]
    if orders:
        found.conversions = len(bought)
        cents = sum(cents_of(page.bought) * page.quantity for page in bought) if value else 0
        found.value = cents / 100
    found.people = len({page.user for page in pages()})
    names = {(page.user, page.is_signed_in or not anonymous) for page in pages()}
    found.users = len(names)
    found.joined_clicks = found.clicks.total()
    return found


def cents_of(item: int | None) -> int:
    """Price of an item."""
    return 0 if item is None else 499 + item * 37 % 4_000


def utc(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def iso(ms: int) -> str:
    """RFC 3339, with milliseconds and Z."""
    return utc(ms).isoformat(timespec="milliseconds")[:-6] + "Z"


def plain_time(ms: int, digits: int = 3) -> str:
    """`2026-11-01 10:00:00.123`, with up to six digits after the point; none without a point."""
    text = f"{utc(ms):%Y-%m-%d %H:%M:%S}"
    return f"{text}.{ms % 1000:03}000"[: 20 + digits] if digits else text


def name_of(*parts: object) -> str:
    """A UUID, always the same for the same parts."""
    return str(uuid.UUID(hashlib.md5("/".join(map(str, parts)).encode()).hexdigest()))


def hex_of(digits: int, *parts: object) -> str:
    """An id of so many hexadecimal digits."""
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:digits]


def browser_of(page: Page) -> str:
    """The anonymous id."""
    return name_of("browser", page.user)


def user_of(page: Page) -> str | None:
    """The id of an account, once somebody is signed in."""
    return f"user-{page.user}" if page.is_signed_in else None


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def ndjson(records: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def lists(record: Callable[[Happening], Object | None]) -> bytes:
    """A line for each happening that has a record, lists as a whole."""
    return ndjson(made for one in happenings() if (made := record(one)) is not None)


def singles(record: Callable[[Happening], Object | None]) -> bytes:
    """A line for each happening that has a record, one for each item of a list."""
    return ndjson(made for one in single_happenings() if (made := record(one)) is not None)


def parquet(columns: Mapping[str, Any]) -> bytes:
    """A file of named columns."""
    out = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(columns)), out)
    return bytes(out.getvalue())
