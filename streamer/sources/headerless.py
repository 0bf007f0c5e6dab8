"""Tables without a header row: whose columns they have, of the presets that know theirs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path

from streamer.errors import SourceError
from streamer.ingest.discovery.presets import presets_of_tables
from streamer.ingest.record import IGNORED, record_decoder
from streamer.settings.model import Settings
from streamer.sources.csv_rows import CsvFile, numeric_columns

_ROWS = 200
"""Rows that are looked at."""
_MOST = 0.99
"""Share of them, the first among them, that a preset must read."""


def columns_of(path: str | Path) -> tuple[str, ...]:
    """The columns of a file as a preset knows them, where it reads its rows; else none."""
    for settings in presets_of_tables().values():
        columns = settings.sources[0].columns
        try:
            lines = CsvFile(path, numeric_columns(settings), columns)
            if _reads(settings, islice(chain.from_iterable(lines), _ROWS)):
                return columns
        except SourceError:
            continue
    return ()


def _reads(settings: Settings, rows: Iterable[bytes]) -> bool:
    decoder, counted, refused = record_decoder(settings), 0, 0
    for i, row in enumerate(rows):
        events = decoder.decode_all("x", row)
        is_refused = any(isinstance(one, str) and one != IGNORED for one in events)
        if is_refused and i == 0:
            return False
        refused += is_refused
        counted += any(not isinstance(one, str) for one in events)
    return counted > 0 and refused <= (1 - _MOST) * (counted + refused)
