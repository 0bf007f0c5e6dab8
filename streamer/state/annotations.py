"""Marks from outside: deployments, campaigns and outages that somebody told the exporter about.
Nothing is computed of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streamer.settings import limits
from streamer.settings.durations import DAY_MS


class Annotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happened at a time (ms); until when, where it lasted."""

    at_ms: int
    text: str
    until_ms: int | None = None

    def problem(self, now_ms: int) -> str | None:
        """Why it is not stored.

        >>> Annotation(5, "model 7").problem(9), Annotation(5, "model 7", 4).problem(9)
        (None, 'until_ms is before at_ms')
        """
        most = limits.MAX_ANNOTATION_CHARS
        if not 0 < len(self.text) <= most or not self.text.isprintable():
            return f"text must have 1 to {most} printable characters"
        if not 0 <= self.at_ms <= limits.MAX_EVENT_MS:
            return "at_ms is no time in milliseconds since 1970"
        if self.is_of_the_future(now_ms):
            return f"at_ms is {self.at_ms}, more than a day after now, {now_ms}"
        if self.until_ms is not None and not self.at_ms <= self.until_ms <= limits.MAX_EVENT_MS:
            return "until_ms is before at_ms"
        return None

    def is_of_the_future(self, now_ms: int) -> bool:
        """Whether it is of a time that nothing can be known of yet."""
        return self.at_ms > now_ms + DAY_MS


def beyond_bound(marks: Mapping[str, Annotation], now_ms: int) -> list[str]:
    """Ids of marks that leave: those of the future first, then the oldest."""
    leaving = sorted(marks, key=lambda n: (not marks[n].is_of_the_future(now_ms), marks[n].at_ms))
    return leaving[: max(0, len(marks) - limits.MAX_ANNOTATIONS)]


def stored_annotations(found: Mapping[bytes, bytes]) -> dict[str, Annotation]:
    """By their ids, the oldest first; what cannot be read is left out."""
    read: dict[str, Annotation] = {}
    for name, data in found.items():
        try:
            each = msgspec.json.decode(data[: limits.MAX_ANNOTATION_BYTES], type=Annotation)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if each.problem(limits.MAX_EVENT_MS) is None:
            read[name.decode(errors="replace")] = each
    return dict(sorted(read.items(), key=lambda pair: (pair[1].at_ms, pair[0])))
