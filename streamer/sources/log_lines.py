"""Lines of logs as JSON objects: an object behind a text, pairs of keys and values, and requests in
the access logs of web servers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from urllib.parse import parse_qs

import msgspec

_LINE_TIME = "line_time"
"""The field of the time at the beginning of a line."""
_LOOKED_AT = 200
"""Lines that say what all others are."""
_JSON = re.compile(rb'\s*(?:\{|\[\s*[{\["])')
"""How a line begins that is JSON by itself."""
_TIME = re.compile(
    r"\[?(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d+))?"
    r"(?: ?(Z|[+-]\d\d:?\d\d)\b)?",
    re.ASCII,
)
_OBJECT = re.compile(r"""(?<![,;|"'\w])\{\s*\"""")
"""How an object begins that is no cell of a row."""
_WORD = re.compile(r'(?:([^\W\d][\w.@-]*)=("(?:[^"\\]|\\.)*"|(?:[^\s"]\S*)?)|\S+)(?:\s+|$)')
"""A pair of a key and a value, or any other word."""
_LEAST_PAIRS = 2
_REQUEST = re.compile(
    r'(?:\S+ )??(?P<ip>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "\S+ (?P<path>[^\s?"]+)'
    r'(?:\?(?P<query>[^\s"]*))?[^"]*" (?P<status>\d{3}) \S+'
    r'(?: "(?P<referrer>(?:[^"\\]|\\.)*)" "(?P<user_agent>(?:[^"\\]|\\.)*)")?'
)
"""A line in Common or Combined Log Format, which the name of a host may precede."""
_Maker = Callable[[str], bytes | None]
"""What makes a JSON object of a line; None where it has none."""


def as_objects(lists: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Lists of lines, those of a log as JSON objects: if most of the first ones have one shape.
    Lines that have none stay as they are."""
    maker, count = None, 0
    for lines in lists:
        if maker is None and count < _LOOKED_AT:
            some = [line for line in islice(lines, _LOOKED_AT) if line.strip()]
            count += _LOOKED_AT if any(map(_JSON.match, some)) else len(some)
            maker = shape_of(some)
        yield lines if maker is None else [_object_of(line, maker) or line for line in lines]


def shape_of(lines: Sequence[bytes]) -> _Maker | None:
    """What makes JSON objects of more than half of some lines; None where they are JSON, or nothing
    that is known."""
    told = [line for line in lines if b"=" in line or b"{" in line]
    counts = {
        maker: sum(_object_of(line, maker) is not None for line in told)
        for maker in (_of_request, _of_pairs, _of_text)
    }
    best = max(counts, key=counts.__getitem__)
    return best if 2 * counts[best] > len(lines) else None


def _object_of(line: bytes, maker: _Maker) -> bytes | None:
    if _JSON.match(line):
        return None
    try:
        return maker(line.decode())
    except (ValueError, RecursionError):  # not UTF-8, no JSON, or no time
        return None


def _of_text(text: str) -> bytes | None:
    """The only object in a line, with the time at the beginning of the line."""
    start = _OBJECT.search(text)
    if start is None:
        return None
    fields, end = json.JSONDecoder().raw_decode(text, start.start())
    if _OBJECT.search(text, end):
        return None
    at = "" if _LINE_TIME in fields else _time_of(text)
    time = f',"{_LINE_TIME}":"{at}"' if at else ""
    return f"{text[start.start() : end - 1]}{time}}}".encode()


def _of_pairs(text: str) -> bytes | None:
    """The pairs of a line, which has nothing else behind the first."""
    made = dict[str, str]()
    for word in _WORD.finditer(text.strip()):
        key, value = word.groups()
        if key is not None:
            made[key] = _unquoted(value)
        elif made:
            return None
    if len(made) < _LEAST_PAIRS:
        return None
    made.setdefault(_LINE_TIME, _time_of(text))
    return msgspec.json.encode({key: value for key, value in made.items() if value})


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:  # an escape that JSON does not have
        return value[1:-1]


def _of_request(text: str) -> bytes | None:
    """The parameters of a request, and what the server says of it where none is called so."""
    line = _REQUEST.match(text)
    if line is None:
        return None
    own = {name: value for name, value in line.groupdict().items() if value not in (None, "-")}
    asked = parse_qs(own.pop("query", "")).items()
    made = {name: values if values[1:] else values[0] for name, values in asked}
    own["time"] = datetime.strptime(own["time"], "%d/%b/%Y:%H:%M:%S %z").isoformat()
    return msgspec.json.encode(made | {name: own[name] for name in own if name not in made})


def _time_of(text: str) -> str:
    """The time at the beginning of a line as ISO text; "" where there is none."""
    time = _TIME.match(text)
    if time is None:
        return ""
    year, month, day, clock, fraction, offset = time.groups(default="")
    return f"{year}-{month}-{day}T{clock}{'.' * bool(fraction)}{fraction}{offset}"
