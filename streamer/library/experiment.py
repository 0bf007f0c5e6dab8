"""An experiment as a notebook shows it: the document of its readout, and the scorecard."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from streamer.errors import StreamerError
from streamer.formatting import printable
from streamer.library.table import Table
from streamer.query.experiments import ExperimentReadout, StoredExperiment, minute
from streamer.query.exploration import Exploration
from streamer.query.readout_document import (
    document,
    exploration_document,
    heading_of,
    history,
)
from streamer.query.scorecard import scorecard

_COLUMNS = (
    *("metric", "role", "arm", "control", "treatment", "change", "low", "high", "scale"),
    *("verdict", "unadjusted"),
)
_FRAME = "width:100%;height:48rem;border:0"


class ExperimentReport:
    """The readout of an experiment at one time. A notebook shows its scorecard; ``print`` shows
    what to do and every comparison."""

    def __init__(
        self,
        stored: StoredExperiment,
        found: ExperimentReadout,
        explorations: Sequence[Exploration] = (),
    ) -> None:
        self._stored = stored
        self.document: dict[str, Any] = document(stored, found)
        """All of it, as ``streamer readout --json`` prints it."""
        self.explorations: list[dict[str, Any]] = [
            exploration_document(stored, each) for each in explorations
        ]
        """The comparisons by segment, a document for each dimension that was asked for."""

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.document["name"])

    @property
    def advice(self) -> str | None:
        """What to do, in words, such as "ship B" or "keep running"; None before the first day."""
        found = self.document["recommendation"]
        return None if found is None else str(found["words"])

    @property
    def reason(self) -> str | None:
        """Why, in sentences; None before the first day."""
        found = self.document["recommendation"]
        return None if found is None else str(found["reason"])

    @property
    def users(self) -> dict[str, int]:
        """Users by arm."""
        return dict(self.document["users"])

    @property
    def metrics(self) -> Table:
        """Every comparison, a row each: ``metric``, ``role``, ``arm``, the values in ``control``
        and ``treatment``, ``change`` with ``low`` and ``high`` (the interval that decides),
        ``scale`` (relative: a share of the control's value; else absolute) and ``verdict``. Where
        a ``change`` is adjusted, a column ``unadjusted`` has that from ``control`` to
        ``treatment``."""
        rows = [
            _row(metric, comparison, self.document["control"])
            for metric in self.document["metrics"]
            for comparison in metric["comparisons"]
        ]
        is_plain = all(row["unadjusted"] is None for row in rows)
        return Table.of_rows(rows, _COLUMNS[:-1] if is_plain else _COLUMNS)

    @property
    def split(self) -> Table:
        """Users by arm against their planned shares: ``arm``, ``users``, ``share``, ``planned``;
        and, the same on each row, ``p_value`` (at any number of looks) and ``is_broken``."""
        found = self.document["metrics"][0]["split_test"]
        total = sum(found["users"].values())
        rows = [
            {
                "arm": arm,
                "users": users,
                "share": users / total if total else None,
                "planned": found["expected"][arm],
                "p_value": found["p_value"],
                "is_broken": found["is_wrong"],
            }
            for arm, users in found["users"].items()
        ]
        return Table.of_rows(rows, ["arm", "users", "share", "planned", "p_value", "is_broken"])

    @property
    def warnings(self) -> list[str]:
        """What must be looked into before anything is believed."""
        return list(self.document["warnings"])

    def save(self, path: str | Path) -> None:
        """Write the scorecard as one HTML file, which it replaces; StreamerError where that cannot
        be written."""
        try:
            Path(path).write_text(self._page, encoding="utf-8")
        except OSError as error:
            raise StreamerError(f"cannot write the report: {error.strerror}; at {path}") from error

    def __repr__(self) -> str:
        return "\n".join([*map(printable, heading_of(self.document)), repr(self.metrics)])

    def _repr_html_(self) -> str:
        # The scorecard is a page of its own: its styles must not change those of the notebook.
        title, page = escape(printable(self.name)), escape(self._page)
        return f'<iframe title="{title}" style="{_FRAME}" srcdoc="{page}"></iframe>'

    @cached_property
    def _page(self) -> str:
        """The scorecard as a page that needs nothing else."""
        from streamer.server.web.scorecards import report

        of = self.document | {"history": history(self._stored)}
        return report(scorecard(of, self.explorations), f"{minute(_now_ms())} UTC")


def _row(metric: Mapping[str, Any], comparison: Mapping[str, Any], control: str) -> dict[str, Any]:
    """A comparison as a row."""
    values = {arm["name"]: arm["value"] for arm in metric["arms"]}
    interval: Mapping[str, Any] = comparison["interval"] or {}
    return {
        "metric": metric["name"],
        "role": metric["role"],
        "arm": comparison["arm"],
        "control": values[control],
        "treatment": values[comparison["arm"]],
        "change": comparison["lift"],
        "low": interval.get("low"),
        "high": interval.get("high"),
        "scale": comparison["verdict"]["scale"],
        "verdict": comparison["verdict"]["outcome"],
        "unadjusted": comparison["unadjusted"],
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
