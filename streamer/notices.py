"""What is logged, seldom: trouble repeats itself many times a second."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from typing import Any

from streamer.formatting import printable, printable_lines

AGAIN_SECONDS = 10.0
NOTICE_SECONDS = 60.0
"""Notices of one kind are at least so far apart."""
_LOGGERS = (
    *("aiokafka", "aiokafka.cluster", "aiokafka.conn", "aiokafka.producer.sender"),
    *("aiokafka.consumer.fetcher", "aiokafka.consumer.group_coordinator"),
)


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


class RateLimited(logging.Filter):
    """Lets a message through whose like (same place in the code) was not said lately."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a message of a line of code that logged less than ``AGAIN_SECONDS`` ago."""
        place, now = (record.pathname, record.lineno), time.monotonic()
        if now - self._said.get(place, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return False
        self._said[place] = now
        return True


def quiet_kafka() -> None:
    """For the loggers of the Kafka client in this process."""
    limited = RateLimited()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(limited)


class Notices:
    """Warnings of an exporter: of each kind one line a minute, with how many were left out.

    >>> said = []
    >>> notices = Notices(said.append, clock=iter([0.0, 1.0, 70.0]).__next__)
    >>> for text in ("slow", "slow", "slow"):
    ...     notices.note(text, f"{text} client")
    >>> said
    ['slow client', 'slow client (and 1 more like it in the 70 s before)']
    """

    def __init__(
        self,
        say: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say or logging.getLogger("streamer.exporter").warning
        self._clock = clock
        self._said: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def note(self, kind: str, text: str) -> None:
        """Say ``text``, unless something of this ``kind`` (one of a few) was said a minute ago."""
        now = self._clock()
        last = self._said.get(kind)
        if last is not None and now - last < NOTICE_SECONDS:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        self._said[kind] = now
        more = self._left_out.pop(kind, 0)
        since = f" (and {more} more like it in the {now - (last or 0):.0f} s before)"
        self._say(text + since * bool(more))
