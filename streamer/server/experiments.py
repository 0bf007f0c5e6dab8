"""``/api/experiments``: readouts of experiments, whole and by another dimension; and their pages
below ``/experiments/``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from aiohttp import web

from streamer.errors import UsageError
from streamer.formatting import minute
from streamer.ingest.keying import require_users
from streamer.query.experiment_list import (
    Readouts,
    list_of,
    listed,
    only,
    read_one,
    unknown_experiment,
)
from streamer.query.experiment_pairs import interaction_list, pair_list
from streamer.query.experiments import (
    StoredExperiment,
    require_user_unit,
    stored_experiments,
)
from streamer.query.exploration import (
    Exploration,
    explored,
    not_explored,
    values_joined,
)
from streamer.query.readout import Readout, readout_of
from streamer.query.scorecard import Scorecard, scorecard
from streamer.server.api import error_answer, json_answer, without_parameters
from streamer.server.exporter import Exporter
from streamer.server.failures import failure
from streamer.server.web import HEADERS, scorecards
from streamer.settings import limits
from streamer.state.user_days import DAY, Across, Days, all_pairs, sums_of_days


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
        self._made: dict[str, tuple[int, Readout]] = {}
        """Experiment → the updates of the reader when its readout was made, and that."""
        self._explored: dict[tuple[str, str], _Explored] = {}
        """By experiment and dimension, or what else is made of the rows of all users."""

    def add_routes(self, app: web.Application) -> None:
        """Answer below ``/api/experiments``."""
        app.router.add_get("/api/experiments", self.experiments)
        app.router.add_get("/api/experiments/{name}", self.experiment)
        app.router.add_get("/api/pairs", self.pairs)
        app.router.add_get("/experiments/{name}", self.page)
        app.router.add_get("/experiments/{name}/scorecard.csv", self.table)
        app.router.add_get("/experiments/{name}/report.html", self.report)

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
        return json_answer(list_of(self.settings, chosen))

    async def experiment(self, request: web.Request) -> web.Response:
        """The readout of one experiment, and how its lifts stood at the end of each day; ``by`` a
        dimension: a readout for each of its values."""
        name = request.match_info["name"]
        stored, updates = await self._stored()
        if name not in stored:
            return error_answer(404, unknown_experiment(name, stored))
        if unknown := set(request.query) - {"by", "across"}:
            refusal = f"unknown parameter {min(unknown)!r}: {request.path} takes 'by' or 'across'"
            return error_answer(400, refusal)
        if "across" in request.query:
            return await self._across(stored, (name, request.query["across"]), updates)
        if "by" in request.query:
            return await self._explored_by(stored[name], request.query.getall("by"), updates)
        return json_answer(await self._whole(name))

    async def page(self, request: web.Request) -> web.Response:
        """The scorecard of an experiment. ``by``: with a dimension that it is explored by; ``arm``:
        the treatment to look at."""
        name = request.match_info["name"]
        stored, updates = await self._stored()
        if wrong := _not_asked(stored, name, request.query):
            return failure(request, 404 if name not in stored else 400, wrong)
        experiment, by, busy = stored[name].experiment, request.query.get("by"), ""
        explorations: list[Exploration] = []
        if by is not None:
            if wrong := not_explored(experiment, by, self.settings.dimension_names):
                return failure(request, 400, f"by = {by[: limits.MAX_FOUND_CHARS]!r}: {wrong}")
            is_begun = not stored[name].starts_later
            found = await self._by(stored[name], by, updates) if is_begun else None
            busy = "" if found is not None else _BUSY
            if found is not None:
                explorations = [msgspec.json.decode(found, type=Exploration)]
        card = scorecard(await self._whole(name), explorations, request.query.get("arm"))
        more = [] if not_explored(experiment, DAY, self.settings.dimension_names) else [DAY]
        text = scorecards.page(card, [*experiment.explore, *more], busy)
        return web.Response(text=text, content_type="text/html", headers=HEADERS)

    async def table(self, request: web.Request) -> web.Response:
        """The comparisons of an experiment as comma-separated values."""
        return await self._file(request, "csv", "text/csv", scorecards.table)

    async def report(self, request: web.Request) -> web.Response:
        """An experiment as one file, to be mailed or kept."""
        written = minute(round(1000 * time.time()))
        return await self._file(
            request, "html", "text/html", lambda card: scorecards.report(card, f"{written} UTC")
        )

    async def _file(
        self, request: web.Request, suffix: str, kind: str, made: Callable[[Scorecard], str]
    ) -> web.Response:
        name = request.match_info["name"]
        stored, _ = await self._stored()
        if wrong := _not_asked(stored, name, request.query):
            return failure(request, 404 if name not in stored else 400, wrong)
        card = scorecard(await self._whole(name), (), request.query.get("arm"))
        file = f"attachment; filename*=UTF-8''{quote(name, safe='')}.{suffix}"
        headers = {"Content-Disposition": file}
        return web.Response(text=made(card), content_type=kind, headers=headers)

    async def _whole(self, name: str) -> Readout:
        """The readout of an experiment, as of the last commit."""
        async with self._lock:
            stored, updates = await self._stored()
            if self._made.get(name, (-1,))[0] != updates:
                made = await asyncio.to_thread(self._readout, stored, name)
                self._made[name] = updates, made
            return self._made[name][1]

    def _readout(self, stored: Mapping[str, StoredExperiment], name: str) -> Readout:
        found = read_one(self.settings, stored, name, self._readouts)
        return readout_of(stored[name], found, with_history=True)

    async def _stored(self) -> tuple[dict[str, StoredExperiment], int]:
        """What is known of all experiments now, and the updates of the reader."""
        await self.exporter.refresh()
        reader, measures = self.exporter.reader, self.exporter.catalogue.experiment_measures
        require_users(self.settings, reader.keyed)
        units = self.exporter.units
        return stored_experiments(
            self.settings, measures, reader.views, units, reader.acted
        ), reader.updates

    async def _explored_by(
        self, stored: StoredExperiment, asked: list[str], updates: int
    ) -> web.Response:
        """The exploration by the dimension that is asked for, or why there is none."""
        if len(asked) > 1:
            return error_answer(400, f"by is given {len(asked)} times: give it once")
        by = asked[0]
        if wrong := not_explored(stored.experiment, by, self.settings.dimension_names):
            return error_answer(400, f"by = {by[: limits.MAX_FOUND_CHARS]!r}: {wrong}")
        if stored.starts_later:
            return error_answer(400, stored.starts_later)
        return _answer(await self._by(stored, by, updates))

    async def _by(self, stored: StoredExperiment, by: str, updates: int) -> msgspec.Raw | None:
        key = (stored.experiment.name, by)
        return await self._of_rows(key, updates, lambda: self._explore(stored, by))

    async def pairs(self, request: web.Request) -> web.Response:
        """Pairs of experiments that share users: splits that depend on each other, layers and
        holdouts."""
        if refused := without_parameters(request):
            return refused
        stored, updates = await self._stored()

        async def make() -> msgspec.Raw:
            exporter = self.exporter
            counts = await all_pairs(exporter.store, self.settings, exporter.catalogue)
            made = await asyncio.to_thread(pair_list, stored, counts)
            return msgspec.Raw(msgspec.json.encode(made))

        return _answer(await self._of_rows(("", "pairs"), updates, make))

    async def _across(
        self, stored: Mapping[str, StoredExperiment], both: tuple[str, str], updates: int
    ) -> web.Response:
        """Whether the lifts of an experiment depend on the arm in another one."""
        name, across = both
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
            made = await asyncio.to_thread(interaction_list, one, two, sums)
            return msgspec.Raw(msgspec.json.encode(made))

        return _answer(await self._of_rows((name, f"across {across}"), updates, make))

    async def _of_rows(
        self, key: tuple[str, str], updates: int, make: Callable[[], Awaitable[msgspec.Raw]]
    ) -> msgspec.Raw | None:
        """What is made of the rows of all users: one at a time, and kept for a while. None while
        another one is made: others need the place of who waits (``limits.REQUESTS_AT_ONCE``)."""
        kept = self._explored.get(key)
        if kept is None or not _is_fresh(kept, updates):
            if self._exploring.locked():
                return None
            async with self._exploring:
                made = await make()
            kept = self._explored[key] = _Explored(made, updates, time.monotonic())
        return kept.document

    async def _explore(self, stored: StoredExperiment, by: str) -> msgspec.Raw:
        exporter, within = self.exporter, stored.so_far
        days = Days(stored.trial, within, by)
        sums = await sums_of_days(exporter.store, self.settings, exporter.catalogue, days)

        def read() -> msgspec.Raw:
            parts = values_joined(sums, self.settings, exporter.reader.views, by)
            made = explored(stored, by, parts, within)
            return msgspec.Raw(msgspec.json.encode(made))

        return await asyncio.to_thread(read)


_BUSY = "an experiment is being explored already: try again in a few seconds"


def _answer(made: msgspec.Raw | None) -> web.Response:
    if made is not None:
        return json_answer(made)
    answer = error_answer(503, _BUSY)
    answer.headers["Retry-After"] = "2"
    return answer


def _not_asked(stored: Mapping[str, StoredExperiment], name: str, query: Mapping[str, str]) -> str:
    """What is wrong with a request for a page of an experiment, or nothing."""
    if name not in stored:
        return unknown_experiment(name, stored)
    if unknown := set(query) - {"by", "arm"}:
        return f"unknown parameter {min(unknown)!r}: the page takes 'by' or 'arm'"
    experiment = stored[name].experiment
    treatments = [arm for arm in experiment.arms if arm != experiment.control]
    arm = query.get("arm")
    if arm is not None and arm not in treatments:
        return f"arm = {arm[: limits.MAX_FOUND_CHARS]!r}: one of {', '.join(treatments)}"
    return ""


def _is_fresh(kept: _Explored, updates: int) -> bool:
    """Whether nothing was committed since, or it is too early to read all users again."""
    is_early = time.monotonic() - kept.made_at < limits.EXPLORATION_SECONDS
    return kept.updates == updates or is_early
