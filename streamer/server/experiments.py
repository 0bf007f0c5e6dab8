"""``/api/experiments``: readouts of experiments, whole and by another dimension."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from streamer.errors import UsageError
from streamer.ingest.keying import require_users
from streamer.query.experiment_list import (
    Readouts,
    list_document,
    listed,
    only,
    read_one,
    unknown_experiment,
)
from streamer.query.experiment_pairs import interaction_document, pairs_document
from streamer.query.experiments import StoredExperiment, require_user_unit, stored_experiments
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
from streamer.state.user_days import Across, Days, all_pairs, sums_of_days


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
        self._readouts = Readouts(time.monotonic)
        self._made: dict[str, tuple[int, Any]] = {}
        """Experiment → its document, and the updates of the reader when it was made."""
        self._explored: dict[tuple[str, str], _Explored] = {}
        """By experiment and dimension, or what else is made of the rows of all users."""

    def add_routes(self, app: web.Application) -> None:
        """Answer below ``/api/experiments``."""
        app.router.add_get("/api/experiments", self.experiments)
        app.router.add_get("/api/experiments/{name}", self.experiment)
        app.router.add_get("/api/pairs", self.pairs)

    async def experiments(self, request: web.Request) -> web.Response:
        """The list of all experiments by what they need; ``only``: what one must need."""
        if unknown := set(request.query) - {"only"}:
            refusal = f"unknown parameter {min(unknown)!r}: {request.path} takes 'only'"
            return error_answer(400, refusal)
        async with self._lock:
            stored, _ = await self._stored()
            made = await asyncio.to_thread(listed, self.settings, stored, self._readouts)
        try:
            chosen = only(made, request.query.get("only"))
        except UsageError as error:
            return error_answer(400, str(error))
        return json_answer(list_document(self.settings, chosen))

    async def experiment(self, request: web.Request) -> web.Response:
        """The readout of one experiment, and how its lifts stood at the end of each day; ``by`` a
        dimension: a readout for each of its values."""
        name = request.match_info["name"]
        stored, _ = await self._stored()
        if name not in stored:
            return error_answer(404, unknown_experiment(name, stored))
        if unknown := set(request.query) - {"by", "across"}:
            refusal = f"unknown parameter {min(unknown)!r}: {request.path} takes 'by' or 'across'"
            return error_answer(400, refusal)
        if "across" in request.query:
            return await self._across(stored, name, request.query["across"])
        if "by" in request.query:
            return await self._by(stored[name].experiment, request.query.getall("by"))
        async with self._lock:
            stored, updates = await self._stored()
            of, made = self._made.get(name, (-1, None))
            if of != updates:
                made = await asyncio.to_thread(self._document, stored, name)
                self._made[name] = updates, made
            return json_answer(made)

    def _document(self, stored: Mapping[str, StoredExperiment], name: str) -> dict[str, Any]:
        found = read_one(self.settings, stored, name, self._readouts)
        return document(stored[name], found) | {"history": history(stored[name])}

    async def _stored(self) -> tuple[dict[str, StoredExperiment], int]:
        """What is known of all experiments now, and the updates of the reader."""
        await self.exporter.refresh()
        reader, measures = self.exporter.reader, self.exporter.catalogue.experiment_measures
        require_users(self.settings, reader.keyed)
        units = self.exporter.units
        return stored_experiments(self.settings, measures, reader.views, units), reader.updates

    async def _by(self, experiment: Experiment, asked: list[str]) -> web.Response:
        """The exploration by the dimension that is asked for, or why there is none."""
        if len(asked) > 1:
            return error_answer(400, f"by is given {len(asked)} times: give it once")
        by = asked[0]
        if wrong := not_explored(experiment, by, self.settings.dimension_names):
            return error_answer(400, f"by = {by[: limits.MAX_FOUND_CHARS]!r}: {wrong}")
        every, updates = await self._stored()
        stored = every[experiment.name]
        if stored.starts_later:
            return error_answer(400, stored.starts_later)
        return await self._of_rows(
            (experiment.name, by), updates, lambda: self._explore(stored, by)
        )

    async def pairs(self, request: web.Request) -> web.Response:
        """Pairs of experiments that share users: splits that depend on each other, layers and
        holdouts."""
        if refused := without_parameters(request):
            return refused
        stored, updates = await self._stored()

        async def make() -> msgspec.Raw:
            exporter = self.exporter
            counts = await all_pairs(exporter.store, self.settings, exporter.catalogue)
            made = await asyncio.to_thread(pairs_document, stored, counts)
            return msgspec.Raw(msgspec.json.encode(made))

        return await self._of_rows(("", "pairs"), updates, make)

    async def _across(
        self, stored: Mapping[str, StoredExperiment], name: str, across: str
    ) -> web.Response:
        """Whether the lifts of an experiment depend on the arm in another one."""
        if across not in stored or across == name:
            refusal = unknown_experiment(across[: limits.MAX_FOUND_CHARS], stored)
            return error_answer(
                400, refusal if across != name else "across names itself: name another experiment"
            )
        one, two = stored[name], stored[across]
        try:
            for each in (one, two):
                require_user_unit(each, "across")
        except UsageError as error:
            return error_answer(400, str(error))

        async def make() -> msgspec.Raw:
            exporter, rows = self.exporter, Across(one.trial, two.trial, one.so_far)
            sums = await sums_of_days(exporter.store, self.settings, exporter.catalogue, rows)
            made = await asyncio.to_thread(interaction_document, one, two, sums)
            return msgspec.Raw(msgspec.json.encode(made))

        _, updates = await self._stored()
        return await self._of_rows((name, f"across {across}"), updates, make)

    async def _of_rows(
        self, key: tuple[str, str], updates: int, make: Callable[[], Awaitable[msgspec.Raw]]
    ) -> web.Response:
        """What is made of the rows of all users: one at a time, and kept for a while."""
        kept = self._explored.get(key)
        if kept is None or not _is_fresh(kept, updates):
            if self._exploring.locked():
                return _busy()
            async with self._exploring:
                made = await make()
            kept = self._explored[key] = _Explored(made, updates, time.monotonic())
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
