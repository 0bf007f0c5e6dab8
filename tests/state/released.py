"""Stored state as an earlier release wrote it, of state that this one wrote."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from streamer.state import codec
from streamer.state.codec import framed
from streamer.state.manifest import decode

LINES = "conversion_lines"
"""A statistic that it did not have: it counted orders by their lines."""
_OF_CONVERSIONS = "conversion_ids_"
"""How a table of event ids begins that were among the others then."""


def as_19(manifest: bytes) -> bytes:
    """A manifest as version 19 wrote it."""
    raw = msgspec.to_builtins(decode(manifest), builtin_types=(bytes,))
    counters = raw.pop("counters")
    of_log = [topic.pop("counters") for topic in raw["topics"].values()]
    for topic, counts in zip(raw["topics"].values(), of_log, strict=True):
        topic.update(counts)
    early, dropped = (defaultdict[str, int](int) for _ in range(2))
    for name, count in counters.items():
        what, _, of = name.partition(".")
        if what in ("unattributed", "unsettled"):
            raw.setdefault(what, {})[of] = count
        elif what == "evicted_early" and of != "event_ids":
            early[of] = count
        else:
            raw[name] = count
    dropped |= {
        "event_ids": counters["evicted_early.event_ids"],
        "segments": counters["segments_overflowed"],
        "user_items": counters["dropped_user_rows"],
        "user_days": counters["dropped_day_rows"],
        "alert_segments": counters["full_alert_series"],
        "item_labels": counters["full_item_counts"],
    }
    contents = msgspec.msgpack.decode(raw["contents"])
    contents["blocks"] = [block for block in contents["blocks"] if block[0] != LINES]
    raw["contents"] = msgspec.msgpack.encode(contents)
    for name in [name for name in raw["tables"] if name.startswith(_OF_CONVERSIONS)]:
        if refs := raw["tables"].pop(name):
            raw["tables"]["ids_" + name.removeprefix(_OF_CONVERSIONS)] = refs
    found = {"version": 19, "dropped": dropped, "evicted_early": early}
    found |= {"overflowed": list(raw["overflowed"].values())}
    return framed(codec.packed(msgspec.msgpack.encode({**raw, **found})), "the manifest")
