"""Readings as the Prometheus text format, or as OpenMetrics.

``render`` writes what ``prometheus_client.generate_latest`` would (a test holds it to that, byte
by byte), several times as fast: label texts are made once for each label set, not once for each
sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from prometheus_client.utils import floatToGoString

from streamer.query.readings import SeriesBlock
from streamer.settings import limits

_texts: dict[tuple[tuple[str, str], ...], str] = {}
"""Texts of label sets, from scrape to scrape; emptied when there are too many."""
_PLAIN = 1e6
"""Numbers nearer to 0 are written as Python does; Go's exponents begin here."""


def render(blocks: Sequence[SeriesBlock], is_openmetrics: bool = False) -> str:
    """The text format of readings, which stand together by name; in OpenMetrics without the last
    line, ``# EOF``, so that more may follow."""
    if len(_texts) > limits.MAX_LABEL_TEXTS:
        _texts.clear()
    texts: dict[tuple[object, ...], dict[int, str]] = {}
    out: list[str] = []
    shown = (b for b in blocks if b.present)
    for family, group in groupby(shown, attrgetter("family")):
        of_family = list(group)
        first = of_family[0]
        out.append(_openmetrics_head(family, first) if is_openmetrics else _head(first))
        for block, places in places_of(of_family):
            made = texts.setdefault((id(block.labels), *block.extra.items()), {})
            name, labels, extra, values = block.name, block.labels, block.extra, block.values
            for i in places:
                label_text = made.get(i)
                if label_text is None:
                    key = (*labels[i].items(), *extra.items())
                    label_text = _texts.get(key)
                    if label_text is None:
                        label_text = _texts[key] = labels_text(dict(key))
                    made[i] = label_text
                value = values[i]
                if not -_PLAIN < value < _PLAIN:
                    out.append(f"{name}{label_text} {_large(value)}\n")
                elif type(value) is int:
                    out.append(f"{name}{label_text} {value}.0\n")
                else:
                    out.append(f"{name}{label_text} {float(value)!r}\n")
    return "".join(out)


def places_of(blocks: Sequence[SeriesBlock]) -> Iterator[tuple[SeriesBlock, Sequence[int]]]:
    """Blocks of one family, and which of their places follow each other on the page: a histogram's
    series of one segment stand together, the buckets first."""
    if blocks[0].kind != "histogram":
        yield from ((block, block.present) for block in blocks)
        return
    for _, group in groupby(blocks, lambda block: id(block.labels)):
        of_segment = list(group)
        for i in of_segment[0].present:
            yield from ((block, (i,)) for block in of_segment)


def _large(value: float) -> str:
    """A number beyond the plain ones, as Go writes it.

    >>> _large(1234567), _large(2e6), _large(-1234567)
    ('1.234567e+06', '2e+06', '-1234567.0')
    """
    if type(value) is int and 0 < value < 10**10:
        digits = str(value)
        mantissa = f"{digits[0]}.{digits[1:]}".rstrip("0.")
        return f"{mantissa}e+0{len(digits) - 1}"
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


def _head(block: SeriesBlock) -> str:
    doc = block.doc.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {block.family} {doc}\n# TYPE {block.family} {block.kind}\n"


def _openmetrics_head(family: str, block: SeriesBlock) -> str:
    """There a counter's family is called without ``_total``."""
    bare = family.removesuffix("_total") if block.kind == "counter" else family
    return f"# HELP {bare} {escaped(block.doc)}\n# TYPE {bare} {block.kind}\n"


def labels_text(labels: dict[str, str]) -> str:
    """``{a="x",b="y"}`` in order of the names; nothing where there are no labels.

    >>> labels_text({"window": "5m", "variant": "A"})
    '{variant="A",window="5m"}'
    """
    pairs = ",".join(f'{name}="{escaped(value)}"' for name, value in sorted(labels.items()))
    return f"{{{pairs}}}" if pairs else ""


def escaped(value: str) -> str:
    """A text as OpenMetrics has it between quotes."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
