"""All benchmarks side by side, as ratios of one run.

    make bench                       everything
    make bench ARGS="--events 1000000 --rounds 1 --endless 0"
    make bench ARGS="--only throughput --jobs everything"

Real Kafka and Redis are found or started as the tests do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from benchmarks import endless, throughput
from benchmarks.measure import program
from tests.support.servers import FAST, kafka_server, redis_server


def with_servers(arguments: argparse.Namespace) -> bool:
    """What reads from Kafka or Redis."""
    right = True
    with kafka_server(jvm=FAST) as kafka, redis_server() as redis:
        print(f"Kafka: {kafka.what}; Redis: {redis.what}", flush=True)
        right = throughput.measure(arguments, kafka.address, redis.address)
        if arguments.only:
            return right
        common = (f"--brokers={kafka.address}", f"--suffix={throughput.CLEAN.suffix}")
        events = f"--events={arguments.ordinary}"
        ordinary = program("benchmarks.ordinary_faust", *common, events, f"--redis={redis.address}")
        print(f"an ordinary Faust app: {throughput.rate(ordinary):,.0f} events/s", flush=True)
        lag = program("benchmarks.lag", common[0], f"--redis={redis.address}")
        print(f"age of windows at a steady rate: {json.dumps(lag)}", flush=True)
        scrape = program("benchmarks.scrape", f"--redis={redis.address}")
        print(f"warm scrape, 64 partitions, 4 windows: {json.dumps(scrape)}", flush=True)
        page = program("benchmarks.page", f"--redis={redis.address}")
        print(f"the page, 64 partitions, 500 segments: {json.dumps(page)}", flush=True)
    return right


def main(arguments: argparse.Namespace) -> int:
    right = with_servers(arguments)
    if not arguments.only:
        for name in (
            "hostile",
            "pauses",
            "slates",
            "shapes",
            "formats",
            "tables",
            "rows",
            "dimensions",
            "experiments",
            "yahoo",
        ):
            print(f"{name}: {json.dumps(program(f'benchmarks.{name}'))}", flush=True)
        if arguments.endless:
            flags = argparse.Namespace(events=arguments.endless, rate=150.0)
            right = asyncio.run(endless.main(flags)) == 0 and right
    print(f"results {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=2_000_000, help="of each backlog")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--ordinary", type=int, default=30_000, help="events for that app")
    options.add_argument("--endless", type=int, default=20_000_000, help="0 leaves it out")
    options.add_argument("--only", choices=["throughput"], help="leave all else out")
    options.add_argument("--jobs", nargs="*", default=[], help="names: the logs of these only")
    sys.exit(main(options.parse_args()))
