"""What arguments of the command line may be: each function reads one, or says what it should be."""

from __future__ import annotations

import argparse
import datetime
import re

from streamer.ingest.hash_key import HashKey, parse_key


def positive(text: str) -> float:
    """A number above 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def share(text: str) -> float:
    """A share between 0 and 1, as ``0.02`` or ``2%``."""
    number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share like 0.02 or 2%")
    return number


def count(text: str) -> int:
    """A whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def port(text: str) -> int:
    """A port; 0 takes a free one."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def partition(text: str) -> int:
    """A partition number."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a partition number")
    return int(text)


def hash_key(text: str) -> HashKey:
    """32 hexadecimal digits; they are a secret, so the message does not repeat them."""
    try:
        return parse_key(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; this has {len(text)} characters") from None


def moment(text: str) -> int:
    """A time as ``2026-11-02T14:00``, of UTC where it has no offset; in epoch milliseconds."""
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-11-02T14:00") from None
    return round((at if at.tzinfo else at.replace(tzinfo=datetime.UTC)).timestamp() * 1000)


def label(text: str) -> tuple[str, str]:
    """A label of Prometheus, as ``system=shop``."""
    name, sign, value = text.partition("=")
    if not sign or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name):
        raise argparse.ArgumentTypeError(f"{text!r} is not a label like system=shop")
    return name, value


def date(text: str) -> datetime.date:
    """A day, as ``2026-11-02``."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day like 2026-11-02") from None
