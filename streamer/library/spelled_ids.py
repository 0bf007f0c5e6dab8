"""Ids that are spelled differently in the two tables of ``evaluate``: they match nothing, and the
metrics are too low without an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from streamer.errors import SourceError
from streamer.sources.tables import ArrowTable, lines_of_table

_ROWS = 10_000
"""Rows of a table whose ids are compared."""
_LEAST = 0.05
"""Share of the ids of clicks that must be respelled: where case matters, a few always seem so."""

Ids = Mapping[str, list[str]]
"""The ids of a table, by column and in the order of rows, each once."""


def ids_of(table: ArrowTable, names: Mapping[str, str | None]) -> Ids:
    """The ids of the first rows, by our names of columns; none of a stream that is used up."""
    found: dict[str, dict[str, None]] = {ours: {} for ours, name in names.items() if name}
    try:
        for row in islice(_rows(table), _ROWS):
            for ours in found:
                if (value := row.get(str(names[ours]))) is not None:
                    found[ours][str(value)] = None
    except SourceError:
        return {}
    return {ours: list(ids) for ours, ids in found.items() if ids}


def _rows(table: ArrowTable) -> Iterator[Mapping[str, object]]:
    for lines in lines_of_table(table, ""):
        yield from map(msgspec.json.decode, lines)


def respelled(shown: list[str], clicked: list[str]) -> tuple[str, str] | None:
    """An id of the clicks and that of the impressions which it seems to be, where many are so.

    >>> respelled(["10", "b"], ["10.0", "b"]), respelled(["u-1"], ["U-1 "])
    (('10.0', '10'), ('U-1 ', 'u-1'))
    >>> respelled(["10", "b"], ["11", "b"])
    """
    known = set(shown)
    by_form = {_form(text): text for text in shown}
    pairs = [(text, by_form.get(_form(text))) for text in clicked if text not in known]
    found = [(text, other) for text, other in pairs if other is not None]
    return found[0] if len(found) > _LEAST * len(clicked) else None


def _form(text: str) -> str:
    """What texts of the same id have in common: not case, spaces, leading zeros, or a fraction of 0
    as of integers that became floats."""
    whole, _, fraction = text.strip().casefold().partition(".")
    if fraction.strip("0"):
        whole = f"{whole}.{fraction}"
    return whole.lstrip("0") or "0"


def spelling_warnings(shown: Ids, clicked: Ids, *, has_hit: bool) -> Iterator[str]:
    """What must be looked at. ``has_hit``: an item of the clicks is in a list."""
    pairs = {name: respelled(shown[name], clicked[name]) for name in clicked if name in shown}
    for name, pair in pairs.items():
        if pair is not None:
            yield (
                f"{name} is spelled differently in both tables: {pair[0]!r} in clicks, {pair[1]!r} "
                "in impressions. Such rows do not match: convert one of the columns"
            )
    if not has_hit and pairs.get("item_id") is None:
        said = example_of("item_id", shown, clicked)
        yield f"no item of clicks is in a list, so nothing is hit{said}"


def example_of(name: str, shown: Ids, clicked: Ids) -> str:
    """How both tables spell an id, as the end of a sentence; nothing where that is not known.

    >>> example_of("user_id", {"user_id": ["7", "8"]}, {"user_id": ["u8"]})
    ": user_id is 'u8' in clicks, '7' in impressions"
    """
    if name not in shown or name not in clicked:
        return ""
    pair = respelled(shown[name], clicked[name]) or (clicked[name][0], shown[name][0])
    return f": {name} is {pair[0]!r} in clicks, {pair[1]!r} in impressions"
