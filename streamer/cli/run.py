"""``streamer run``: one or more worker processes, each a Faust worker."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamer.cli.finding import WARN, series_finding
from streamer.cli.main import stopped
from streamer.cli.terminal import note, print_line
from streamer.errors import BrokerError, StoreError, StreamerError
from streamer.ingest.keying import require_keyed, topics_not_by_user, why_no_users
from streamer.ingest.sampling import look_at_keys
from streamer.kafka.admin import quiet
from streamer.kafka.topics import partitions_and_ids, readable, require_count
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.load import load
from streamer.settings.logs import ClusterIds
from streamer.settings.model import Settings
from streamer.state.changes import (
    SettingChange,
    dropped_experiments,
    require_accepted,
    require_continuable,
)
from streamer.state.contents import contents_of
from streamer.state.generations import fingerprint_of, require_newest
from streamer.state.log_identity import (
    LogIdentityError,
    group_of,
    new_names,
    renamed,
    require_distinct,
    require_group,
    resolve,
)
from streamer.state.manifest import require_key
from streamer.state.reader import manifests_of
from streamer.state.redis.store import RedisStore
from streamer.state.worker_report import SUPERVISED, SUPERVISOR

_FIRST_LOOK_SECONDS = 5.0
_RESTART_SECONDS = 1.0
_STOP_SECONDS = 30.0


def main(args: argparse.Namespace) -> int:
    """Run workers until stopped, and restart those that end; returns the exit code."""
    settings, fingerprint = settings_to_count_by(args.config, is_debug="debug" in args)
    accepted = frozenset(args.accept_drop)
    start = preflight(settings, fingerprint, may_take_over=args.take_over, accepted=accepted)
    for change in asyncio.run(start).changes:
        note(f"the state is continued: {change}")
    asyncio.run(preflight_keys(settings))
    say_series(settings)
    return asyncio.run(_supervise(settings, args.config, max(1, args.workers), accepted))


def settings_to_count_by(path: str | None, *, is_debug: bool) -> tuple[Settings, str]:
    """Those of a file, with topics in place of patterns, and their fingerprint. What fits a pattern
    and is not read is printed on stderr."""
    written = load(path, os.environ)
    if not is_debug:
        quiet()
    settings, left_out = asyncio.run(resolve(written))
    for why in left_out.values():
        note(why)
    return settings, fingerprint_of(written)


def say_series(settings: Settings) -> None:
    """Print how many series to expect, on stderr where they are too many."""
    finding = series_finding(settings, [])
    if finding.level == WARN:
        note(f"{finding.what}: {finding.fix}")
    else:
        print_line(f"streamer: {finding.what}")


@dataclass(frozen=True)
class Continued:
    """How stored state goes on under settings: what they change, and their generation."""

    changes: Sequence[SettingChange] = ()
    generation: int = 0


async def preflight(
    settings: Settings,
    fingerprint: str = "",
    *,
    is_restart: bool = False,
    may_take_over: bool = False,
    is_newest: bool = False,
    accepted: Collection[str] = (),
) -> Continued:
    """What would make every worker fail is said once, in one line. Another cluster than that of
    ``[kafka]`` may be away: it is read once it is back. When a worker is started again, topics may
    have changed, too: what can be read goes on. Settings that never counted here become the newest,
    with ``is_newest`` others, too; SettingsError where newer ones count."""

    fingerprint = fingerprint or fingerprint_of(settings)

    def say(error: BrokerError) -> None:
        note(f"{error}; it is read once it is back")

    store = RedisStore(settings.redis)
    try:
        await store.check()
        await store.try_writing()
        stored = await store.partitions()
        if is_restart and stored is not None:
            found = await readable(settings, stored)
            ids = found.cluster_ids
            known = await require_same_state(settings, store, found.count, ids, accepted)
            return await _declared(store, fingerprint, known, is_newest)
        count, cluster_ids = await partitions_and_ids(settings, when_away=say)
        require_distinct(settings.logs, cluster_ids)
        try:
            known = await require_same_state(settings, store, count, cluster_ids, accepted)
        except LogIdentityError:
            is_away = any(log.cluster not in cluster_ids for log in settings.logs.values())
            if is_away or not may_take_over:
                raise
            known = await take_over(settings, store, count, cluster_ids, accepted)
        return await _declared(store, fingerprint, known, is_newest)
    finally:
        await store.close()


async def _declared(
    store: RedisStore, fingerprint: str, known: Continued, is_newest: bool
) -> Continued:
    found = await store.declare_settings(fingerprint)
    if is_newest or not found.number or found.number == found.newest < known.generation:
        found = await store.declare_settings(fingerprint, above=known.generation)
    require_newest(found.newest, found.number)
    return Continued(known.changes, found.number)


async def take_over(
    settings: Settings,
    store: RedisStore,
    count: int,
    cluster_ids: ClusterIds,
    accepted: Collection[str] = (),
) -> Continued:
    """Make the prefix that of this system. What is stored is deleted unless its topics are read on;
    StoreError while workers report under it."""
    prefix = settings.redis.prefix
    if present := sorted(each.worker for each in await store.reports() if each.is_present):
        raise StoreError(
            f"workers count under redis.prefix {prefix!r}: {', '.join(present)}; stop them before "
            "it is taken over"
        )
    await store.set_group(group_of(settings, cluster_ids), take_over=True)
    said, known = "its counts go on", Continued()
    try:
        known = await require_same_state(settings, store, count, cluster_ids, accepted)
    except LogIdentityError:
        await store.clear(await store.partitions() or 0)
        said = "what was stored is deleted"
    note(f"redis.prefix {prefix!r} is taken over: {said}")
    return known


async def preflight_keys(settings: Settings) -> None:
    """BrokerError where users would be counted of topics that are not keyed by user. A sample that
    says too little, or cannot be taken, refuses nothing: it is taken again while workers run."""
    if settings.kafka.keyed_by == "user" or not Catalogue(settings).asks_for_users:
        return
    try:
        keying = await look_at_keys(settings)
    except StreamerError:
        return
    except Exception as error:
        say_no_keys(error)
        return
    require_keyed(settings, keying)


def say_no_keys(error: Exception) -> None:
    """Print that nothing is known of the keys, on stderr."""
    said = f"cannot check how topics are keyed: {type(error).__name__}: {error}"
    note(f"{said}; trying again")


async def require_same_state(
    settings: Settings,
    store: RedisStore,
    count: int,
    cluster_ids: ClusterIds,
    accepted: Collection[str] = (),
) -> Continued:
    """What these settings change, and the newest generation of those that wrote a partition.
    LogIdentityError where the state is another system's, SettingsError where a partition was
    written with settings that cannot be changed in place, or that hold what these do not, unless
    its name is ``accepted``; StoreError where it was counted under
    another hash key, or the topics do not have its ``count`` of partitions."""
    stored_count = await store.partitions()
    if stored_count is None:
        return Continued()
    prefix, group = settings.redis.prefix, group_of(settings, cluster_ids)
    require_group(prefix, await store.group(), group)
    catalogue = Catalogue(settings)
    ours = contents_of(settings, catalogue)
    manifests, damaged = await manifests_of(store, stored_count)
    for partition, damage in damaged.items():
        warning = f"partition {partition}: {damage}; a worker counts it again from Kafka"
        note(f"{warning}")
    changes = dict[SettingChange, None]()
    for partition, manifest in manifests.items():
        names = new_names(manifest, settings.logs, cluster_ids)
        manifests[partition] = renamed(manifest, names)
    require_count(stored_count, count)
    for stored in {m.contents: m for m in manifests.values()}.values():
        continued = require_continuable(stored.counted_contents, ours, prefix)
        changes.update(dict.fromkeys(continued))
    scopes = {name for manifest in manifests.values() for name in manifest.scopes}
    trials = catalogue.experiment_measures.trials
    changes.update(dict.fromkeys(dropped_experiments(scopes, trials)))
    require_accepted(changes, accepted)
    require_key(manifests, await store.hash_key())
    newest = max((manifest.generation for manifest in manifests.values()), default=0)
    return Continued(list({str(change): change for change in changes}.values()), newest)


def worker_command() -> list[str]:
    """The command of one worker process."""
    faust = [sys.executable, "-m", "faust", "-A", "streamer.app:app"]
    return [*faust, "--quiet", "worker", "--loglevel", "info"]  # log.level decides; no spinner


def worker_environment(config: str | None) -> dict[str, str]:
    """The environment of a worker: ours, who we are, where the settings are, and huge pages for its
    tables, where events look rows up at random. Only glibc knows this setting; yours goes before
    it."""
    env = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ, SUPERVISOR: str(os.getpid())}
    env.pop("STREAMER_CONFIG", None)
    if config is not None:
        env["STREAMER_CONFIG"] = str(Path(config).resolve())
    return env


async def _supervise(
    settings: Settings, config: str | None, workers: int, accepted: Collection[str]
) -> int:
    """Keep the workers running; a signal stops them cleanly."""
    stop = stopped()
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(_keep_running(config, stop, workers, accepted))
        group.create_task(_watch_keys(settings, stop))
        print_line(f"streamer: {workers} worker{'s' if workers > 1 else ''} running")
    return 0


async def _keep_running(
    config: str | None, stop: asyncio.Event, workers: int, accepted: Collection[str]
) -> None:
    pause_seconds, loop = _RESTART_SECONDS, asyncio.get_running_loop()
    while not stop.is_set():
        began = loop.time()
        process = await asyncio.create_subprocess_exec(
            *worker_command(),
            env=worker_environment(config) | {SUPERVISED: str(workers)},
            stdout=DEVNULL,
            start_new_session=True,
        )
        ended = asyncio.create_task(process.wait())
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if ended.done():
            if stop.is_set():
                return
            seconds = loop.time() - began
            is_early = seconds < limits.EARLY_END_SECONDS
            pause_seconds = pause_seconds if is_early else _RESTART_SECONDS
            note(
                f"worker {process.pid} exited with {process.returncode} after {seconds:.0f} s; "
                f"starting another in {pause_seconds:.0f} s"
            )
            await _until_it_can_run(config, stop, pause_seconds, accepted)
            pause_seconds = min(2 * pause_seconds, limits.RESTART_SECONDS_MAX)
            continue
        process.terminate()
        try:
            await asyncio.wait_for(ended, _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _watch_keys(settings: Settings, stop: asyncio.Event) -> None:
    """Look whether the topics are keyed by user, soon after the start and now and then, until it
    is known that they are not."""
    if settings.kafka.keyed_by == "user":
        return
    store = RedisStore(settings.redis)
    pause = _FIRST_LOOK_SECONDS
    try:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause)
                return
            is_known = False
            try:
                by_user = {
                    name: at.is_by_user for name, at in (await look_at_keys(settings)).items()
                }
                decided = {name: by for name, by in by_user.items() if by is not None}
                await store.set_keyed(decided)
                if topics := topics_not_by_user(settings, await store.keyed()):
                    note(f"{why_no_users(topics)}")
                    return
                is_known = len(decided) == len(settings.logs)
            except StreamerError:
                pass  # looked at again; the workers say it
            except Exception as error:  # whatever it is: the workers go on
                say_no_keys(error)
            pause = limits.KEYING_SECONDS if is_known else min(2 * pause, limits.KEYING_SECONDS)
    finally:
        await store.close()


async def _until_it_can_run(
    config: str | None, stop: asyncio.Event, delay_seconds: float, accepted: Collection[str]
) -> None:
    """Wait so long, and then until a worker has what it needs, and say once what is missing: a
    worker without it would end at once, again and again, each time with pages of text."""
    last_reason = ""
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), delay_seconds)
        try:
            written = load(config, os.environ)
            settings, _ = await resolve(written)
            fingerprint = fingerprint_of(written)
            await preflight(settings, fingerprint, is_restart=True, accepted=accepted)
            return
        except StreamerError as error:
            if str(error) != last_reason:
                last_reason = str(error)
                note(f"{last_reason}; trying again")
            delay_seconds = min(2 * delay_seconds, limits.RETRY_SECONDS_MAX)
