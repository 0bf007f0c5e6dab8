"""``streamer demo``: the whole system on this machine, on real traffic, with nothing installed.

An embedded broker and Redis, a worker, the exporter, and the Open Bandit log: first twice over the
past two weeks, so that every window has something in it, then again and again from now on, as fast
as ``--rate`` says. ``demo_log`` moves event times, and plants what is to be found.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import heapq
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web
from aiokafka import AIOKafkaProducer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from streamer.actions.leader import Leader
from streamer.cli.demo_log import SURFACE, ReplayLeg, planted, replay
from streamer.cli.main import stopped
from streamer.cli.run import worker_command, worker_environment
from streamer.encoding.segments import ALL
from streamer.errors import StreamerError
from streamer.kafka.log_ends import KafkaLogEnds
from streamer.query.experiments import stored_experiments
from streamer.query.readings import ReadingSet
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.settings.load import load
from streamer.settings.model import Metrics, Settings, Topics
from streamer.sources import open_bandit
from streamer.sources.open_bandit import Event
from streamer.state.redis.store import RedisStore
from streamer.stats.alerting.baseline import Status
from streamer.testing.embedded import (
    EmbeddedBroker,
    EmbeddedRedis,
    create_topics,
    delete_topics,
)
from streamer.worker import interpreter

EXPERIMENT = "ranker"
_EXPERIMENTS = """
[[experiments]]
name = "ranker"
dimension = "ranker"
control = "old"
split = {{ old = 1, new = 1 }}
start = {start}
metrics = [{{ name = "ctr_ratio" }}, {{ name = "dwell_mean_seconds", margin = 0.4 }}]
explore = ["surface"]
[[experiments]]
name = "policies"
dimension = "variant"
control = "random"
split = {{ random = 1, bts = 1 }}
start = {start}
metrics = [{{ name = "ctr_ratio" }}, {{ name = "clicks_per_user" }}]
[[experiments]]
name = "layout"
dimension = "layout"
control = "narrow"
split = {{ narrow = 1, wide = 1 }}
start = {start}
"""
PARTITIONS = 2
OUTAGE_MS = 36 * 3600 * 1000
"""For how long clicks on a surface are lost when the demo begins."""
ABOUT = (
    "60,000 real impressions and their clicks (Open Bandit, ZOZO), moved in time; users, click "
    "times, dwell, conversions and visits are made up.",
    f"more clicks by users of ranker new; a fifth of the users of layout wide is lost; all clicks "
    f"on {SURFACE} are lost since {OUTAGE_MS // 3_600_000} hours before the start.",
)
"""What is real in the traffic, and what was planted into it."""
ON_APACHE_KAFKA = (
    "start Apache Kafka (https://kafka.apache.org/quickstart), then run\n"
    "            streamer demo --kafka localhost:9092"
)
_REFRESH_SECONDS = 1.0
_PLAIN_SECONDS = 5.0
_BURST_SECONDS = 0.1
_WINDOWS = ("5m", "1h", "24h", "7d")


def main(args: argparse.Namespace) -> int:
    """Run the demo until it is stopped, or for ``--seconds``; returns the exit code. On a Kafka of
    yours it has topics of its own, which it deletes."""
    if args.rate <= 0:
        raise StreamerError(f"--rate {args.rate}: must be above 0")
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="streamer-demo-"))
        brokers = args.kafka or stack.enter_context(EmbeddedBroker()).brokers
        redis = stack.enter_context(EmbeddedRedis())
        path, now_ms = Path(directory) / "streamer.toml", int(time.time() * 1000)
        topics = f"streamer-demo-{now_ms}-" if args.kafka else ""
        path.write_text(document(brokers, redis.url, now_ms, topics), encoding="utf-8")
        return asyncio.run(_demo(args, load(path), str(path)))


def document(brokers: str, redis_url: str, now_ms: int, topics: str = "") -> str:
    """The settings: all metrics by policy, three experiments, and an alert. ``topics``: how the
    names of topics begin."""
    start = datetime.fromtimestamp(now_ms / 1000, UTC).date() - timedelta(days=14)
    families = json.dumps([*Metrics().families, "off_policy", "diversity"])
    dimensions = ("variant", "surface", "ranker", "layout")
    return f"""dimensions = [{", ".join(f'{{ name = "{name}" }}' for name in dimensions)}]
