"""The core's decoder against the oracle: the same verdicts, the same values."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamer._core import depth
from streamer.settings.event_fields import ACTIONS, KINDS
from streamer.settings.limits import MAX_DEPTH
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.core.decoders import decoder_of
from tests.oracle.broken_lines import broken_line
from tests.oracle.decoding import decode
from tests.oracle.fuzzed import FIELDS, ODD, Fuzzer
from tests.oracle.hashing import mix
from tests.oracle.off_policy import weigh
from tests.oracle.own_ratios import asked_of, passes, said_by
from tests.oracle.parsing import BrokenError
from tests.oracle.reasons import is_right
from tests.oracle.shape import Event, Shown
from tests.support.agreement import SETTINGS, log_records
from tests.support.lanes import shortened, sized

Given = tuple[str, bytes | None]
RENAMED = {
    **{"ts": "when", "item_id": "sku", "items": "slate", "position": "rank", "variant": "v"},
    **{"user_id": "uid", "type": "item_id", "end_ts": "quoted name", "dwell_ms": "été"},
}
ALL_SETTINGS = {
    **SETTINGS,
    "renamed": parse({"events": {"fields": RENAMED}}),
}

REFUND = 0xC2B2_AE3D_27D4_EB4F
"""Makes ids of refunds."""


class Pair:
    """The decoder and the oracle of the same settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.core = decoder_of(settings)

    def truth(self, kind: str, raw: bytes | None) -> list[Event] | str:
        """The lines of the event of a record by the oracle, or the reason why it is none."""
        try:
            return decode(kind, raw, self.settings)
        except BrokenError as error:
            return str(error)

    def compare(self, records: Sequence[Given]) -> tuple[int, int]:
        """Assert that both say the same; how many are events, and of how many the reason differs
        where several are right."""
        other_reasons = events = 0
        for kind, raw in records:
            said, truth = self.core.decode_all(kind, raw)[0], self.truth(kind, raw)
            if isinstance(truth, str) or isinstance(said, str):
                assert isinstance(truth, str), (said, kind, (raw or b"")[:2000])
                assert isinstance(said, str), (truth, kind, (raw or b"")[:2000])
                if said != truth:
                    other_reasons += 1
                    assert is_right(said, kind, raw, self.settings), (said, truth, kind, raw)
            else:
                events += 1
                assert said == self.values(kind, truth), (kind, raw)
        return events, other_reasons

    def values(self, kind: str, lines: list[Event]) -> dict[str, Any]:
        """What the core says of an event, by the oracle."""
        event = lines[0]
        return {
            "kind": kind,
            "event_ms": event.event_ms,
            "user": self.core.hash(event.user_id or ""),
            "user_id": event.user_id or "",
            "event_id": self.core.hash(event.event_id or ""),
            "dedup_id": self.dedup_id(kind, event),
            "request": self.core.hash(event.request_id or ""),
            "join": self.core.hash(event.join_id or ""),
            "key": event.join_id or event.user_id or "",
            "is_shared": False,
            "dimensions": [value or "" for value in event.dims],
            "arms": [],
            "cut": event.cut,
            "values": [values for line in lines for values in self.of_ratios(kind, line)],
            **self._body(kind, lines),
        }

    def dedup_id(self, kind: str, event: Event) -> int:
        """The id of the event; of an order that is no list with the item, and of refunds with what
        is given back. An empty slate without one has its person and request."""
        order = self.core.hash(event.event_id or "")
        if kind == "impressions" and not event.shown and not order and event.request_id:
            who = self.core.hash(event.join_id or event.user_id or "")
            return mix(who, self.core.hash(event.request_id))
        is_row = kind == "conversions" and not event.is_list
        if not order or kind != "conversions":
            return order
        found = mix(order, self.core.hash(event.of_item)) if is_row else order
        of_refund = (REFUND, *event.worth_micros) if event.is_refund else ()
        for part in of_refund:
            found = mix(found, part % 2**64)
        return found

    def _body(self, kind: str, lines: list[Event]) -> dict[str, Any]:
        event = lines[0]
        of = event.shown if kind == "impressions" else lines
        named = {"impressions": [self.core.hash(one.impression_id or "") for one in of]}
        if kind == "impressions":
            shown = [
                (
                    self.core.hash(item.item_id),
                    item.position or 0,
                    Score(math.nan if item.score is None else item.score),
                )
                for item in event.shown
            ]
            weights = [self.weights(item) for item in event.shown if self.settings.policies]
            return {
                **named,
                "items": shown,
                "is_list": event.is_list,
                "weights": weights,
                "reference": [self.core.hash(item) for item in event.reference],
                "held_out": self.core.hash(event.held_out or ""),
            }
        items = [self.core.hash(line.item_id or "") for line in lines]
        if kind == "conversions":
            worth = [line.value_micros for line in lines]
            return {**named, "lines": list(zip(items, worth, strict=True))}
        dwell = {"dwell_ms": event.dwell_ms}
        if kind == "clicks":
            kinds = self.settings.feedback_kinds
            feedback = kinds.index(event.kind) if event.kind in kinds else -1
            places = [line.position or 0 for line in lines]
            clicked = list(zip(items, places, strict=True))
            said = [line.rating for line in lines]
            ratings = [None if rating is None else round(rating * 1e6) for rating in said]
            return {**named, **dwell, "lines": clicked, "feedback": feedback, "ratings": ratings}
        session = self.core.hash(event.session_id or "")
        action = ACTIONS.index(event.action or "")
        return {**dwell, "item": items[0], "session": session, "action": action}

    def of_ratios(self, kind: str, event: Event) -> list[tuple[int, list[tuple[int, int]]]]:
        """The conditions of ratios that each item, or the event, meets, and its amounts."""
        own = self.settings.own_sums
        if kind not in (*(of for of, _ in own.amounts), *(c.kind for c in own.conditions)):
            return []
        found = []
        for shown in event.shown if kind == "impressions" else (None,):
            met = 0
            for place, each in enumerate(own.conditions):
                wanted = dict(each.bounds) or each.values
                said = asked_of(event, shown, each.field)
                if each.field in self.settings.dimension_names:
                    said = event.dims[self.settings.dimension_names.index(each.field)]
                met |= (each.kind == kind and passes(said, wanted)) << place
            given = [
                (i, said_by(event, shown, f)) for i, (of, f) in enumerate(own.amounts) if of == kind
            ]
            sign = -1 if event.is_return else 1
            amounts = [(i, sign * round(float(x) * 1e6)) for i, x in given if x is not None]
            found.append((met, amounts))
        return found

    def weights(self, shown: Shown) -> list[int]:
        """The weight for each policy, as it is stored: -1 without, a bit where the reward is
        estimated."""
        codes = []
        for policy in self.settings.policies:
            found = weigh(policy, shown, False, self.settings.metrics.max_weight)
            is_estimated = found is not None and found.expected is not None
            codes.append(-1 if found is None else found.weight + (is_estimated << 30))
        return codes + [-1] * (4 - len(codes))


