"""What settings read of the records of samples: their kinds, and what stands at their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.lookup import as_text, parsed, unfolded, values_at
from streamer.settings.event_fields import TYPE_OF_KIND
from streamer.settings.model import Settings
from streamer.settings.paths import Each, Path, path_of
from streamer.settings.source_rules import forms_of
from streamer.settings.sources import FieldSource, KindValue, Source, several


def records_of(
    settings: Settings, samples: Sequence[SampledTopic]
) -> dict[tuple[int, str], list[Any]]:
    """(number of a source, kind) → its records, one for each event of those that hold several."""
    found: dict[tuple[int, str], list[Any]] = {}
    for sample in samples:
        log = settings.logs.get(sample.topic)
        if log is None or not settings.reads_sources:
            continue
        source = settings.sources[log.source]
        for record in sample.records:
            value = parsed(record.value)
            for one in events_of(source, unfolded(source, value)) if value else ():
                kinds, _ = kinds_said(source, sample.topic, record, one)
                for kind in kinds:
                    found.setdefault((log.source, kind), []).append(one)
    return found


def events_of(source: Source, record: Any) -> Iterator[Any]:
    """A record once for each event that it holds, each time with that alone."""
    if source.each is None:
        yield record
        return
    yield from _alone(record, path_of(source.each))


def _alone(value: Any, path: Path) -> Iterator[Any]:
    if not path:
        yield value
    elif isinstance(path[0], Each):
        for element in value if isinstance(value, list) else ():
            for inner in _alone(element, path[1:]):
                yield [inner]
    elif isinstance(value, Mapping) and path[0] in value:
        for inner in _alone(value[path[0]], path[1:]):
            yield {**value, path[0]: inner}


def kinds_said(
    source: Source, topic: str, record: FoundRecord, value: Any
) -> tuple[list[str], str | None]:
    """The kinds of events (impression, …) that a record is, and the text that says so."""
    text = _text_of_kind(source, record, value)
    found = []
    for kind, rule in source.kind.rules_of_topic(topic):
        is_met = rule.value is None or rule.value == text
        if kind is not None and is_met and _meets(rule, value):
            found.append(TYPE_OF_KIND[kind])
    return list(dict.fromkeys(found)), text


def _text_of_kind(source: Source, record: FoundRecord, value: Any) -> str | None:
    for path in several(source.kind.field or ()):
        for found in values_at(value, path_of(path)):
            return as_text(found)
    return record.headers.get(source.kind.header) if source.kind.header else None


def _meets(rule: KindValue, value: Any) -> bool:
    for path, wanted in rule.conditions:
        found = list(values_at(value, path_of(path)))
        if isinstance(wanted, bool):
            if bool(found) != wanted:
                return False
        elif not any(as_text(one) in wanted for one in found):
            return False
    return True


def read_at(said: FieldSource, record: Any) -> tuple[Mapping[str, Any], list[Any]]:
    """The form of a field by which a record has values, and these; of a product its results."""
    form: Mapping[str, Any] = {}
    for form in forms_of(said):
        if "product" in form:
            factors = [list(values_at(record, path_of(path))) for path in form["product"]]
            found = _products(*factors)
        elif "path" in form:
            found = list(values_at(record, path_of(form["path"])))
        else:
            return form, []
        if found:
            return form, found
    return form, []


def _products(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    if len(left) != len(right):
        return []
    pairs = [(number_of(a), number_of(b)) for a, b in zip(left, right, strict=True)]
    return [a * b for a, b in pairs if a is not None and b is not None]


def number_of(value: Any) -> float | None:
    """A number, also one that is a text.

    >>> number_of("12.50"), number_of(7), number_of("x"), number_of(True)
    (12.5, 7.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
