"""Records that no producer should write, deterministic by seed: most are rejects, some are events.

What each of them counts as is the oracle's word; nothing here knows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from streamer.settings.model import Settings

from .shape import KINDS, Record
from .values import asked_by_ratios, fields_of_ratios

Raw = bytes | None

NUMBERS = (
    *("NaN", "Infinity", "-Infinity", "nan", "-", "+1", "01", "0x10", "1.", ".5", "1e", "1_000"),
    *(
        "18446744073709551616",
        "18446744073709551615",
        "9223372036854775808",
        "-9223372036854775809",
    ),
    *("9007199254740992", "9007199254740993", "-9007199254740993", "1e400", "-1e400", "1e-400"),
    *(
        "0",
        "-0",
        "-0.0",
        "1.0",
        "1e0",
        "1E3",
        "0.1e1",
        "1e308",
        "2e308",
        "4.9e-324",
        "1e9",
        "1e99999",
    ),
    *("9" * 400, "9" * 5000, "0." + "3" * 5000, "1" + "0" * 320, "1e" + "9" * 400, "-1", "0.5"),
    *("1700000000000.0", "1.7e12", "1700000000000", "4102444800000", "4102444800001"),
)
TEXTS = (
    *('""', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"x\\udfff"', '"\\ud83d\\ude00"', '"é"'),
    *('"a\\nb"', '"a\\"b"', '"a\\\\b"', '"A\\n"', '"A\\u000a"', '"{}"', '"a b"', '"a,b=\\"c\\""'),
    *(
        '"all"',
        '"other"',
        '"unknown"',
        '"__name__"',
        '"1"',
        '"true"',
        '"\\u0041"',
        '"A\\/B"',
        '"\\x"',
    ),
    *('"' + "x" * n + '"' for n in (64, 65, 256, 257, 10_000)),
    *('"' + "😀" * n + '"' for n in (64, 256, 257)),
    *('"\\ud83d\\ude00' + "y" * n + '"' for n in (255, 256)),
    *(
        '"a\nb"',
        '"a\tb"',
        '"a\x00b"',
        '"a\x7fb"',
        '"\u2028"',
        '"\ufeff"',
        "'A'",
        "A",
        '"A',
        '"\\u12"',
    ),
)
MOMENTS = tuple(
    f'"{text}"'
    for text in (
        *("2023-11-14T22:13:20Z", "2023-11-14t22:13:20z", "2023-11-14 22:13:20Z", "2023-11-14"),
        *("2023-11-14T22:13:20", "2023-11-14T22:13Z", "2023-11-14T22:13:20+01:00"),
        *("2023-11-14T22:13:20.9999999999Z", "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20,5Z"),
        *("2023-11-14T24:00:00Z", "2023-11-14T23:59:60Z", "2016-12-31T23:59:60Z"),
        *("2023-11-14T22:13:20+24:00", "2023-11-14T22:13:20+23:59", "2023-11-14T22:13:20-00:00"),
        *("2023-11-14T22:13:20+0100", "2023-11-14T22:13:20+01", "2023-11-14T22:13:20+01:60"),
        *("2023-02-29T00:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59"),
        *("9999-12-31T23:59:59-23:59", "12023-11-14T22:13:20Z", "-2023-11-14T22:13:20Z"),
        *("1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z", "2100-01-01T00:00:00.001Z"),
        *("２023-11-14T22:13:20Z", "2023-11-14T22:13:20Z ", "1700000000000", "20231114T221320Z"),
    )
)
OTHERS = (
    *("null", "true", "false", "[]", "{}", "[null]", "[[]]", "[1,2]", '{"a":1}', "", "undefined"),
    *("[" * n + "]" * n for n in (6, 7, 8, 9)),
    *('{"a":' * n + "1" + "}" * n for n in (6, 7, 8, 9)),
    '"' + "[" * 50 + '"',
    '"\\"' + "{" * 50 + '"',
)
ODD = (*NUMBERS, *TEXTS, *MOMENTS, *OTHERS)
"""Values as they would stand in a record, valid JSON or not."""
FIELDS = (
    *("ts", "user_id", "event_id", "request_id", "item_id", "position", "score", "propensity"),
    *("join_id", "impression_id"),
    *("items", "feedback", "dwell_ms", "start_ts", "end_ts", "value", "session_id", "action"),
    *("reference", "held_out", "reward_estimate", "item_category"),
    *("type", "note", "", "TS", "\\u0074s", "\\u0069tem_id", "\\ud800", "n" * 5000),
)


class Fuzzer:
    """Makes bad records out of good ones; ``settings`` give the names of fields."""

    def __init__(self, seed: int, settings: Settings) -> None:
        self.dice = Random(seed)
        self.settings = settings
        self.names = (*FIELDS, *settings.dimension_names, *settings.dimension_names)
        self.names += (*settings.policy_fields, *settings.policy_fields)
        for kind in KINDS:
            own = (*fields_of_ratios(settings, kind), *asked_by_ratios(settings, kind))
            self.names += own

    def mix(self, records: Sequence[Record], count: int, heavy: int = 24) -> list[Record]:
        """The records, and ``count`` bad ones among them, made of those around; ``heavy`` of them
        are large. Offsets are counted again."""
        dice = self.dice
        places = sorted(dice.choices(range(len(records)), k=count))
        heavy_ones = set(dice.sample(range(count), min(heavy, count)))
        mixed: list[tuple[Record, str, Raw]] = []
        number = 0
        for place, record in enumerate(records):
            while number < count and places[number] == place:
                base = records[max(0, place - dice.randrange(200))]
                raw = self.heavy(base.raw or b"{}") if number in heavy_ones else self.one(base.raw)
                kind = base.topic if dice.random() < 0.9 else dice.choice(KINDS)
                mixed.append((record, kind, raw))
                number += 1
            mixed.append((record, record.topic, record.raw))
        offsets: dict[tuple[str, int], int] = {}
        result = []
        for record, kind, raw in mixed:
            key = (kind, record.partition)
            offset = offsets[key] = offsets.get(key, -1) + 1
            result.append(Record(*key, offset, record.record_ms, raw))
        return result

    def one(self, raw: Raw) -> Raw:
        """One bad record, of an ordinary size."""
        good = raw if raw and len(raw) < 20_000 else b'{"ts":1700000000000,"user_id":"u"}'
        return self.dice.choice(_WAYS)(self, good)

    # Bytes ------------------------------------------------------------------------------------

    def flip(self, raw: bytes) -> Raw:
        found = bytearray(raw)
        for _ in range(self.dice.choice((1, 1, 2, 8))):
            found[self.dice.randrange(len(found))] ^= 1 << self.dice.randrange(8)
        return bytes(found)

    def cut(self, raw: bytes) -> Raw:
        at = self.dice.randrange(len(raw))
        return self.dice.choice((raw[:at], raw[at:], raw[:at] + raw[at + 1 + at % 9 :]))

    def splice(self, raw: bytes) -> Raw:
        at, more = self.dice.randrange(len(raw)), self.dice.randrange(len(raw))
        return raw[:at] + raw[more : more + 20] + raw[at:]

    def overwrite(self, raw: bytes) -> Raw:
        found = bytearray(raw)
        found[self.dice.randrange(len(found))] = self.dice.choice(b"{}[]\",:0-eE\\\x00\n'/\xff")
        return bytes(found)

    def glue(self, raw: bytes) -> Raw:
        seams = (b"", b"\n", b"}\n{", b",", b" ", b"\x00", b"\r\n", b"\x1e")
        ends = (raw, raw, b"", b"{}", b"}", b"\n{", b"]")
        return raw + self.dice.choice(seams) + self.dice.choice(ends)

    def surround(self, raw: bytes) -> Raw:
        blanks = (
            b"",
            b" ",
            b"\n",
            b"\r\n\t ",
            b"\x0c",
            b"\xc2\xa0",
            b"\xef\xbb\xbf",
            b"\x00",
            b"[",
        )
        return self.dice.choice(blanks) + raw + self.dice.choice(blanks)

    def encode(self, raw: bytes) -> Raw:
        text = raw.decode(errors="replace").replace("i1", "é")
        way = self.dice.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "utf-7"))
        return text.encode(way, errors="replace")

    def plant(self, raw: bytes) -> Raw:
        """Bytes that are no UTF-8, or no characters, inside a text."""
        planted = (
            b"\xed\xa0\x80",
            b"\xed\xb0\x80",
            b"\xc0\x80",
            b"\xff",
            b"\xf4\x90\x80\x80",
            b"\x80",
        )
        escapes = (b"\\ud800", b"\\udc00x", b"\\uD83D\\uD83D", b"\\u0000", b"\n", b"\x01", b"\\q")
        ends = [i for i, byte in enumerate(raw) if byte == ord('"')]
        at = self.dice.choice(ends) if ends else 0
        return raw[:at] + self.dice.choice(planted + escapes) + raw[at:]

    def nothing(self, raw: bytes) -> Raw:
        return self.dice.choice(
            (None, b"", b" ", b"\n", b"{}", b"[]", b"null", b"0", b'""', b"\x00")
        )

    # Fields -----------------------------------------------------------------------------------

    def replace(self, raw: bytes) -> Raw:
        """Another value in one field or in several."""
        payload = _object(raw)
        for _ in range(self.dice.choice((1, 1, 1, 2, 5))):
            payload[self.field(payload)] = self.value()
        return self.write(payload.items())

    def repeat(self, raw: bytes) -> Raw:
        """A field that is said twice; one of the values is odd."""
        payload = _object(raw)
        name = self.field(payload)
        odd = (name, self.value())
        pairs = list(payload.items())
        pairs.insert(self.dice.randint(0, len(pairs)), odd)
        return self.write(pairs)

    def forget(self, raw: bytes) -> Raw:
        payload = _object(raw)
        if payload:
            del payload[self.dice.choice(list(payload))]
        return self.write(payload.items())

    def misplace(self, raw: bytes) -> Raw:
        """A field of another topic, a known name inside of something, an event in an event."""
        payload = _object(raw)
        name = self.dice.choice(("note", "items", self.dice.choice(self.names)))
        payload[name] = self.dice.choice((json.dumps(payload), f"[{raw.decode(errors='replace')}]"))
        return self.write(payload.items())

    def show(self, raw: bytes) -> Raw:
        """A slate with odd elements."""
        payload = _object(raw)
        payload.pop("item_id", None)
        fields = [
            *("item_id", "position", "score", "propensity", "reward_estimate", "note"),
            "item_category",
            *self.settings.policy_fields,
            *fields_of_ratios(self.settings, "impressions"),
            *asked_by_ratios(self.settings, "impressions"),
        ]
        elements = []
        for i in range(self.dice.choice((1, 2, 5))):
            element = {"item_id": f'"i{i}"'}
            if self.dice.random() < 0.5:
                element[self.dice.choice(fields)] = self.value()
            elements.append(self.text(element.items()))
        if self.dice.random() < 0.2:
            elements.append(self.value())
        payload["items"] = f"[{','.join(elements)}]"
        return self.write(payload.items())

    def nest(self, raw: bytes) -> Raw:
        """Nesting near the bound, and far beyond."""
        levels = self.dice.choice(
            (6, 7, 8, 9, 40, 990, 1100) if self.dice.random() < 0.97 else (10_000,)
        )
        opening, closing = self.dice.choice((("[", "]"), ('{"a":', "}")))
        inside = self.dice.choice(("1", '"]]]]"', '"\\"}}}"', "[]"))
        payload = _object(raw)
        shut = levels if self.dice.random() < 0.8 else self.dice.randrange(levels)
        payload[self.field(payload)] = opening * levels + inside + closing * shut
        return self.write(payload.items())

    def heavy(self, raw: bytes) -> Raw:
        """About a megabyte, or two: padding, brackets, quotes, many fields, many elements."""
        head = raw.rstrip()[:-1] + b',"padding":'
        limit = 1_000_000 - len(head) - 3
        return self.dice.choice(
            (
                head + b'"' + b"x" * self.dice.choice((limit, limit + 1, 2_000_000)) + b'"}',
                head + b'"' + self.dice.randbytes(1_000_000).hex().encode() + b'"}',
                head + b'"' + b"\xff" * (limit - 9) + b'"}',
                head + b"[" * (limit // 2) + b"]" * (limit // 2) + b"}",
                b"[" * 900_000,
                head + b'"' + b'\\"' * (limit // 3) + b"{" * 20,  # a text without an end
                head + b'"' + b'\\"' * (limit // 3) + b"{" * 20 + b'"}',
                head + b"[" + b'"",' * (limit // 4) + b'""]}',
                head + b"[" + b"{}," * (limit // 4) + b"[]]}",
                head + b"1" + b"0" * (limit - 9) + b"}",
                head + b"0." + b"3" * (limit - 9) + b"}",
                head + b"1," + b",".join(b'"k%d":{}' % i for i in range(60_000)) + b"}",
                head + b"1," + b'"ts":1700000000000,' * 40_000 + b'"z":0}',
                head + b'1,"items":[' + b'{"item_id":"i"},' * 40_000 + b'{"item_id":"i"}]}',
                head + b'1,"user_id":"' + b"u" * 800_000 + b'"}',
                head + b'1,"' + b"k" * 800_000 + b'":1}',
                head + b"\\" * 900_000 + b"}",
                b" " * 900_000 + raw,
            )
        )

    # Pieces -----------------------------------------------------------------------------------

    def field(self, payload: dict[str, str]) -> str:
        there = [*payload]
        return self.dice.choice(there if there and self.dice.random() < 0.5 else self.names)

    def value(self) -> str:
        group = self.dice.choice((NUMBERS, TEXTS, MOMENTS, OTHERS))
        return self.dice.choice(group)

    def text(self, pairs: Any) -> str:
        names = self.settings.events.fields
        return "{" + ",".join(f'"{names.get(k, k)}":{v}' for k, v in pairs) + "}"

    def write(self, pairs: Any) -> bytes:
        return self.text(pairs).encode(errors="surrogatepass")


def _object(raw: bytes) -> dict[str, str]:
    """The fields of a record, values as JSON texts; none where it is not an object."""
    try:
        value = json.loads(raw)
        return {_escaped(k): json.dumps(v) for k, v in value.items()}
    except (ValueError, AttributeError, RecursionError):
        return {"ts": "1700000000000", "user_id": '"u1"', "item_id": '"i1"'}


def _escaped(name: str) -> str:
    return json.dumps(name)[1:-1]


_WAYS: tuple[Callable[[Fuzzer, bytes], Raw], ...] = (
    *(Fuzzer.flip, Fuzzer.cut, Fuzzer.splice, Fuzzer.overwrite, Fuzzer.glue, Fuzzer.surround),
    *(Fuzzer.encode, Fuzzer.plant, Fuzzer.nothing, Fuzzer.replace, Fuzzer.replace, Fuzzer.replace),
    *(Fuzzer.repeat, Fuzzer.forget, Fuzzer.misplace, Fuzzer.show, Fuzzer.nest),
)
