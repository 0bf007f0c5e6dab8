"""Workers on hosts of their own: one, and two.

    sudo python -m benchmarks.hosts --write docs/benchmarks-scaling.json

Hosts are Linux network namespaces behind a bridge, each with one core; Kafka and Redis are on this
one, with what is left of the same cores. Checks that all events were read and committed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import worker
from benchmarks.measure import program
from benchmarks.scaling import READ_TRAFFIC
from streamer.testing.embedded import HOST, EmbeddedRedis
from tests.support.hosts import Hosts
from tests.support.servers import FAST, KafkaServer, own_redis

PARTITIONS = 8
COUNTS, ROUNDS, READ = (1, 2), 3, 6_000_000


def measured(
    hosts: Hosts, count: int, kafka: KafkaServer, redis: EmbeddedRedis
) -> dict[str, float]:
    """One worker on each of the first so many hosts over the whole backlog; ``servers_ns``: what
    Kafka and Redis spend."""
    url = f"redis://{hosts.address}:{redis.port}/0"
    flags = argparse.Namespace(brokers=kafka.brokers, suffix="-hosts", redis=url, settings="")
    flags.events, flags.workers, flags.cores = READ, count, int(count == 1)
    before = sum(map(worker.cpu_seconds, (kafka.pid, redis.pid)))
    result, _ = asyncio.run(worker.measure(flags, hosts.command))
    servers = sum(map(worker.cpu_seconds, (kafka.pid, redis.pid))) - before
    return {
        "hosts": count,
        "servers_ns": round(servers / READ * 1e9),
        "events_per_second": round(result["events"] / result["seconds"]),
        "ns": round(result["cpu_seconds"] / result["events"] * 1e9),
    }


def main(arguments: argparse.Namespace) -> int:
    """One host and two, in turns."""
    found: list[dict[str, Any]] = []
    with Hosts(max(COUNTS)) as hosts:
        kafka = KafkaServer(jvm=FAST)
        kafka.advertised_host = hosts.address
        bind = {"bind": f"{HOST} {hosts.address}", "protected-mode": "no"}
        with kafka, own_redis(options=bind) as redis:
            log = (f"--brokers={kafka.brokers}", "--suffix=-hosts", f"--events={READ}")
            traffic = f"--traffic={json.dumps(READ_TRAFFIC)}"
            program("benchmarks.backlog", *log, f"--partitions={PARTITIONS}", traffic)
            for count in COUNTS * ROUNDS:
                figures = measured(hosts, count, kafka, redis)
                print(json.dumps(figures), flush=True)
                found.append(figures)
    if arguments.write:
        written = json.loads(arguments.write.read_text()) if arguments.write.exists() else {}
        arguments.write.write_text(json.dumps(written | {"hosts": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--write", type=Path, metavar="FILE", help="as JSON, beside what it holds")
    sys.exit(main(options.parse_args()))
