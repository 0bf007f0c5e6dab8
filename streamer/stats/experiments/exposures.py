"""Since when each user is exposed to an experiment: later outcomes count towards the arm.

Whether an event counts is known for good once its user was exposed no later than it, or once no
impression that early can be accepted any more. Until then it is kept by its own time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b


@dataclass(frozen=True)
class Exposure:
    """What exposes a user: an impression under one of these values, on this day (since 1970-01-01)
    or later. ``is_attributed``: every event counts whenever it was, to the arm that is its own."""

    dimension: str
    arms: tuple[str, ...]
    first_day: int
    is_attributed: bool = False

    @cached_property
    def name(self) -> str:
        """Under which it is stored what is counted, and since when."""
        how = "attributed" if self.is_attributed else "exposed"
        return f"{how} {self.dimension}={'|'.join(sorted(self.arms))} from {self.first_day}"

    def code(self, since_ms: int) -> int:
        """A number below 2**62 for the rows that are counted since then: those counted before, with
        a gap, are others."""
        name = f"{self.name} since {since_ms}".encode()
        return int.from_bytes(blake2b(name, digest_size=8).digest()) >> 2
