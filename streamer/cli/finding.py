"""Findings of ``streamer check``: one line each; and that of the number of series, which ``streamer
run`` shows, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from streamer.cli.terminal import BAD, GOOD, WARNING, say, say_beside, shown
from streamer.formatting import counted
from streamer.query.series_estimate import expected_series
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.manifest import Manifest, Texts

OK, WARN, ERROR = "ok", "warn", "error"
_STYLES = {OK: GOOD, WARN: WARNING, ERROR: BAD}
_INDENT = 7
Stored = Sequence[tuple[Manifest, Texts]]
"""What is stored of each partition."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at and found, and what to do about it."""

    level: str
    what: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.level:<5}  {self.what}" + (f"  — {self.fix}" if self.fix else "")

    def print(self, console: Console) -> None:
        """Print it: on a terminal between its margins, elsewhere as one line."""
        if not console.is_terminal:
            console.print(shown(str(self)), soft_wrap=True)
            return
        say_beside(console, Text(f"{self.level:<{_INDENT}}", _STYLES[self.level]), self.what)
        if self.fix:
            say(console, f"→ {self.fix}", indent=_INDENT)


def in_sum(findings: Sequence[Finding]) -> str:
    """The last line.

    >>> in_sum([Finding(WARN, "a"), Finding(OK, "b")]), in_sum([Finding(OK, "b")])
    ('no errors, 1 warning', 'no errors, no warnings')
    """
    levels = Counter(finding.level for finding in findings)
    counts = ((levels[level], noun) for level, noun in ((ERROR, "error"), (WARN, "warning")))
    return ", ".join(counted(n, noun) if n else f"no {noun}s" for n, noun in counts)


def series_finding(settings: Settings, stored: Stored) -> Finding:
    """How many series to expect, and a warning where they are many."""
    expected = expected_series(settings, values_seen(settings, stored))
    what = f"series: at most {expected:,} on /metrics"
    if stored:
        what += ", by the values stored so far"
    if expected <= limits.MANY_SERIES:
        return Finding(OK, what)
    fix = (
        "name the values of dimensions and lower max_values, and remove combinations of "
        "dimensions from metrics.rollups and metrics.detailed"
    )
    return Finding(WARN, f"{what}, more than {limits.MANY_SERIES:,}", fix)


def values_seen(settings: Settings, stored: Stored) -> list[set[str]] | None:
    """For each dimension its values in what is stored; None where nothing is."""
    names = settings.dimension_names
    segments = [
        dict(zip(manifest.holding.contents.dimensions, segment, strict=True))
        for manifest, texts in stored
        for segment in manifest.header(texts).segments
    ]
    if not segments:
        return None
    return [{s[name] for s in segments if name in s} for name in names]
