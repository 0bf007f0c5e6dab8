"""Work that is made again whenever something changed, unless it takes long."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from streamer.settings import limits


class Sparing:
    """When it may be made again: at once, but what takes longer than ``limits.READOUT_SECONDS``
    gets one in ``limits.READOUT_PARTS`` of the time."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """``clock``: seconds; without one it may always be made."""
        self._clock = clock or (lambda: 0.0)
        self._made_at = self._seconds = 0.0

    @property
    def may_begin(self) -> bool:
        """Whether it may be made now."""
        is_long = self._seconds > limits.READOUT_SECONDS
        pause = limits.READOUT_PARTS * self._seconds if is_long else 0.0
        return self._clock() - self._made_at >= pause

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Around the work."""
        begun = self._clock()
        yield
        self._made_at = self._clock()
        self._seconds = self._made_at - begun
