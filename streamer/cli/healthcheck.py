"""Health checks of containers, where the image has no other program than Python.

python -m streamer.cli.healthcheck worker     a worker on this host has reported to the store lately
python -m streamer.cli.healthcheck traffic    Kafka has impressions of the last minute
python -m streamer.cli.healthcheck act        somebody leads who acts on experiments
python -m streamer.cli.healthcheck URL        the page answers with 200

Settings as for ``faust -A streamer.app worker``: STREAMER_CONFIG and STREAMER_… of the environment.
Exit status 0 if it is so, else 1 with one line. A worker without its store does not report, and is
unhealthy though it only waits: restart nothing on this alone.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence

SECONDS = 5.0
"""Longest wait for an answer."""
RECENT_MS = 60_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one check."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if len(arguments) != 1:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    what = arguments[0]
    try:
        if what == "worker":
            problem = asyncio.run(asyncio.wait_for(_worker(), SECONDS))
        elif what == "act":
            problem = asyncio.run(asyncio.wait_for(_act(), SECONDS))
        elif what == "traffic":
            problem = asyncio.run(asyncio.wait_for(_traffic(), SECONDS))
        else:
            problem = _page(what)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    if problem:
        print(f"unhealthy: {problem}", file=sys.stderr)
    return 1 if problem else 0


def _page(url: str) -> str | None:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS):  # noqa: S310  # the operator's own URL
            return None
    except (urllib.error.URLError, OSError) as error:
        return f"{url}: {error}"


async def _worker() -> str | None:
    from streamer.settings.load import load
    from streamer.state.redis.store import RedisStore

    host = socket.gethostname()
    store = RedisStore(load(os.environ.get("STREAMER_CONFIG"), os.environ).redis)
    try:
        reports = await store.reports()
    finally:
        await store.close()
    ours = [report for report in reports if report.worker.startswith(f"{host}:")]
    if any(report.is_present for report in ours):
        return None
    silent = min((report.silent_seconds for report in ours), default=None)
    return f"no worker of {host} has reported" + ("" if silent is None else f" for {silent} s")


async def _act() -> str | None:
    from streamer.settings.load import load
    from streamer.state.redis.store import RedisStore

    store = RedisStore(load(os.environ.get("STREAMER_CONFIG"), os.environ).redis)
    try:
        is_led = await store.redis.exists(store.keys.leader)
    finally:
        await store.close()
    return None if is_led else "nobody leads: look at the log of `streamer act`"


async def _traffic() -> str | None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    from streamer.kafka.client import client_settings
    from streamer.settings.load import load

    kafka = load(os.environ.get("STREAMER_CONFIG"), os.environ).kafka
    topic = kafka.topics.impressions
    consumer = AIOKafkaConsumer(topic, **client_settings(kafka))
    await consumer.start()
    try:
        since_ms = int(time.time() * 1000) - RECENT_MS
        partitions = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic) or ()]
        offsets = await consumer.offsets_for_times(dict.fromkeys(partitions, since_ms))
    finally:
        await consumer.stop()
    return None if any(offsets.values()) else f"no record in {topic!r} within the last minute"


if __name__ == "__main__":
    sys.exit(main())