PAIR = Pair(SETTINGS["few values"])


class Score(float):
    """A score that equals another by its bits, or as there is none."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, float):
            return NotImplemented
        if math.isnan(self) or math.isnan(other):
            return math.isnan(self) and math.isnan(other)
        return float(self).hex() == other.hex()

    __hash__ = float.__hash__


def renamed(raw: bytes | None, settings_name: str) -> bytes | None:
    """A record of the default names, with those of the settings."""
    if settings_name != "renamed" or raw is None:
        return raw
    try:
        event = json.loads(raw)
        return json.dumps({RENAMED.get(k, k): v for k, v in event.items()}).encode()
    except (ValueError, AttributeError, RecursionError):
        return raw


@pytest.mark.parametrize("settings_name", shortened(list(ALL_SETTINGS)))
def test_fuzzed_records(settings_name: str) -> None:
    settings = ALL_SETTINGS[settings_name]
    base = "defaults" if settings_name == "renamed" else settings_name
    good = log_records(5, base, 400, 1)
    good = [type(r)(*r.address, r.record_ms, renamed(r.raw, settings_name)) for r in good]
    mixed = Fuzzer(17, settings).mix(good, 8000, heavy=12)
    events, other_reasons = Pair(settings).compare([(r.topic, r.raw) for r in mixed])
    assert 0.1 * len(mixed) < events < 0.6 * len(mixed)
    assert other_reasons < 0.2 * len(mixed)  # several things are wrong with many


@pytest.mark.parametrize("settings_name", ALL_SETTINGS)
def test_lines_with_one_thing_wrong_have_the_same_reason(settings_name: str) -> None:
    dice = Random(23)
    settings = ALL_SETTINGS[settings_name]
    pair = Pair(settings)
    for i in range(3000):
        line = broken_line(dice, settings, f"u{i}", 1_700_000_000_000 + i, f"r{i}")
        for kind in KINDS:
            said, truth = pair.core.decode_all(kind, line)[0], pair.truth(kind, line)
            if kind == "impressions" or isinstance(truth, str):
                assert isinstance(said, str)
                assert said == truth or is_right(said, kind, line, settings)
            else:
                assert not isinstance(said, str)


@pytest.mark.parametrize("kind", KINDS)
def test_every_odd_value_in_every_field(kind: str) -> None:
    good = '"ts":1700000000000,"user_id":"u","item_id":"i","session_id":"s","action":"end"'
    items = '"ts":1700000000000,"user_id":"u","items":[{"item_id":"j"},{"item_id":"i"'
    records = [
        (kind, record.encode(errors="surrogatepass"))
        for value in ODD
        for name in (*FIELDS, "variant")
        for record in (f'{{{good},"{name}":{value}}}', f'{{{items},"{name}":{value}}}]}}')
    ]
    events, _ = PAIR.compare(records)
    assert events > 500


_VALUES = st.sampled_from(ODD) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    max_leaves=5,
).map(json.dumps)
_NUMBERS = st.from_regex(r"\A-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,4})?\Z")
_TIMES = st.from_regex(
    r"\A\"(0001|1969|20[0-9]{2}|9999)-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
    r"(\.[0-9]{1,9})?([Zz]|[+-][0-2][0-9]:?[0-5][0-9]| UTC|)\"\Z",
    fullmatch=True,
) | st.builds(
    '"{}-12-31T{:02}:{:02}:60{}{:02}:{:02}"'.format,
    st.sampled_from(("2016", "9999", "0001")),
    st.integers(0, 23),
    st.integers(0, 59),
    st.sampled_from("+-"),
    st.integers(0, 23),
    st.integers(0, 59),
)
_NAMES = st.sampled_from((*FIELDS, "variant", "surface"))
_BLANKS = st.sampled_from(("", "", "", " ", "\n", "\t\r"))


@given(
    st.sampled_from(KINDS),
    st.lists(st.tuples(_NAMES, _VALUES | _NUMBERS | _TIMES, _BLANKS), max_size=6),
    st.booleans(),
)
@hypothesis_settings(max_examples=sized(100, 1500))
def test_any_values_in_any_fields(
    kind: str, pairs: list[tuple[str, str, str]], is_first: bool
) -> None:
    said = [f'{blank}"{name}"{blank}:{blank}{value}{blank}' for name, value, blank in pairs]
    good = '"ts":1700000000000,"user_id":"u","item_id":"i","session_id":"s","action":"end"'
    fields = ",".join([good, *said] if is_first else [*said, good])
    raw = f"{{{fields}}}".encode(errors="surrogatepass")
    PAIR.compare([(kind, raw)])


@given(st.sampled_from(KINDS), st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@hypothesis_settings(max_examples=sized(60, 500))
def test_any_bytes(kind: str, raw: bytes) -> None:
    PAIR.compare([(kind, raw), (kind, b'{"ts":1,"user_id":"u","item_id":"i",' + raw)])


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":"' + b'\\"' * 400_000 + b"{" * 20,
        b'{"a":"' + b'\\"' * 400_000 + b'"' + b"{" * 20,
        b'"' * 900_001 + b"[" * 20,
        b'{"a":' * 150_000,
        b"[" * 900_000 + b"\\",
        b'{"items":[' + b'{"item_id":"i"},' * 60_000 + b"{}]}",
        b'{"reference":[' + b'"i",' * 200_000 + b'"i"]}',
        b'{"user_id":"' + b"\\u0041" * 160_000 + b'"}',
        b'{"score":' + b"9" * 900_000 + b"}",
        b'{"' + b"k" * 900_000 + b'":1}',
    ],
    ids=[
        "no end",
        "an end",
        "quotes",
        "objects",
        "lists",
        "items",
        "ranks",
        "id",
        "digits",
        "name",
    ],
)
def test_no_record_takes_long(raw: bytes) -> None:
    decoded, counted = list[float](), list[float]()
    for _ in range(3):  # the fastest: what else runs on the machine slows one of them
        started = time.thread_time()
        assert isinstance(PAIR.core.decode_all("impressions", raw)[0], str)
        decoded.append(time.thread_time() - started)
        depth(raw)
        counted.append(time.thread_time() - started)
    assert min(decoded) < 0.2
    assert min(counted) < 1.5


@pytest.mark.parametrize("levels", [1, MAX_DEPTH, MAX_DEPTH + 1, 10_000, 100_000])
def test_brackets_are_counted_outside_of_texts(levels: int) -> None:
    inside = b'"]]\\"]]' + b"[" * 20 + b'"'
    assert depth(b"[" * levels + inside + b"]" * levels) == levels
    assert depth(b"[]" * levels + inside) in (0, 1)
