"""``streamer act``: the time from an event that decides to the message, beside running workers.

    python -m benchmarks.act --experiments 100 --rate 10000 --seconds 120

Each experiment may lose twenty clicks, and loses all of one arm from a moment of its own on. The
deciding event is one that was counted between the commit before and the one that was read: the time
from the first of these is an upper bound, that from the newest event of the commit a lower one.
Checks that each experiment is told of once, and that none is whose arms are alike.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
from aiokafka import AIOKafkaProducer

from streamer.cli.run import worker_command, worker_environment
from streamer.settings.load import load
from streamer.state.acted import Acted
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import create_topics
from tests.actions.world import Receiver, receiver
from tests.support.servers import FAST, KafkaServer, own_redis

PARTITIONS = 4
ALIKE = 5
"""Experiments whose arms stay alike."""
TAIL_SECONDS = 30.0


def document(brokers: str, redis: str, url: str, experiments: int) -> str:
    """The settings: an arm of each experiment is a field of its own."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    own = "".join(
        f'[[experiments]]\nname = "e{n}"\narm = "ab.e{n}"\ncontrol = "A"\n'
        f"split = {{ A = 1, B = 1 }}\nstart = {day}\n"
        'max_loss = "20 clicks"\nmetrics = [{ name = "clicks_per_user" }]\n'
        for n in range(experiments)
    )
    return (
        f'dimensions = []\n[kafka]\nbrokers = "{brokers}"\n[redis]\nurl = "{redis}"\n'
        f'[log]\nlevel = "warning"\n{own}'
        f'[[actions]]\nurl = "{url}"\non = ["loss", "split"]\n'
    )


def events(
    experiments: int, rate: int, seconds: float, began: float
) -> Iterator[tuple[float, str, str, dict[str, object]]]:
    """(when, topic, user, event): each of one experiment, evenly in time."""
    dice, number = Random(7), 0
    breaks = {n: seconds * (0.3 + 0.35 * n / experiments) for n in range(experiments - ALIKE)}
    while (at := number / rate) < seconds:
        experiment, user = number % experiments, number // experiments // 3
        name = f"e{experiment}-{user}"
        arm = "AB"[user % 2]
        ts = round(1000 * (began + at))
        event = {"ts": ts, "user_id": name, "item_id": f"i{number % 50}"}
        event["ab"] = {f"e{experiment}": arm}
        yield at, "impressions", name, event
        number += 1
        is_broken = arm == "B" and at > breaks.get(experiment, seconds + 1)
        if not is_broken and dice.random() < 0.5:
            yield at, "clicks", name, {**event, "ts": ts + 1}


async def produce(brokers: str, made: Iterator[tuple[float, str, str, dict[str, object]]]) -> float:
    """Write them in time; returns how far behind the clock the writer was at most."""
    producer = AIOKafkaProducer(bootstrap_servers=brokers, linger_ms=10, max_batch_size=1 << 18)
    await producer.start()
    began, behind = time.perf_counter(), 0.0
    try:
        for count, (at, topic, user, event) in enumerate(made):
            await producer.send(topic, json.dumps(event).encode(), key=user.encode())
            if not count % 200:
                ahead = at - (time.perf_counter() - began)
                behind = max(behind, -ahead)
                await asyncio.sleep(max(0.0, ahead))
    finally:
        await producer.stop()
    return behind


@contextlib.contextmanager
def running(path: Path) -> Iterator[None]:
    """A worker, and who acts."""
    command = [sys.executable, "-m", "streamer", "act", "-c", str(path)]
    with (
        subprocess.Popen(worker_command(), env=worker_environment(str(path))) as worker,
        subprocess.Popen(command) as acting,
    ):
        try:
            yield
        finally:
            acting.terminate()
            worker.terminate()


async def measured(brokers: str, redis: str, flags: argparse.Namespace) -> dict[str, float]:
    """Run it once."""
    async with receiver() as (there, url):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "streamer.toml"
            path.write_text(document(brokers, redis, url, flags.experiments), encoding="utf-8")
            settings = load(path)
            names = list(settings.kafka.topics.named.values())
            await create_topics(brokers, names, PARTITIONS)
            with running(path):
                await asyncio.sleep(5.0)
                made = events(flags.experiments, flags.rate, flags.seconds, time.time())
                behind = await produce(brokers, made)
                await asyncio.sleep(TAIL_SECONDS)
            store = RedisStore(settings.redis)
            acted = Acted.of(await store.acted())
            await store.close()
    return figures(there, acted, flags.experiments, behind)


def figures(there: Receiver, acted: Acted, experiments: int, behind: float) -> dict[str, float]:
    """Bounds of the time to the message; every broken experiment is told of once, no other is."""
    wanted = {f"e{n}" for n in range(experiments - ALIKE)}
    lost = {r.experiment for r in acted.records.values() if r.kind == "loss"}
    assert lost == wanted, (sorted(wanted - lost), sorted(lost - wanted))
    assert len(there.keys) == len(set(there.keys))
    got = dict(zip(there.keys, there.times, strict=True))
    newest = [got[r.key] - r.stream_ms / 1000 for r in acted.records.values() if r.kind == "loss"]
    earlier = [
        got[r.key] - (r.seen_ms or r.stream_ms) / 1000
        for r in acted.records.values()
        if r.kind == "loss"
    ]
    return {
        "messages": len(newest),
        "lower_p50": round(float(np.quantile(newest, 0.5)), 2),
        "upper_p50": round(float(np.quantile(earlier, 0.5)), 2),
        "upper_p99": round(float(np.quantile(earlier, 0.99)), 2),
        "writer_behind": round(behind, 2),
    }


def main(flags: argparse.Namespace) -> int:
    """Print the figures."""
    with KafkaServer(jvm=FAST) as kafka, own_redis() as redis:
        url = f"redis://127.0.0.1:{redis.port}/0"
        print(json.dumps(asyncio.run(measured(kafka.brokers, url, flags))))
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--experiments", type=int, default=100)
    options.add_argument("--rate", type=int, default=10_000, help="impressions a second")
    options.add_argument("--seconds", type=float, default=120.0)
    sys.exit(main(options.parse_args()))
