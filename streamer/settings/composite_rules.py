"""Rules of ``[[composites]]`` and ``windows.day_before`` that types cannot say."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from streamer.errors import SettingsError
from streamer.settings import limits
from streamer.settings.durations import pane_length_ms
from streamer.settings.experiments import DAY_MS

if TYPE_CHECKING:
    from streamer.settings.composites import CompositePart
    from streamer.settings.model import Settings

_AGAINST = ("value", "target", "day_before")


def validate_composites(s: Settings) -> None:
    """SettingsError where a composite cannot be."""
    _validate_day_before(s)
    if "composites" in s.metrics.families and not s.composites:
        raise SettingsError("metrics.families: 'composites' needs [[composites]]: there are none")
    if len(s.composites) > limits.MAX_COMPOSITES:
        raise SettingsError(f"{len(s.composites)} composites; at most {limits.MAX_COMPOSITES}")
    names = [composite.name for composite in s.composites]
    for i, composite in enumerate(s.composites):
        at = f"at composites[{i}]"
        name, parts = composite.name, composite.parts
        if re.match(limits.LABEL_PATTERN, name) is None or names.count(name) > 1:
            raise SettingsError(
                f"name = {name!r}: 1 to 64 of A-Za-z0-9_.:-, and no other's name; {at}"
            )
        least, most = limits.COMPOSITE_PARTS
        if not least <= len(parts) <= most:
            raise SettingsError(f"{len(parts)} parts: {least} to {most}; {at}")
        if len({(part.metric, part.against) for part in parts}) < len(parts):
            raise SettingsError(f"a part stands twice: add up its weights; {at}")
        for place, part in enumerate(parts):
            _validate_part(part, s, f"{at}.parts[{place}]")


def _validate_part(part: CompositePart, s: Settings, at: str) -> None:
    if part.metric.partition("@")[0] == "composite":
        raise SettingsError(f"metric = {part.metric!r}: a composite has no composites; {at}")
    if not part.weight or not math.isfinite(part.weight):
        raise SettingsError(f"weight = {part.weight}: a number other than 0; {at}")
    if part.against not in _AGAINST:
        raise SettingsError(f"against = {part.against!r}: one of {', '.join(_AGAINST)}; {at}")
    if (part.target is not None) != (part.against == "target"):
        raise SettingsError(
            f"target = {part.target} and against = {part.against!r}: against = 'target' needs a "
            f"target, and nothing else has one; {at}"
        )
    if part.target is not None and not 0 < part.target < math.inf:
        raise SettingsError(f"target = {part.target}: above 0; {at}")
    if part.against == "day_before" and not s.windows.day_before:
        raise SettingsError(
            "against = 'day_before' needs windows.day_before, which names the windows that keep "
            f"their day before, e.g. ['1h']; {at}"
        )


def _validate_day_before(s: Settings) -> None:
    lengths, panes = s.windows.lengths_ms, 0
    asked = s.windows.day_before
    if len(set(asked)) < len(asked):
        raise SettingsError(f"windows.day_before = {list(asked)}: each once")
    for label in asked:
        if label not in lengths:
            raise SettingsError(
                f"windows.day_before: {label!r} is none of windows.lengths = {list(lengths)}"
            )
        pane_ms = pane_length_ms(lengths[label])
        if DAY_MS % pane_ms:
            raise SettingsError(
                f"windows.day_before: {label!r} has panes of {pane_ms} ms, which do not divide a "
                "day evenly: use a length that divides a day, such as 1h or 6h"
            )
        panes += (DAY_MS + lengths[label]) // pane_ms
    if panes > limits.MAX_DAY_BEFORE_PANES:
        raise SettingsError(
            f"windows.day_before = {list(asked)} has {panes} panes, at most "
            f"{limits.MAX_DAY_BEFORE_PANES}: use longer windows (10m has 8,700, 1h has 1,500)"
        )