[kafka]
brokers = "{brokers}"
group = "{topics}streamer-demo"
{_topics(topics)}
[redis]
url = "{redis_url}"
[log]
level = "warning"
[windows]
lengths = {json.dumps(_WINDOWS)}
[metrics]
rollups = [[], ["variant"], ["surface"], ["ranker"], ["variant", "surface"]]
detailed = [[], ["variant"]]
families = {families}
[[policies]]
name = "bts"
propensity = "p_bts"
{_EXPERIMENTS.format(start=start)}
[[alerts]]
name = "ctr"
window = "24h"
segments = ["surface"]
drop = 0.2
traffic_rise = 0  # live traffic is faster than the log
[[actions]]
url = "http://localhost/" # nothing is sent: it is recorded what would be
on = ["harm", "guardrail", "split", "decided", "withdrawn"]
dry_run = true
"""


def _topics(prefix: str) -> str:
    """The names of topics, where they are not the usual ones."""
    if not prefix:
        return ""
    names = (f'{name} = "{prefix}{topic}"' for name, topic in Topics().named.items())
    return "\n".join(["[kafka.topics]", *names])


async def _demo(args: argparse.Namespace, settings: Settings, path: str) -> int:
    stop = stopped()
    names = list(settings.kafka.topics.named.values())
    await create_topics(settings.kafka.brokers, names, PARTITIONS)
    async with (
        _deleted(settings, names if args.kafka else []),
        _producer(settings) as producer,
        _worker(path) as worker,
        _exporter(settings, args.port) as (exporter, port),
    ):
        _announce(settings, path, port, args)
        traffic = asyncio.create_task(_produce(producer, settings, args.rate))
        acting = asyncio.create_task(Leader(exporter).run(stop))
        if args.seconds is not None:
            asyncio.get_running_loop().call_later(args.seconds, stop.set)
        try:
            await _show(exporter, stop, traffic, worker)
        finally:
            for task in (traffic, acting):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        print("streamer: demo ended; everything was stopped", flush=True)
    return 0


@contextlib.asynccontextmanager
async def _deleted(settings: Settings, names: Sequence[str]) -> AsyncIterator[None]:
    """Delete these topics in the end."""
    try:
        yield
    finally:
        if names:
            await delete_topics(settings.kafka.brokers, names)


def _announce(settings: Settings, path: str, port: int, args: argparse.Namespace) -> None:
    kafka = "Kafka" if args.kafka else "Kafka (embedded)"
    print(
        f"streamer demo: {kafka} {settings.kafka.brokers}, "
        f"Redis (embedded) {settings.redis.url}, settings {path}\n"
        f"  page      http://127.0.0.1:{port}/\n"
        f"  metrics   http://127.0.0.1:{port}/metrics\n"
        f"  readings  http://127.0.0.1:{port}/api/readings?window=5m\n"
        f"  A/B test  streamer readout {EXPERIMENT} -c {path}\n"
        f'  Python    streamer.connect("{path}").experiment("{EXPERIMENT}")\n'
        f"  traffic   {ABOUT[0]}\n"
        f"            twice over the past two weeks, then {args.rate:g} events/s live\n"
        f"  planted   {ABOUT[1]}",
        flush=True,
    )
    if not args.kafka and shutil.which("java"):
        print(f"  Java      is here: {ON_APACHE_KAFKA}", flush=True)


@contextlib.asynccontextmanager
async def _worker(path: str) -> AsyncIterator[asyncio.Task[None]]:
    """A worker; the task raises StreamerError once it has ended by itself."""
    process = await asyncio.create_subprocess_exec(
        *worker_command(),
        env=worker_environment(path),
        stdout=DEVNULL,
        stderr=PIPE,
        start_new_session=True,
    )
    watch = asyncio.create_task(_watch(process))
    try:
        yield watch
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 15)
        except TimeoutError:
            process.kill()
        await asyncio.gather(watch, return_exceptions=True)


async def _watch(process: asyncio.subprocess.Process) -> None:
    """Pass on what a worker prints until it ends, which it should not."""
    assert process.stderr is not None
    last = "it printed nothing"
    async for line in process.stderr:
        printed = line.decode(errors="replace")
        last = printed.strip() or last
        sys.stderr.write(printed)
    code = await process.wait()
    raise StreamerError(
        f"the worker of the demo ended with exit code {code}: {last.removeprefix('streamer: ')}"
    )


@contextlib.asynccontextmanager
async def _exporter(settings: Settings, port: int) -> AsyncIterator[tuple[Exporter, int]]:
    interpreter.calm()
    about = f"A demo: {ABOUT[0]} Planted: {ABOUT[1]}"
    store, ends = RedisStore(settings.redis), KafkaLogEnds(settings)
    exporter = Exporter(settings, store, ends, about=about)
    runner = web.AppRunner(application(exporter), access_log=None)
    await runner.setup()
    try:
        yield exporter, await listen(runner, settings.exporter.host, port)
    finally:
        await runner.cleanup()


# Traffic -----------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _producer(settings: Settings) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        bootstrap_servers=settings.kafka.brokers, linger_ms=20, max_batch_size=256 * 1024
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def _produce(producer: AIOKafkaProducer, settings: Settings, rate: float) -> None:
    """The log twice over the past two weeks, then lap after lap from now on."""
    now_ms = int(time.time() * 1000)
    for event in replay(legs(now_ms, rate)):
        if event["ts"] > now_ms:
            await _wait_until(event["ts"])
        kind, value = next(open_bandit.lines([event]))
        topic, key = settings.kafka.topics.by_kind[kind], event["user_id"].encode()
        await producer.send(topic, value, key=key, timestamp_ms=event["ts"])


def legs(now_ms: int, rate: float) -> Iterator[ReplayLeg]:
    """The past two weeks at the log's own speed, then laps of ``rate`` events per second, each
    begun when it is asked for."""
    log = _log(0)
    span_ms = log[-1]["ts"] - log[0]["ts"]
    yield ReplayLeg(planted(log, None), now_ms - 2 * span_ms)
    again = _log(1)
    yield ReplayLeg(planted(again, again[-1]["ts"] - OUTAGE_MS), now_ms - span_ms)
    for lap in itertools.count(2):
        log = planted(_log(lap), 0)
        yield ReplayLeg(log, int(time.time() * 1000), span_ms / (len(log) / rate * 1000))


def _log(lap: int) -> list[Event]:
    both = open_bandit.events(lap), open_bandit.retrieval_tests(lap)
    return list(heapq.merge(*both, key=lambda event: event["ts"]))


async def _wait_until(ms: int) -> None:
    ahead_seconds = ms / 1000 - time.time()
    if ahead_seconds > 0:
        await asyncio.sleep(max(ahead_seconds, _BURST_SECONDS))


# What it shows -----------------------------------------------------------------------------------


async def _show(exporter: Exporter, stop: asyncio.Event, *running: asyncio.Task[None]) -> None:
    """A live table on a terminal, else a line now and then, until it is time to stop, or one of
    what is running fails."""
    console = Console()
    is_terminal = console.is_terminal and sys.stdout.isatty() and "CI" not in os.environ
    live = Live(console=console, refresh_per_second=4) if is_terminal else contextlib.nullcontext()
    pause = _REFRESH_SECONDS if is_terminal else _PLAIN_SECONDS
    with live as screen:
        while not stop.is_set():
            stopping = asyncio.ensure_future(stop.wait())
            await asyncio.wait(
                {stopping, *running}, timeout=pause, return_when=asyncio.FIRST_COMPLETED
            )
            stopping.cancel()
            for task in running:
                if task.done():
                    task.result()
            result = await exporter.read()
            if screen is not None:
                screen.update(table_of(result))
            else:
                print(line_of(result), flush=True)
    result = await exporter.read()
    console.print(table_of(result))
    for note in (*notes_of(result), *findings_of(exporter, result)):
        console.print(note, highlight=False)


def _value(result: ReadingSet, name: str, **labels: str) -> float | None:
    for reading in result.readings:
        if reading.name == f"streamer_{name}" and all(
            reading.labels.get(k) == v for k, v in labels.items()
        ):
            return reading.value
    return None


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"


def table_of(result: ReadingSet) -> Table:
    """Click-through rates of both policies in every window, and whom they reach."""
    title = "Open Bandit, live: click-through rate and users by policy (variant)"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.show_edge = False  # so that it fits 80 columns
    for heading in ("window", "policy"):
        table.add_column(heading)
    for heading in ("impressions", "clicks", "CTR", "CTR\nattr.", "dwell\np50"):
        table.add_column(heading, justify="right")
    for heading in ("users", "user hit\nratio"):
        table.add_column(heading, justify="right")
    for window in _WINDOWS:
        for variant in ("all", "random", "bts"):
            where = {"window": window, "variant": variant, "surface": "all"}
            dwell = _value(result, "window_dwell_seconds", quantile="0.5", **where)
            attributed = _value(result, "ctr_attributed_ratio", maturity="provisional", **where)
            table.add_row(
                window if variant == "all" else "",
                variant,
                _number(_value(result, "window_impressions", **where)),
                _number(_value(result, "window_clicks", **where)),
                _percent(_value(result, "ctr_ratio", **where)),
                _percent(attributed),
                "–" if dwell is None else f"{dwell:.1f} s",
                _number(_value(result, "window_users", **where)),
                _percent(_value(result, "user_hit_ratio", **where)),
            )
        table.add_section()
    return table


def notes_of(result: ReadingSet) -> Iterator[str]:
    """What else the past week says off-policy, and retrieval tests the past day."""
    of_random = {"window": "7d", "variant": "random", "surface": "all", "maturity": "provisional"}
    estimated, low, high = (
        _value(result, f"snips{end}_ratio", policy="bts", **of_random)
        for end in ("", "_lower", "_upper")
    )
    had = _value(result, "ctr_attributed_ratio", **of_random | {"variant": "bts"})
    if estimated is not None:
        yield (
            f"7d, off-policy from random: bts was expected to have {_percent(estimated)}"
            f" ({_percent(low)} to {_percent(high)}), and had {_percent(had)}"
        )
    tests = {"window": "24h", "variant": open_bandit.RETRIEVAL_TEST, "surface": "all"}
    names = ("hit_sampled_ratio", "ndcg_sampled_ratio", "index_recall_ratio")
    hit, ndcg, recall = (_value(result, name, **tests) for name in names)
    if hit is not None:
        yield (
            f"24h, retrieval tests: hit@10 {_percent(hit)}, NDCG@10 {_percent(ndcg)},"
            f" index recall {_percent(recall)}"
        )


def findings_of(exporter: Exporter, result: ReadingSet) -> Iterator[str]:
    """What the experiments recommend, and what the alert found."""
    measures = exporter.catalogue.experiment_measures
    stored = stored_experiments(exporter.settings, measures, exporter.reader.views)
    for name, experiment in stored.items():
        if (advice := experiment.read().recommendation) is not None:
            yield f"experiment {name}: {advice.words}"
    for entry in result.watched:
        if entry.metric.status == Status.DROPPED:
            values = [value for value in entry.segment if value != ALL]
            yield f"alert {entry.alert.name}, {', '.join(values)}: {entry.metric.reason}"


def line_of(result: ReadingSet) -> str:
    """One line: events so far; CTR and impressions of the last five minutes by policy."""
    events = sum(r.value for r in result.readings if r.name == "streamer_events_total")
    parts = []
    for variant in ("all", "random", "bts"):
        where = {"window": "5m", "variant": variant, "surface": "all"}
        impressions = _number(_value(result, "window_impressions", **where))
        ctr = _percent(_value(result, "ctr_ratio", **where))
        parts.append(f"{variant} {ctr} ({impressions})")
    return f"streamer: {events:,.0f} events; CTR 5m (impressions): {', '.join(parts)}"
