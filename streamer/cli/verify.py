"""``streamer inspect --verify``: every stored blob is read, and compared with its checksum."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamer.errors import CodecError
from streamer.settings import limits
from streamer.state import codec
from streamer.state.manifest import Texts, decode
from streamer.state.store import Store

_AT_ONCE = 100


@dataclass
class Verified:
    """What was read of one partition. ``damage``: a blob, or `manifest`, and what is wrong."""

    partition: int
    blobs: int = 0
    bytes: int = 0
    damage: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.damage:
            return f"partition {self.partition}: {self.blobs} blobs of {self.bytes} bytes are whole"
        wrong = "; ".join(f"{name}: {what}" for name, what in sorted(self.damage.items())[:5])
        return (
            f"partition {self.partition}: {len(self.damage)} of {self.blobs + 1} stored parts are "
            f"damaged or missing: {wrong}; a worker counts a damaged partition again from Kafka, "
            "and waits at one of another version"
        )


async def verify(store: Store, number: int) -> Verified:
    """Read a partition whole; again where it was committed meanwhile, and blobs left."""
    for _ in range(limits.READ_ATTEMPTS):
        found, position = Verified(number), (await store.read(number)).position
        await _read(store, number, found)
        if not found.damage or (await store.read(number)).position == position:
            break
    return found


async def _read(store: Store, number: int, found: Verified) -> None:
    manifest = (await store.read(number)).manifest
    if not manifest:
        return
    try:
        held = decode(manifest)
        names = sorted(held.blob_names())
    except CodecError as error:
        found.damage["manifest"] = str(error)
        return
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        for name, data in zip(some, await store.blobs(number, some), strict=True):
            found.blobs += 1
            found.bytes += len(data or b"")
            try:
                if data is None:
                    raise CodecError("it is missing")
                read = Texts.decode if name == held.texts else codec.decode
                read(data, name)
            except CodecError as error:
                found.damage[name] = str(error)
