"""Events of files as an experiment over all users: an arm that everybody is in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from streamer.settings.durations import date_of
from streamer.settings.experiments import Experiment, ExperimentMetric
from streamer.settings.model import Dimension, Settings
from streamer.sources.files import FileSource
from streamer.sources.line_batch import LineBatch

NAME = "every_user"
"""Of the experiment, of its dimension, and of the field that is added to records."""
_ARM = "users"


def over_all_users(settings: Settings, metric: str) -> Settings:
    """The settings with one experiment, in whose control every user is from the first impression.

    Records of ``[[sources]]`` get the arm by a constant, others by ``lines_of``.
    """
    experiment = Experiment(
        name=NAME,
        dimension=NAME,
        control=_ARM,
        split={_ARM: 1, "nobody": 1},
        start=date_of(0),
        metrics=(ExperimentMetric(name=metric),),
    )
    changed = msgspec.structs.replace
    constant = {NAME: {"constant": _ARM}}
    return changed(
        settings,
        dimensions=(*settings.dimensions, Dimension(name=NAME)),
        metrics=changed(settings.metrics, rollups=((),), detailed=None),
        alerts=(),
        experiments=(experiment,),
        sources=tuple(changed(s, fields={**s.fields, **constant}) for s in settings.sources),
    )


def lines_of(source: FileSource, settings: Settings) -> Iterator[LineBatch]:
    """The lines of files in batches, each with the arm that everybody is in."""
    if settings.reads_sources:
        yield from source
        return
    added = f',"{NAME}":"{_ARM}"}}'.encode()
    for lines in source:
        yield replace(lines, raws=[_with(raw, added) for raw in lines.raws])


def _with(raw: bytes, added: bytes) -> bytes:
    """A JSON object with one more field; anything else as it is.

    >>> _with(b'{"a":1} ', b',"b":2}'), _with(b"[]", b',"b":2}')
    (b'{"a":1,"b":2}', b'[]')
    """
    text = raw.rstrip()
    return text[:-1] + added if text.endswith(b"}") and b":" in text else raw
