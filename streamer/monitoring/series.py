"""What streamer declares of its series, as a panel needs it: the description and Grafana's unit."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.metrics.catalogue import PREFIX
from streamer.server.series import entries

NUMBER, PERCENT, SECONDS, YES_NO = "short", "percentunit", "s", "bool_yes_no"
_UNITS = {"ratio": PERCENT, "seconds": SECONDS, "epoch seconds": SECONDS, "0 or 1": YES_NO}


@dataclass(frozen=True)
class PanelSeries:
    """A series of ``/metrics``; ``labels`` lacks the window and the dimensions."""

    name: str
    description: str
    unit: str = NUMBER
    labels: tuple[str, ...] = ()


def declared() -> dict[str, PanelSeries]:
    """Every series by its name without ``streamer_``."""
    return {
        each.name.removeprefix(PREFIX): PanelSeries(
            each.name,
            f"{each.doc}\n\nFormula: {each.formula}. When empty: {each.empty}.",
            _UNITS.get(each.unit, NUMBER),
            each.labels,
        )
        for each in entries()
    }
