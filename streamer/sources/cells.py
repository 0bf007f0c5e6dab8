"""Cells of CSV files: which of them are numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamer.settings.event_fields import KINDS, NUMBERS
from streamer.settings.model import Settings
from streamer.settings.paths import path_of
from streamer.settings.source_rules import forms_of

is_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII).fullmatch
"""Whether a text is a number as JSON writes it: ``007`` and ``+1`` are none."""


def numeric_columns(settings: Settings) -> frozenset[str]:
    """Names of columns whose numbers are numbers: those that a numeric field of ours is read from,
    and that are no id, time or dimension besides. All other cells are texts, whatever is in them.

    >>> from streamer.settings.load import parse
    >>> sorted(numeric_columns(parse({"events": {"fields": {"score": "relevance"}}})))[-3:]
    ['relevance', 'reward_estimate', 'value']
    """
    numbers = {*NUMBERS, *settings.policy_fields}
    numbers |= {name for fields in settings.custom_fields.values() for name in fields}
    found = {settings.events.fields.get(name, name) for name in numbers}
    said = list(_said(settings))
    found -= {column for ours, column in said if ours not in numbers}
    return frozenset(found | {column for ours, column in said if ours in numbers})


def _said(settings: Settings) -> Iterator[tuple[str, str]]:
    """(our field, a column that the settings read it from)."""
    for source in settings.read_sources:
        fields = [field for kind in KINDS for field in source.fields_of(kind).items()]
        for ours, said in fields:
            for form in forms_of(said):
                for path in form.get("product", (form.get("path"),)):
                    if path is not None and isinstance(step := path_of(path)[0], str):
                        yield ours, step
