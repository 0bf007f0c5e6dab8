"""The core, in Rust: see ``core/src/lib.rs``."""

from typing import Any

def read_batches(
    blob: bytes,
    next_offset: int,
    check_crcs: bool,
    aborted: list[tuple[int, int]],
    is_read_committed: bool = True,
    max_inflated_bytes: int = ...,
) -> tuple[int, list[tuple[int, int, bytes | None]], list[tuple[int, int, str]]]:
    """For tests and tools: the next offset, the records (offset, timestamp, value) and the skipped
    ranges (first, end, reason) of a fetched blob."""

class RecordDecoder:
    """For tests and tools: decodes records, one by one."""

    def __init__(self, spec_json: bytes) -> None: ...
    def decode(self, kind: str, value: bytes | None) -> Any:
        """The values of an event as a dict, or the reason why a record is none. Ids are hashes."""

    def hash(self, text: str) -> int:
        """The hash of an id."""
