"""Sums over units that are not users: the rows of all partitions are added up first, as each has
only those of its events."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from streamer._core import UNIT_TABLES
from streamer._core import UnitSums as CoreUnitSums
from streamer.encoding.limbs import Columns
from streamer.ingest.spec import units
from streamer.metrics.compared_metrics import ExperimentMeasures
from streamer.query.sparing import Sparing
from streamer.settings.model import Settings
from streamer.state.experiment_sums import ExperimentSums
from streamer.state.snapshot import View
from streamer.state.unit_rows import UnitRows
from streamer.stats.experiments.trials import CompiledExperiment, Exposure, Unit, wanted_days

_Blob = dict[str, np.ndarray[Any, Any]]
_OTHER = -1
"""The code of what is not wanted any more."""


@dataclass(frozen=True)
class UnitReading:
    """What is known of the experiments of one unit, over all partitions. ``sample_bits``: one in
    2**sample_bits of the units counts; ``exposed_since_ms``: when an experiment's first was."""

    sums: ExperimentSums
    sample_bits: int
    exposed_since_ms: Mapping[Exposure, int]

    def parts(self, trial: CompiledExperiment) -> Sequence[Columns]:
        """The sums of an experiment."""
        found = self.sums.of(trial)
        return [] if found is None else [found]


class UnitReadings:
    """Those of all units. They are made again where rows changed, sparingly."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """``clock``: seconds; without one they are made whenever rows changed."""
        self._sparing = Sparing(clock)
        self._of: list[weakref.ref[UnitRows]] = []
        self._found: Mapping[Unit, UnitReading] = {}

    def of(
        self, settings: Settings, measures: ExperimentMeasures, views: Sequence[View]
    ) -> Mapping[Unit, UnitReading]:
        """Unit → what is known of its experiments."""
        rows = [view.units for view in views if view.units is not None]
        if not measures.by_unit or not rows:
            return {}
        same = len(rows) == len(self._of) and all(
            known() is now for known, now in zip(self._of, rows, strict=True)
        )
        if same or (self._found and not self._sparing.may_begin):
            return self._found
        with self._sparing.timed():
            self._found = unit_readings(settings, measures, rows)
        self._of = [weakref.ref(each) for each in rows]
        return self._found


def unit_readings(
    settings: Settings, measures: ExperimentMeasures, rows: Sequence[UnitRows]
) -> dict[Unit, UnitReading]:
    """Adds up the rows of all partitions, and makes the sums of all experiments of them."""
    every = list(measures.by_unit)
    exposures = [list(wanted_days(trials)) for trials in measures.by_unit.values()]
    flat = [exposure for of_unit in exposures for exposure in of_unit]
    both: list[Unit | Exposure] = [*every, *flat]
    codes = {what: i for i, what in enumerate(both)}
    bits = [_bits(unit, rows) for unit in every]
    spec = {
        "hash_key": rows[0].key,
        "dimensions": len(settings.kept_fields),
        "units": units(settings, measures, measures.sums, codes.__getitem__),
        "bits": bits,
    }
    core = CoreUnitSums(msgspec.json.encode(spec))
    for each in rows:
        core.add(*(_as_ours(each, table, codes, measures.sums) for table in UNIT_TABLES))
    found = {}
    for (unit, trials), of_unit, its, (keys, days, first_ms) in zip(
        measures.by_unit.items(), exposures, bits, core.finish(), strict=True
    ):
        first_keys = {t.shape: int(key) for t, key in zip(trials, keys, strict=True)}
        since = zip(of_unit, first_ms, strict=True)
        found[unit] = UnitReading(
            ExperimentSums(first_keys, dict(days)),
            sum(its) if unit.slots else max(its),
            {exposure: ms for exposure, ms in since if ms is not None},
        )
    return found


def _bits(unit: Unit, rows: Sequence[UnitRows]) -> tuple[int, int]:
    """The samples of all partitions: of values, and of rows."""
    both = [each.bits.get(unit.name, (0, 0)) for each in rows]
    return max(values for values, _ in both), max(of_rows for _, of_rows in both)


def _as_ours(
    rows: UnitRows, table: str, codes: Mapping[Unit | Exposure, int], sums: Sequence[str]
) -> list[_Blob]:
    """A table with the codes and columns that the sums have: partitions began at other times."""
    ours = {
        what.code(rows.scopes[what.name][3]): code
        for what, code in codes.items()
        if what.name in rows.scopes
    }
    names = {f"{name} since {rows.since_ms.get(name, 0)}": name for name in sums}
    found = []
    for columns in rows.tables[table]:
        blob: _Blob = {}
        for name, column in columns.items():
            if name in ("unit_code", "code"):
                different, at = np.unique(column, return_inverse=True)
                mapped = [ours.get(code, _OTHER) for code in different.tolist()]
                blob[name] = np.array(mapped, np.int64)[at] if len(column) else column
            elif " since " not in name:
                blob[name] = column
            elif name in names:
                blob[names[name]] = column
        found.append(blob)
    return found
