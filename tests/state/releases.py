"""Stored state of released versions, kept small, and the shape of what this version stores.

python -m tests.state.releases    writes what this version stores, once its number was raised
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.line_batch import Line
from streamer.sources.replay import Replay
from streamer.state import codec
from streamer.state.contents import Contents
from streamer.state.manifest import VERSION, Manifest, Texts, decode
from streamer.state.memory import MemoryStore
from tests.oracle.oracle import records_of_file
from tests.oracle.random_log import random_log
from tests.support.agreement import DOCUMENTS, to_log

FOLDER = Path(__file__).parent / "releases"
DOCUMENT, SEED, LINES = "few values", 19, 240
Readings = dict[str, float]


def folder_of(version: int) -> Path:
    """Where what a version stored is kept."""
    return FOLDER / str(version)


def kept_versions() -> list[int]:
    """The versions of which there is a state."""
    return sorted(int(path.name) for path in FOLDER.iterdir())


def settings_of(folder: Path) -> Settings:
    return parse(json.loads((folder / "settings.json").read_text(encoding="utf-8")))


def lines_of(folder: Path) -> list[bytes]:
    return gzip.decompress((folder / "log.ndjson.gz").read_bytes()).split(b"\n")


def expected_of(folder: Path) -> Readings:
    """The readings of the whole log."""
    found: Readings = json.loads(gzip.decompress((folder / "readings.json.gz").read_bytes()))
    return found


def records_of(settings: Settings, lines: list[bytes]) -> list[Line]:
    """The records of a log, as a file would give them."""
    records = to_log(records_of_file(lines, settings, 1))
    return [(record.kind, record.record_ms, record.value or b"") for record in records]


def feed(replay: Replay, lines: list[bytes], part: slice) -> None:
    """A part of a log, to its end."""
    replay.feed(records_of(replay.settings, lines)[part])
    replay.finish()


def readings_of(replay: Replay) -> Readings:
    """Every reading, by name and labels."""
    return {
        f"{r.name}{json.dumps(r.labels, sort_keys=True)}": float(r.value)
        for r in replay.readout().readings
    }


def first_half(settings: Settings, lines: list[bytes]) -> slice:
    """What the state has counted."""
    return slice(len(records_of(settings, lines)) // 2)


# What is stored ----------------------------------------------------------------------------------


def shape_of(store: MemoryStore) -> dict[str, Any]:
    """Names and types of all that is stored: of manifests and texts their schemas, of blobs the
    columns."""
    manifest = decode(store.states[0].manifest)
    types = {"manifest": Manifest, "contents": Contents, "texts": Texts}
    schemas = {name: msgspec.json.schema(of) for name, of in types.items()}
    return {
        "codec": codec.VERSION,
        **{name: _without_prose(schema) for name, schema in schemas.items()},
        "columns": dict(sorted(_columns(store, manifest))),
    }


def _columns(store: MemoryStore, manifest: Manifest) -> Iterator[tuple[str, dict[str, str]]]:
    blobs = store.held[0]
    kinds: dict[str, list[str]] = {
        "panes": list(manifest.panes),
        "users": list(manifest.users.values()),
        "experiment_days": list(manifest.experiment_days.values()),
        **{name: [ref.name for ref in refs] for name, refs in manifest.tables.items()},
    }
    for kind, names in kinds.items():
        columns = [codec.decode(blobs[name], name) for name in names]
        yield kind, {n: str(v.dtype) for some in columns for n, v in sorted(some.items())}


def _without_prose(schema: Any) -> Any:
    """A schema without what says nothing of bytes."""
    if isinstance(schema, Mapping):
        return {k: _without_prose(v) for k, v in schema.items() if k != "description"}
    return [_without_prose(x) for x in schema] if isinstance(schema, list) else schema


def main() -> None:
    """Write the state of half a log, and the readings of all of it."""
    folder = folder_of(VERSION)
    folder.mkdir(parents=True, exist_ok=True)
    document = json.loads(msgspec.json.encode(DOCUMENTS[DOCUMENT]))
    (folder / "settings.json").write_text(json.dumps(document, indent=1) + "\n")
    settings = settings_of(folder)
    lines = [line for line in random_log(SEED, settings, LINES) if line.strip()]
    (folder / "log.ndjson.gz").write_bytes(gzip.compress(b"\n".join(lines), mtime=0))
    replay, whole = Replay(settings), Replay(settings)
    feed(replay, lines, first_half(settings, lines))
    store = asyncio.run(replay.store())
    (folder / "state").write_bytes(store.dump())
    feed(whole, lines, slice(None))
    readings = json.dumps(readings_of(whole)).encode()
    (folder / "readings.json.gz").write_bytes(gzip.compress(readings, mtime=0))
    (folder / "shape.json").write_text(json.dumps(shape_of(store), indent=1) + "\n")


if __name__ == "__main__":
    main()
