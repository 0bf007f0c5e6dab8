"""The notebooks of ``docs/notebooks``, with their output.

python -m tests.docs.notebooks    runs them and writes their output into them
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from streamer.cli.demo import PARTITIONS, document
from streamer.cli.demo_log import ReplayLeg, planted, replay
from streamer.settings.load import load
from streamer.sources import open_bandit
from streamer.sources.replay import Replay
from streamer.state.journal import Journal
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import EmbeddedRedis

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
NOW_MS = 1_767_225_600_000
"""When the demo's log ends: always then, so that the output is always the same."""


def executed(path: Path, folder: Path) -> Any:
    """A notebook that ran in a folder; CellExecutionError where a cell fails."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=100, kernel_name="python3")
    client.execute(cwd=str(folder))
    for cell in notebook.cells:
        cell.metadata = {}
    return notebook


def texts(notebook: Any) -> list[str]:
    """What its cells print and return, as text."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            found.append(output.get("text", "") or data.get("text/plain", ""))
    return found


async def fill(settings_path: Path) -> None:
    """The state of the demo's workers at the end of two weeks, in the Redis of the settings."""
    settings = load(settings_path)
    run = Replay(settings, PARTITIONS)
    log = list(open_bandit.events(0))
    span_ms = log[-1]["ts"] - log[0]["ts"]
    legs = [ReplayLeg(planted(log, None), NOW_MS - 2 * span_ms)]
    lines = []
    for event in replay(iter(legs)):
        kind, value = next(open_bandit.lines([event]))
        lines.append((kind, event["ts"], value))
    run.feed(lines)
    run.finish()
    store = RedisStore(settings.redis)
    await store.set_partitions(PARTITIONS)
    await store.set_hash_key(run.partitions[0].key)
    for number, partition in enumerate(run.partitions):
        claim, _ = await store.claim(number)
        partition.refresh_user_sums()
        await store.commit(number, Journal(partition, claim).prepare())
    await store.close()


def demo_state(redis_url: str, folder: Path) -> None:
    """Write ``streamer.toml`` into a folder, and its state into Redis."""
    path = folder / "streamer.toml"
    path.write_text(document("localhost:9092", redis_url, NOW_MS), encoding="utf-8")
    asyncio.run(fill(path))


def main() -> None:
    """Run all, and write them."""
    with tempfile.TemporaryDirectory() as name, EmbeddedRedis() as redis:
        folder = Path(name)
        demo_state(redis.url, folder)
        for path in PATHS:
            text = nbformat.writes(executed(path, folder))  # type: ignore[no-untyped-call]
            path.write_text(f"{text}\n", encoding="utf-8")
            print(path.name)


if __name__ == "__main__":
    main()
