"""What workers and exporters log: one event a line, as text or JSON, and the same one seldom."""

from __future__ import annotations

import datetime
import logging
import logging.config
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from streamer.formatting import printable, printable_lines

AGAIN_SECONDS = 10.0
NOTICE_SECONDS = 60.0
"""Notices of one kind are at least so far apart."""
_KAFKA = (
    *("aiokafka", "aiokafka.cluster", "aiokafka.conn", "aiokafka.producer.sender"),
    *("aiokafka.consumer.fetcher", "aiokafka.consumer.group_coordinator"),
)


_NORMAL = ("GroupCoordinatorNotAvailableError", "because it is rebalancing")
"""What Kafka's client complains of when a broker starts, and when workers come and go."""
_MODE = ("streamer.worker.app", "streamer.kafka.transport")
"""Under these names Faust's own services log: they start and stop."""


class _Record(logging.LogRecord):
    """A message of ours, and what an exception says, is one line; of others all lines. All are
    escaped."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info:
            parts = traceback.format_exception(*self.exc_info)
            self.exc_text = "\n".join(_part(part.strip("\n")) for part in parts)

    def getMessage(self) -> str:  # noqa: N802
        is_own = self.name.partition(".")[0] == "streamer"
        return (printable if is_own else printable_lines)(super().getMessage())


def _part(text: str) -> str:
    """A frame of a traceback, which has several lines, or what an exception says."""
    is_frame = text.lstrip(" |+").startswith("File ")
    return (printable_lines if is_frame else printable)(text)


def printable_logs() -> None:
    """Escape the control characters of everything that this process logs."""
    logging.setLogRecordFactory(_Record)


class TextFormatter(logging.Formatter):
    """``2026-11-28T10:00:00.000Z INFO partition 3 is recovered``; others' with their name."""

    def __init__(self, **_: object) -> None:
        super().__init__("%(time)s %(levelname)s %(whose)s%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """A line, and those of its exception."""
        record.time = _time(record)
        record.whose = "" if record.name.partition(".")[0] == "streamer" else f"{record.name}: "
        return super().format(record)


class JsonFormatter(logging.Formatter):
    """An object a line: the values that a message names are fields of it."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever it says."""
        named = record.args if isinstance(record.args, Mapping) else {}
        found: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in named.items() if isinstance(value, str | int | list)},
        }
        if record.exc_info:
            found["exception"] = record.exc_text
        return msgspec.json.encode(found).decode()


def _time(record: logging.LogRecord) -> str:
    found = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return f"{found:%Y-%m-%dT%H:%M:%S}.{record.msecs:03.0f}Z"


def logging_config(level: str, layout: str) -> dict[str, object]:
    """What ``logging.config.dictConfig`` and Faust take; ``layout``: `text` or `json`."""
    formatter = JsonFormatter if layout == "json" else TextFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"ours": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "ours"}},
        "loggers": {
            "streamer": {"level": level.upper()},
            **{name: {"level": "WARNING"} for name in _MODE},
        },
        "root": {"level": "WARNING", "handlers": ["stderr"]},
    }


def configure(level: str, layout: str) -> None:
    """Log in this process as the settings say."""
    logging.config.dictConfig(logging_config(level, layout))


class Seldom:
    """Lets one of a kind through in a while, and counts those between.

    >>> seldom = Seldom(60.0, clock=iter([0.0, 1.0, 2.0, 70.0]).__next__)
    >>> [seldom.again("slow") for _ in range(4)]
    ['', None, None, ' (and 2 more like it in the 70 s before)']
    """

    def __init__(self, seconds: float, clock: Callable[[], float] | None = None) -> None:
        self._seconds = seconds
        self._clock = clock or time.monotonic
        self._last: dict[object, tuple[float, int]] = {}

    def again(self, kind: object) -> str | None:
        """What to say of those that were left out; None where this one is left out, too."""
        now = self._clock()
        last, more = self._last.get(kind, (None, 0))
        if last is not None and now - last < self._seconds:
            self._last[kind] = last, more + 1
            return None
        self._last[kind] = now, 0
        return f" (and {more} more like it in the {now - (last or 0):.0f} s before)" * bool(more)


class RateLimited(logging.Filter):
    """Lets a message through whose like (same place in the code) was not said lately."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = Seldom(AGAIN_SECONDS)
        self._normal_since = self._normal_at = -NOTICE_SECONDS

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a message of a line of code that logged less than ``AGAIN_SECONDS`` ago, and
        for what is normal unless it lasts."""
        if any(text in record.getMessage() for text in _NORMAL):
            now = time.monotonic()
            if now - self._normal_at > NOTICE_SECONDS:
                self._normal_since = now
            self._normal_at = now
            if now - self._normal_since < AGAIN_SECONDS:
                return False
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        more = self._seldom.again((record.pathname, record.lineno))
        record.msg = f"{record.msg}{more or ''}"
        return more is not None


def quiet_kafka() -> None:
    """For the loggers of the Kafka client in this process."""
    limited = RateLimited()
    for name in _KAFKA:
        logging.getLogger(name).addFilter(limited)


class Notices:
    """Warnings of an exporter: of each kind one line a minute, with how many were left out."""

    def __init__(self) -> None:
        self._seldom = Seldom(NOTICE_SECONDS)

    def note(self, kind: str, text: str) -> None:
        """Say ``text``, unless something of this ``kind`` (one of a few) was said a minute ago."""
        more = self._seldom.again(kind)
        if more is not None:
            logging.getLogger("streamer.exporter").warning("%s%s", text, more)
