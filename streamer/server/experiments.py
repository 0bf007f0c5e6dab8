"""``/api/experiments``: readouts of experiments, whole and by another dimension."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from streamer.ingest.keying import require_users
from streamer.query.experiments import StoredExperiment, stored_experiments
from streamer.query.exploration import (
    explored,
    not_explored,
    values_joined,
)
from streamer.query.readout_document import document, exploration_document, history
from streamer.server.api import error_answer, json_answer, without_parameters
from streamer.server.exporter import Exporter
from streamer.settings import limits
from streamer.settings.experiments import Experiment
from streamer.state.user_days import Days, sums_of_days


class _Explored(NamedTuple):
    """An answer, the reader's count of updates when it was begun, and when (s) it was made."""

    document: msgspec.Raw
    updates: int
    made_at: float


class ExperimentsApi:
    """Documents of experiments, kept until the next commit; explorations, which read the rows of
    all users, for ``limits.EXPLORATION_SECONDS`` at least."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter, self.settings = exporter, exporter.settings
        self._lock, self._exploring = asyncio.Lock(), asyncio.Lock()
        self._made: dict[str, tuple[int, Any]] = {}
        """Experiment → its document, and the updates of the reader when it was made."""
        self._explored: dict[tuple[str, str], _Explored] = {}
        """By experiment and dimension."""

    def add_routes(self, app: web.Application) -> None:
        """Answer below ``/api/experiments``."""
        app.router.add_get("/api/experiments", self.experiments)
        app.router.add_get("/api/experiments/{name}", self.experiment)

    async def experiments(self, request: web.Request) -> web.Response:
        """The experiments of the settings."""
        if refused := without_parameters(request):
            return refused
        listed = [
            {
                "name": e.name,
                "dimension": e.dimension or None,
                "arm": self.settings.arm_paths_of(e) or None,
                "control": e.control,
                "arms": e.arms,
                "start": e.start,
                "end": e.end,
                "explore": e.explore,
            }
            for e in self.settings.experiments
        ]
        return json_answer({"experiments": listed})

    async def experiment(self, request: web.Request) -> web.Response:
        """The readout of one experiment, and how its lifts stood at the end of each day; ``by`` a
        dimension: a readout for each of its values."""
        name = request.match_info["name"]
        experiments = {e.name: e for e in self.settings.experiments}
        if name not in experiments:
            refusal = (
                f"no experiment {name!r}; the settings have {', '.join(experiments) or 'none'}"
            )
            return error_answer(404, refusal)
        if unknown := set(request.query) - {"by"}:
            refusal = f"unknown parameter {min(unknown)!r}: {request.path} takes only by"
            return error_answer(400, refusal)
        if "by" in request.query:
            return await self._by(experiments[name], request.query.getall("by"))
        async with self._lock:
            stored, updates = await self._stored(name)
            of, made = self._made.get(name, (-1, None))
            if of != updates:
                made = await asyncio.to_thread(_document, stored)
                self._made[name] = updates, made
            return json_answer(made)

    async def _stored(self, name: str) -> tuple[StoredExperiment, int]:
        """What is known of an experiment now, and the updates of the reader."""
        await self.exporter.refresh()
        reader, measures = self.exporter.reader, self.exporter.catalogue.experiment_measures
        require_users(self.settings, reader.keyed)
        return stored_experiments(self.settings, measures, reader.views)[name], reader.updates

    async def _by(self, experiment: Experiment, asked: list[str]) -> web.Response:
        """The exploration by the dimension that is asked for, or why there is none."""
        if len(asked) > 1:
            return error_answer(400, f"by is given {len(asked)} times: give it once")
        by = asked[0]
        if wrong := not_explored(experiment, by, self.settings.dimension_names):
            return error_answer(400, f"by = {by[: limits.MAX_FOUND_CHARS]!r}: {wrong}")
        stored, updates = await self._stored(experiment.name)
        if stored.starts_later:
            return error_answer(400, stored.starts_later)
        kept = self._explored.get((experiment.name, by))
        if kept is None or not _is_fresh(kept, updates):
            if self._exploring.locked():
                return _busy()
            async with self._exploring:
                made = await self._explore(stored, by)
            kept = _Explored(made, updates, time.monotonic())
            self._explored[experiment.name, by] = kept
        return json_answer(kept.document)

    async def _explore(self, stored: StoredExperiment, by: str) -> msgspec.Raw:
        exporter, within = self.exporter, stored.so_far
        days = Days(stored.trial, within, by)
        sums = await sums_of_days(exporter.store, self.settings, exporter.catalogue, days)

        def read() -> msgspec.Raw:
            parts = values_joined(sums, self.settings, exporter.reader.views, by)
            made = exploration_document(stored, explored(stored, by, parts, within))
            return msgspec.Raw(msgspec.json.encode(made))

        return await asyncio.to_thread(read)


def _busy() -> web.Response:
    """Refuses rather than let it wait: others need its place among ``limits.REQUESTS_AT_ONCE``."""
    answer = error_answer(
        503, "an experiment is being explored already: try again in a few seconds"
    )
    answer.headers["Retry-After"] = "2"
    return answer


def _is_fresh(kept: _Explored, updates: int) -> bool:
    """Whether nothing was committed since, or it is too early to read all users again."""
    is_early = time.monotonic() - kept.made_at < limits.EXPLORATION_SECONDS
    return kept.updates == updates or is_early


def _document(stored: StoredExperiment) -> dict[str, Any]:
    return document(stored, stored.read()) | {"history": history(stored)}
