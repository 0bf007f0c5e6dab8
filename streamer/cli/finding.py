"""Findings of ``streamer check``: one line each; and that of the number of series, which ``streamer
run`` shows, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamer.query.series_estimate import ASSUMED, expected_series
from streamer.settings.model import Settings
from streamer.state.manifest import Manifest, Texts

OK, WARN, ERROR = "ok", "warn", "error"
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


def series_finding(settings: Settings, stored: Stored) -> Finding:
    """How many series to expect, and a warning where ``exporter.series_warning`` is passed."""
    expected = expected_series(settings, values_seen(settings, stored))
    what = f"series: at most {expected:,} on /metrics ({ASSUMED}"
    if stored:
        what += "; dimensions without named values with those stored so far"
    what += ")"
    bound = settings.exporter.series_warning
    if expected <= bound:
        return Finding(OK, what)
    fix = (
        "name the values of dimensions and lower max_values, remove combinations of dimensions "
        "from metrics.rollups and metrics.detailed, or raise the bound"
    )
    return Finding(WARN, f"{what}, more than exporter.series_warning = {bound:,}", fix)


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
