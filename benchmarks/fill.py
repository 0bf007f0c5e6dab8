"""``streamer apply --fill``: how long a dimension takes to get its past, beside a worker.

    python -m benchmarks.fill --events 10000000

Checks that no reading of before changes, and that what is new is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import worker
from benchmarks.measure import program
from streamer.cli.run import worker_command, worker_environment
from streamer.query.readings import Reading
from streamer.settings.load import load
from streamer.settings.model import Settings
from tests.support.servers import FAST, KafkaServer, own_redis

PARTITIONS = 4
OLD = '[[dimensions]]\nname = "variant"\n'
NEW = '[[dimensions]]\nname = "variant"\n[[dimensions]]\nname = "surface"\n'


def values_of(settings: Settings) -> dict[str, float]:
    """What is shown of all traffic, by name and labels."""
    found = asyncio.run(worker.stored_readout(settings)).readings
    return {_key(reading): reading.value for reading in found if "redis" not in reading.name}


def _key(reading: Reading) -> str:
    labels = sorted(pair for pair in reading.labels.items() if pair[1] != "all")
    return json.dumps([reading.name, *labels])


def measured(brokers: str, redis: str, events: int, folder: Path) -> dict[str, float]:
    """Count the backlog by one dimension, then apply two."""
    flags = argparse.Namespace(brokers=brokers, suffix="-fill", redis=redis, events=events)
    flags.settings, flags.workers, flags.cores = OLD, 1, 0
    _, settings = asyncio.run(worker.measure(flags))
    before = values_of(settings)
    path = folder / "new.toml"
    names = settings.kafka.topics.named.items()
    topics = "".join(f'{kind} = "{name}"\n' for kind, name in names)
    path.write_text(
        f'[kafka]\nbrokers = "{brokers}"\ngroup = "{settings.kafka.group}"\n'
        f'[kafka.topics]\n{topics}[redis]\nurl = "{redis}"\nprefix = "{settings.redis.prefix}"\n'
        f"{NEW}",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "streamer", "apply", str(path), "--fill"]
    with subprocess.Popen(worker_command(), env=worker_environment(str(path))) as running:
        began = time.perf_counter()
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - began
        running.terminate()
    after = values_of(load(path))
    changed = [key for key, value in before.items() if after.get(key) != value]
    assert not changed, changed[:10]
    assert len(after) > len(before)
    return {"events": events, "seconds": round(seconds, 1), "readings": len(before)}


def main(arguments: argparse.Namespace) -> int:
    """Print the figures."""
    with (
        KafkaServer(jvm=FAST) as kafka,
        own_redis() as redis,
        tempfile.TemporaryDirectory() as folder,
    ):
        log = (f"--brokers={kafka.brokers}", "--suffix=-fill", f"--events={arguments.events}")
        program("benchmarks.backlog", *log, f"--partitions={PARTITIONS}")
        url = f"redis://127.0.0.1:{redis.port}/0"
        print(json.dumps(measured(kafka.brokers, url, arguments.events, Path(folder))))
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=2_000_000)
    sys.exit(main(options.parse_args()))
