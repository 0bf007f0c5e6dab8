"""What ``streamer check`` and ``streamer run`` say of the number of series."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.cli.finding import OK, WARN, Finding
from streamer.query.series_estimate import ASSUMED, expected_series
from streamer.settings.model import Settings
from streamer.state.manifest import Manifest, Texts

Stored = Sequence[tuple[Manifest, Texts]]
"""What is stored of each partition."""


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
