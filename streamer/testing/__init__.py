"""Test kit: read the metrics of a few events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from streamer.metrics.catalogue import PREFIX
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from streamer.sources.replay import Replay

START_MS = 1_700_000_000_000


def value_of(
    events: Sequence[Mapping[str, Any]],
    name: str,
    settings: Mapping[str, Any] | None = None,
    **labels: str,
) -> float | None:
    """A metric (without prefix) over all events together in the longest window; None where it is
    empty. Events follow each other by a second where they have no ``ts``, and are all of user
    ``u`` where they have no ``user_id``; ``labels`` choose one of several series.

    >>> events = [{"type": "impression", "item_id": "a"}, {"type": "click", "item_id": "a"}]
    >>> value_of(events, "ctr_ratio")
    1.0
    """
    replay = Replay(parse(settings or {}))
    lines = []
    for i, event in enumerate(events):
        at_ms = event.get("ts", START_MS + i * 1000)
        whole = {"ts": at_ms, "user_id": "u", **event}
        lines.append((LINE_TYPES[event["type"]], at_ms, msgspec.json.encode(whole)))
    replay.feed(lines)
    replay.finish()
    dimensions = dict.fromkeys(replay.settings.dimension_names, "all")
    wanted = {"window": replay.settings.windows.lengths[-1], **dimensions, **labels}
    for reading in replay.readout().readings:
        if reading.name == PREFIX + name and wanted.items() <= reading.labels.items():
            return float(reading.value)
    return None
