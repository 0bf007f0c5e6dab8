"""Stored state of earlier versions, brought to this one in steps from each to the next.

A step changes what a manifest says; rows and sums of panes are told apart by their names, and go on
by them (``state.migration``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Raw = dict[str, Any]
"""A manifest as msgpack has it."""


def upgraded(raw: Raw, version: int) -> Raw | None:
    """A manifest of an older version as one of this version; None where no step begins there."""
    while (have := int(raw["version"])) != version:
        step = STEPS.get(have)
        if step is None:
            return None
        raw = {**step(raw), "version": have + 1}
    return raw


def _from_19(raw: Raw) -> Raw:
    """Counters by name; bounds of rollups by key; ids of conversions in a table of their own.
    Custom metrics are ratios, which are counted again.

    Orders were counted by their lines, which lines of conversions go on with, and people by
    ``user_id`` alone: both stay so until their windows have passed.
    """
    contents = msgspec.msgpack.decode(raw["contents"])
    contents = {"amounts": [], "conditions": [], **contents}
    for custom in (contents, contents["listed"]):
        custom.pop("custom", None)
    counted = {block[0]: block for block in contents["blocks"]}
    if "conversions" in counted:
        contents["blocks"].append(["conversion_lines", *counted["conversions"][1:]])
    dropped, early = raw["dropped"], raw["evicted_early"]
    counters = {
        "combinations": raw["combinations"],
        "day_sample_bits": raw["day_sample_bits"],
        "dropped_day_rows": dropped["user_days"],
        "dropped_user_rows": dropped["user_items"],
        "full_alert_series": dropped["alert_segments"],
        "full_item_counts": dropped["item_labels"],
        "join_gap": raw["join_gap"],
        "left_out_experiments": raw["left_out_experiments"],
        "sample_bits": raw["sample_bits"],
        "segments_overflowed": dropped["segments"],
        "settled_moved": raw["settled_moved"],
        "evicted_early.event_ids": dropped["event_ids"],
        **{f"evicted_early.{name}": early[name] + dropped.get(name, 0) for name in early},
        **{f"unattributed.{kind}": count for kind, count in raw["unattributed"].items()},
        **{f"unsettled.{kind}": count for kind, count in raw["unsettled"].items()},
    }
    of_log = ("accepted", "duplicates", "late", "ignored", "anonymous", "cut_values")
    topics = {
        name: {**topic, "counters": {n: topic[n] for n in (*of_log, "join_gap", "evicted_early")}}
        for name, topic in raw["topics"].items()
    }
    for refused in (topic["rejected"] for topic in topics.values()):
        if "custom" in refused:
            refused["ratios"] = refused.pop("custom")
    tables = dict(raw["tables"])
    for log, fields in contents["fields"].items():
        kinds = {field.rpartition(" of ")[2] for field in fields if " of " in field}
        if kinds == {"conversions"} and f"ids_{log}" in tables:
            tables[f"conversion_ids_{log}"] = tables.pop(f"ids_{log}")
    overflowed = dict(zip(contents["rollups"], raw["overflowed"], strict=True))
    found = {"topics": topics, "tables": tables, "overflowed": overflowed, "first_retained": 0}
    own = {"contents": msgspec.msgpack.encode(contents), "counters": counters}
    return {**raw, **found, **own}


STEPS: Mapping[int, Callable[[Raw], Raw]] = {19: _from_19}
"""Version → the step from it to the next."""
