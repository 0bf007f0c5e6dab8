"""An experiment as a notebook shows it: the document of its readout, and the scorecard."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from streamer.errors import StreamerError
from streamer.formatting import minute, printable
from streamer.library.table import Cell, Table
from streamer.query.experiments import JudgedExperiment, StoredExperiment
from streamer.query.exploration import Exploration
from streamer.query.exported_sums import ExportedSums, exported_sums
from streamer.query.notes import Severity
from streamer.query.readout import ComparisonReading, MetricReading, readout_of
from streamer.query.scorecard import scorecard

_FRAME = "width:100%;height:48rem;border:0"


class ExperimentReport:
    """The readout of an experiment at one time. A notebook shows its scorecard; ``print`` shows
    what to do and every comparison."""

    def __init__(
        self,
        stored: StoredExperiment,
        found: JudgedExperiment,
        explorations: Sequence[Exploration] = (),
    ) -> None:
        self._stored, self._found = stored, found
        self._readout = readout_of(stored, found)
        self._explorations = explorations
        self.document: dict[str, Any] = msgspec.to_builtins(self._readout)
        """All of it, as ``streamer readout --json`` prints it."""
        self.explorations: list[dict[str, Any]] = msgspec.to_builtins(self._explorations)
        """The comparisons by segment, a document for each dimension that was asked for."""

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self._readout.name

    @property
    def advice(self) -> str | None:
        """What to do, in words, such as "ship B" or "keep running"; None before the first day."""
        advice = self._readout.recommendation
        return None if advice is None else advice.sentence

    @property
    def reason(self) -> str | None:
        """Why, in sentences; None before the first day."""
        advice = self._readout.recommendation
        return None if advice is None else advice.reason

    @property
    def users(self) -> dict[str, int]:
        """Users by arm."""
        return dict(self._readout.users)

    @property
    def metrics(self) -> Table:
        """Every comparison, a row each: ``metric``, ``role``, ``arm``, the values in ``control``
        and ``treatment``, ``change`` with ``low`` and ``high`` (the range that decides), ``scale``
        (relative: a share of the control's value; else absolute) and ``verdict``. Where it is
        known, there is ``unadjusted``, the change from ``control`` to ``treatment`` where
        ``change`` is adjusted; ``adjustment``, the share of the variance that the days before
        explain; and ``detectable``, the least change that is found reliably."""
        rows = [
            _row(metric, comparison, self._readout.control)
            for metric in self._readout.metrics
            for comparison in metric.comparisons
        ]
        return Table.of_rows(rows, list(dict.fromkeys(name for row in rows for name in row)))

    @property
    def split(self) -> Table:
        """Users by arm against their planned shares: ``arm``, ``users``, ``share``, ``planned``;
        and, the same on each row, ``p_value`` (at any number of looks) and ``is_broken``."""
        found = self._readout.split
        total = sum(found.users.values())
        rows = [
            {
                "arm": arm,
                "users": users,
                "share": users / total if total else None,
                "planned": found.expected[arm],
                "p_value": found.p_value,
                "is_broken": found.is_wrong,
            }
            for arm, users in found.users.items()
        ]
        return Table.of_rows(rows, ["arm", "users", "share", "planned", "p_value", "is_broken"])

    @property
    def notes(self) -> list[str]:
        """What is said of all of it and of its metrics, a sentence or two each."""
        return [note.line for note in self._readout.notes]

    @property
    def warnings(self) -> list[str]:
        """Those of the notes that must be looked into before anything is believed."""
        notes = self._readout.notes
        return [note.text for note in notes if note.severity is Severity.WARNING]

    def sums(self) -> Table:
        """What the readout is computed from, a row for each day, metric and arm: ``users``,
        ``nonzero``, and the sums ``x``, ``xx``, ``y``, ``yy``, ``xy`` of their numerators x and
        denominators y from the start to the end of the ``day``, in units of the metric; and of the
        days before the start, where these count, ``u``, ``v`` and their products. ``to_arrow()``
        makes a table that Parquet files can hold."""
        rows = list(map(msgspec.structs.asdict, exported_sums(self._stored)))
        return Table.of_rows(rows, ExportedSums.__struct_fields__)

    def save(self, path: str | Path) -> None:
        """Write the scorecard as one HTML file, which it replaces; StreamerError where that cannot
        be written."""
        try:
            Path(path).write_text(self._page, encoding="utf-8")
        except OSError as error:
            raise StreamerError(f"cannot write the report: {error.strerror}; at {path}") from error

    def __repr__(self) -> str:
        found, advice = self._readout, self._readout.recommendation
        lines = [f"{found.name}: {found.who}, {found.when}"]
        if found.last is not None:
            lines += [f"Users: {found.users_words}", *(note.line for note in found.notes)]
        if advice is not None:
            lines.append(f"Recommendation: {advice.sentence}. {advice.reason}")
        return "\n".join([*map(printable, lines), repr(self.metrics)])

    def _repr_html_(self) -> str:
        # The scorecard is a page of its own: its styles must not change those of the notebook.
        title, page = escape(printable(self.name)), escape(self._page)
        return f'<iframe title="{title}" style="{_FRAME}" srcdoc="{page}"></iframe>'

    @cached_property
    def _page(self) -> str:
        """The scorecard as a page that needs nothing else."""
        from streamer.server.web.scorecards import report

        found = readout_of(self._stored, self._found, with_history=True)
        return report(scorecard(found, self._explorations), f"{minute(_now_ms())} UTC")


def _row(metric: MetricReading, comparison: ComparisonReading, control: str) -> dict[str, Cell]:
    """A comparison as a row."""
    lift = comparison.lift
    row: dict[str, Cell] = {
        "metric": metric.name,
        "role": metric.role,
        "arm": comparison.arm,
        "control": metric.value(control).value,
        "treatment": metric.value(comparison.arm).value,
        "change": lift.value,
        "low": lift.low,
        "high": lift.high,
        "scale": str(lift.scale),
        "verdict": str(comparison.verdict.outcome),
    }
    if lift.unadjusted is not None:
        row["unadjusted"] = lift.unadjusted.value
    return row | {s.name: s.value for s in comparison.statistics if s.value is not None}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
