"""Numbers in one line of text: counts, values of metrics, and changes of them, with three
significant digits. The page writes them by the same rules (``server/web/format.js``). And texts of
events in one line, in which nothing controls a terminal."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from math import isfinite

_SHOWN = 8
MINUS = "\u2212"
_TINY = 1e-6
_LEAST_P = 0.0001
_UNITS = {"percent": " points", "seconds": " s"}
"""Of differences, by the form of a metric."""
_HUNDREDTH = 0.00995
"""What is written as a percent with one decimal, from here on."""
_CONTROL = re.compile(
    "[\0-\x1f\x7f-\xa0\xad\u061c\u2000-\u200b\u200e\u200f\u2028-\u202f\u205f-\u206f\ud800-\udfff\ufeff]"
)
"""Characters that control a terminal, break a line, change the direction of text, are hidden, or
look like a blank. Those that join letters and emoji are none of them."""


def printable(text: str, most: int | None = None) -> str:
    """A text in one line, its control characters escaped. ``most``: characters, if bounded.

    >>> printable("two\\nlines"), printable("\\x1b[2J\\u202e"), printable("x" * 9, most=5)
    ('two\\\\nlines', '\\\\x1b[2J\\\\u202e', 'xxxx…')
    """
    head = text if most is None else text[: most + 1]
    shown = _CONTROL.sub(lambda found: ascii(found[0])[1:-1], head)
    return shown if most is None or len(shown) <= most else shown[: most - 1] + "…"


def no_formula(text: str) -> str:
    """A text, such as the name of an arm, that spreadsheets take for no formula.

    >>> no_formula("=1+1"), no_formula("new")
    ("'=1+1", 'new')
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def printable_lines(text: str) -> str:
    """The same of each line of a text whose lines are ours."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """A JSON document with the same characters escaped, as JSON escapes them.

    >>> printable_json('{\\n"a": "\\u202e"}')
    '{\\n"a": "\\\\u202e"}'
    """
    return _CONTROL.sub(lambda c: c[0] if c[0] == "\n" else f"\\u{ord(c[0]):04x}", text)


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "user"), counted(1200, "user")
    ('1 user', '1,200 users')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def number(value: float) -> str:
    """Three significant digits.

    >>> [number(value) for value in (0.123456, 3.125, 1234.5, 0, -0.5)]
    ['0.123', '3.13', '1,235', '0', '−0.500']
    """
    if abs(value) < _TINY:
        return "0"
    if abs(value) >= 999.5:
        return _fixed(value, 0)
    exponent = int(f"{value:.2e}".partition("e")[2])
    return _fixed(value, max(0, 2 - exponent))


def percent(value: float) -> str:
    """A share.

    >>> percent(0.0059), percent(0), percent(0.2)
    ('0.590%', '0%', '20.0%')
    """
    return f"{number(100 * value)}%"


def two_digits(value: float) -> str:
    """A size in a sentence, which is not more exact than that.

    >>> [two_digits(value) for value in (39.41, 0.0352, 1371.2, 0, 9.97)]
    ['39', '0.035', '1,400', '0', '10']
    """
    if abs(value) < _TINY:
        return "0"
    exponent = int(f"{value:.1e}".partition("e")[2])
    return _fixed(round(value, 1 - exponent) if exponent > 1 else value, max(0, 1 - exponent))


def share(value: float) -> str:
    """A share of the settings, which has few digits by itself.

    >>> share(0.2), share(1 / 3)
    ('20%', '33.3%')
    """
    return f"{_short(100 * value)}%"


def margin(form: str, value: float) -> str:
    """A difference of the settings, likewise, in the unit of the metric.

    >>> margin("percent", 0.005), margin("number", 0.02)
    ('0.5 points', '0.02')
    """
    return f"{_short(100 * value if form == 'percent' else value)}{_UNITS.get(form, '')}"


def _short(value: float) -> str:
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def value_text(form: str, value: float) -> str:
    """The value of a metric by its form: percent, seconds or number.

    >>> value_text("percent", 0.0059), value_text("seconds", 29.13), value_text("number", 0.0069)
    ('0.590%', '29.1 s', '0.00690')
    """
    if form == "percent":
        return percent(value)
    return f"{number(value)} s" if form == "seconds" else number(value)


def p_words(value: float) -> str:
    """
    >>> p_words(0.7383), p_words(1), p_words(3e-7)
    ('p = 0.74', 'p = 1', 'p < 0.0001')
    """
    return f"p {'' if value < _LEAST_P else '= '}{p_value(value)}"


def p_value(value: float) -> str:
    """Two digits; what is smaller than four decimals is said to be so.

    >>> p_value(0.03664), p_value(1e-9)
    ('0.037', '< 0.0001')
    """
    if value < _LEAST_P:
        return "< 0.0001"
    exponent = int(f"{value:.1e}".partition("e")[2])
    return _fixed(value, 1 - exponent).rstrip("0").rstrip(".")


def change(value: float) -> str:
    """A relative change, with two digits.

    >>> [change(value) for value in (-1, -0.293, 0.042, 0.00042, 0, 2)]
    ['−100%', '−29%', '+4.2%', '+0.042%', '0%', '+200%']
    """
    if not isfinite(value):
        return "no bound"
    size = abs(value)
    text = whole_percent(size) if size >= _HUNDREDTH else f"{two_digits(100 * size)}%"
    return text if text == "0%" else f"{'+' if value > 0 else MINUS}{text}"


def whole_percent(value: float) -> str:
    """A size in whole percent, below a tenth with one decimal; nearly all is not all.

    >>> [whole_percent(size) for size in (0.421, 0.05, 0, 0.9999, 1)]
    ['42%', '5.0%', '0%', '99.9%', '100%']
    """
    if 0.995 <= value < 1:
        return "99.9%"
    text = _fixed(100 * value, 0 if value >= 0.0995 else 1)
    return "0%" if text == "0.0" else f"{text}%"


def difference(form: str, value: float) -> str:
    """A difference of two values of a metric; of shares in points of a hundred.

    >>> difference("percent", -0.00196), difference("seconds", 1.25), difference("number", 0)
    ('−0.196 points', '+1.25 s', '0')
    """
    text = number(100 * value if form == "percent" else value)
    return f"{'+' * (value > 0 and text != '0')}{text}{_UNITS.get(form, '')}"


def _fixed(value: float, decimals: int) -> str:
    """With so many decimals, halves away from 0, as browsers round."""
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    return f"{rounded:,}".replace("-", MINUS)


def minute(at_ms: int) -> str:
    """A time of UTC, from epoch milliseconds.

    >>> minute(1_763_000_000_000)
    '2025-11-13 02:13'
    """
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def span(from_ms: int, to_ms: int) -> str:
    """From when to when.

    >>> span(0, 60_000)
    '1970-01-01 00:00 to 1970-01-01 00:01 UTC'
    """
    return f"{minute(from_ms)} to {minute(to_ms)} UTC"


def moment(at_ms: int) -> str:
    """The same to the millisecond, as RFC 3339 writes it.

    >>> moment(1_763_000_000_400)
    '2025-11-13T02:13:20.400Z'
    """
    at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return at.replace("+00:00", "Z")


def partitions_in_words(numbers: Collection[int]) -> str:
    """
    >>> partitions_in_words({3}), partitions_in_words(range(10))
    ('partition 3', 'partitions 0, 1, 2, 3, 4, 5, 6, 7 …')
    """
    shown = ", ".join(map(str, sorted(numbers)[:_SHOWN]))
    more = " …" if len(numbers) > _SHOWN else ""
    return f"partition{'s' if len(numbers) > 1 else ''} {shown}{more}"
