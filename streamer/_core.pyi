"""The core, in Rust: see ``core/src/lib.rs``."""

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
