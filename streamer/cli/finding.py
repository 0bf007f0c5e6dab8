"""One line of ``streamer check``."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARN, ERROR = "ok", "warn", "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at and found, and what to do about it."""

    level: str
    what: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.level:<5}  {self.what}" + (f"  — {self.fix}" if self.fix else "")
