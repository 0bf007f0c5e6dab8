"""Readings as the Prometheus text format.

``render`` writes what ``prometheus_client.generate_latest`` writes for ``families`` (a test holds
it to that, byte by byte), several times as fast: label texts are made once for each label set, not
once for each sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from streamer import limits
from streamer.readout.readout import Block, Readout

_texts: dict[tuple[tuple[str, str], ...], str] = {}
"""Texts of label sets, from scrape to scrape; emptied when there are too many."""
_PLAIN = 1e6
"""Numbers nearer to 0 are written as Python does; Go's exponents begin here."""


def render(result: Readout) -> str:
    """The text format of all readings, which stand together by name."""
    if len(_texts) > limits.MAX_LABEL_TEXTS:
        _texts.clear()
    texts: dict[tuple[object, ...], dict[int, str]] = {}
    out: list[str] = []
    for name, blocks in groupby((b for b in result.blocks if b.present), attrgetter("name")):
        for n, block in enumerate(blocks):
            if n == 0:
                out.append(_head(block))
            made = texts.setdefault((id(block.labels), *block.extra.items()), {})
            labels, extra, values = block.labels, block.extra, block.values
            for i in block.present:
                text = made.get(i)
                if text is None:
                    key = (*labels[i].items(), *extra.items())
                    text = _texts.get(key)
                    if text is None:
                        text = _texts[key] = _label_text(dict(key))
                    made[i] = text
                value = values[i]
                if not -_PLAIN < value < _PLAIN:
                    out.append(f"{name}{text} {_large(value)}\n")
                elif type(value) is int:
                    out.append(f"{name}{text} {value}.0\n")
                else:
                    out.append(f"{name}{text} {float(value)!r}\n")
    return "".join(out)


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


def families(result: Readout) -> Iterator[Metric]:
    """The same readings for a custom collector of ``prometheus_client``."""
    for name, group in groupby(result.readings, attrgetter("name")):
        readings = list(group)
        first = readings[0]
        kind = CounterMetricFamily if first.kind == "counter" else GaugeMetricFamily
        family = kind(name, first.doc, labels=tuple(first.labels))
        for reading in readings:
            family.add_sample(name, reading.labels, reading.value)
        yield family


def _head(reading: Block) -> str:
    doc = reading.doc.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {reading.name} {doc}\n# TYPE {reading.name} {reading.kind}\n"


def _label_text(labels: dict[str, str]) -> str:
    """``{a="x",b="y"}`` in order of the names; nothing where there are no labels.

    >>> _label_text({"window": "5m", "variant": "A"})
    '{variant="A",window="5m"}'
    """
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()))
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
