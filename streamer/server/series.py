"""Every series of ``/metrics``, as declared: for documentation, panels and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamer.metrics.catalogue import FAMILIES, PREFIX
from streamer.metrics.definition import Brief, DeclaredSeries, Family
from streamer.query.readings import SAMPLED
from streamer.server import processor

OTHERS: tuple[Family[Any], ...] = (*SAMPLED, processor.FAMILY)
"""All other families, which settings do not switch off."""


@dataclass(frozen=True)
class Entry:
    """One series of ``/metrics``. ``labels`` lacks what many share: window and dimensions."""

    name: str
    family: str
    kind: str
    scope: str
    labels: tuple[str, ...]
    formula: str
    unit: str
    empty: str
    source: str
    doc: str
    brief: str = ""
    """What of it every rollup shows; nothing: it is for detailed rollups."""

    @staticmethod
    def of(family: str, declared: DeclaredSeries[Any]) -> Entry:
        """A declared series of a family."""
        return Entry(
            *(PREFIX + declared.name, family, declared.kind, declared.scope, declared.labels),
            *(declared.formula, declared.unit, declared.empty, declared.source, declared.doc),
            _in_words(declared.brief),
        )


def entries() -> list[Entry]:
    """All that streamer can show, whatever the settings ask for."""
    return [
        Entry.of(family.name, declared)
        for family in (*OTHERS, *FAMILIES)
        for declared in family.metrics
    ]


def _in_words(brief: Brief | None) -> str:
    """What of a metric every rollup shows."""
    if brief is None:
        return ""
    only = ", ".join(f'{name}="{value}"' for name, value in brief.labels.items())
    crossings = ", single dimensions only" if brief.dimensions == 1 else ""
    return f"brief{f' ({only}{crossings})' if only or crossings else ''}"
