"""Documents of ``/api/readings``: which readings a query wants, and their bytes, made once."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping, Sequence

import msgspec

from streamer.metrics.catalogue import PREFIX
from streamer.query.readings import Reading, ReadingSet
from streamer.settings import limits
from streamer.settings.model import Settings

Query = Mapping[str, Sequence[str]]
"""Name of a label, or ``name`` → values of which a reading has one."""
_LEVEL = 4
_GZIP = 16 + zlib.MAX_WBITS
_ALWAYS = ("all", "other", "unknown")
_MOST_SHOWN = 20


class UnknownValueError(Exception):
    """A query names a window or a value of a dimension that is not there."""


def require_known(name: str, value: str, known: Sequence[str]) -> None:
    """UnknownValueError for a value that is not there, with the first of those that are."""
    if value not in known:
        shown = ", ".join(known[:_MOST_SHOWN])
        more = f" and {len(known) - _MOST_SHOWN} more" * (len(known) > _MOST_SHOWN)
        text = f"no {name} {value[: limits.MAX_FOUND_CHARS]!r}"
        raise UnknownValueError(f"{text}; there are {shown}{more}")


class Documents:
    """The documents of the last readout, by query."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._readout: ReadingSet | None = None
        self._made: dict[tuple[object, ...], bytes] = {}
        self._known: dict[str, frozenset[str]] = {}
        self._lock = asyncio.Lock()

    async def body(self, result: ReadingSet, query: Query, is_gzip: bool) -> bytes:
        """JSON, in gzip where wanted, made in a thread. UnknownValueError names what there is."""
        key = (is_gzip, *sorted((name, tuple(values)) for name, values in query.items()))
        async with self._lock:
            if self._readout is not result:
                self._readout, self._made, self._known = result, {}, {}
            if key not in self._made:
                body = await asyncio.to_thread(self._body, result, query, is_gzip)
                kept_bytes = sum(map(len, self._made.values())) + len(body)
                is_full = len(self._made) >= limits.MAX_DOCUMENTS
                if is_full or kept_bytes > limits.MAX_DOCUMENT_BYTES:
                    self._made.clear()
                self._made[key] = body
            return self._made[key]

    def _body(self, result: ReadingSet, query: Query, is_gzip: bool) -> bytes:
        self._check(result, query)
        chosen = [r for r in result.readings if _matches(r, query)]
        body = msgspec.json.encode(ReadingSet.of(result.stream_ms, chosen).as_json())
        if is_gzip:
            stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
            body = stream.compress(body) + stream.flush()
        return body

    def _check(self, result: ReadingSet, query: Query) -> None:
        known = {"window": list(self._settings.windows.lengths_ms)}
        for dimension in self._settings.kept_dimensions:
            if dimension.name in query:
                found = self._values(result, dimension.name)
                named = {*found, *dimension.values} - {*_ALWAYS}
                known[dimension.name] = [*_ALWAYS, *sorted(named)]
        for name, values in known.items():
            for value in query.get(name, ()):
                require_known(name, value, values)

    def _values(self, result: ReadingSet, dimension: str) -> frozenset[str]:
        """Values of a dimension that any reading has."""
        if dimension not in self._known:
            labels = {id(b.labels): b.labels for b in result.blocks}
            self._known[dimension] = frozenset(
                each[dimension] for group in labels.values() for each in group if dimension in each
            )
        return self._known[dimension]


def _matches(reading: Reading, query: Query) -> bool:
    """Whether a reading has one of the wanted names, and of each label one of the wanted values."""
    return all(
        any(reading.name in (value, PREFIX + value) for value in wanted)
        if key == "name"
        else reading.labels.get(key) in wanted
        for key, wanted in query.items()
    )
