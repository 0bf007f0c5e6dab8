"""Columns ↔ bytes, manifests ↔ bytes; what is not ours is refused in words."""

from __future__ import annotations

import random
import zlib
from functools import cache, partial
from typing import Any

import cramjam
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from streamer.errors import CodecError, DamagedError
from streamer.kafka.fingerprints import fingerprint_of
from streamer.settings import limits
from streamer.state import codec, manifest
from streamer.state.codec import body_of, framed
from streamer.state.journal import Journal
from streamer.state.manifest import Texts
from streamer.state.store import Commit
from tests.support.agreement import SETTINGS, log_records, run_engines, to_log
from tests.support.all_cases import hold_for_all
from tests.support.engines import chunks_of
from tests.support.lanes import sized

NAME = "claim.1"
DTYPES = st.sampled_from([np.int64, np.uint64, np.int32, np.int8, np.bool_, np.uint16, np.float64])


@given(st.integers(0, 50), st.lists(DTYPES, min_size=1, max_size=5), st.data())
def test_columns_come_back(rows: int, dtypes: list[type], data: st.DataObject) -> None:
    columns: dict[str, Any] = {
        f"c{i}": data.draw(arrays.arrays(dtype, rows)) for i, dtype in enumerate(dtypes)
    }
    found = codec.decode(codec.encode(columns, NAME), NAME)
    assert list(found) == list(columns)
    for name, column in columns.items():
        assert found[name].dtype == column.dtype
        assert found[name].tobytes() == column.tobytes()


def test_extremes_and_views() -> None:
    whole = np.array([-(2**63), 2**53 + 1, 2**63 - 1, 0, -1], np.int64)
    found = codec.decode(codec.encode({"whole": whole, "view": whole[::-1]}, NAME), NAME)
    assert found["whole"].tolist() == whole.tolist()
    assert found["view"].tolist() == whole[::-1].tolist()


def test_slow_columns_shrink() -> None:
    n = 10_000
    columns: dict[str, Any] = {
        "event_ms": 1_700_000_000_000 + np.arange(n) * 37,
        "segment": np.zeros(n, np.int32),
    }
    assert len(codec.encode(columns, NAME)) < 3 * n


def test_runs_and_decimals_shrink_and_come_back() -> None:
    n = 10_000
    dice = np.random.default_rng(1)
    score = np.round(dice.random(n), 6)
    score[::7] = np.nan
    user = np.repeat(dice.integers(1, 2**63, n // 10), 10).astype(np.uint64)
    data = codec.encode({"user": user, "score": score}, NAME)
    assert len(data) < 4.8 * n
    found = codec.decode(data, NAME)
    assert found["user"].tobytes() == user.tobytes()
    assert found["score"].tobytes() == score.tobytes()


@pytest.mark.parametrize("odd", [1 / 3, -0.0, 2147.5, 1e-7, np.inf, -2147.483648, 1.7e308])
def test_numbers_that_are_no_millionths_come_back_to_the_last_bit(odd: float) -> None:
    column = np.array([0.5, odd, np.nan, 0.25] * 9)
    assert codec.decode(codec.encode({"a": column}, NAME), NAME)["a"].tobytes() == column.tobytes()


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = codec.encode({"a": np.arange(3)}, NAME)
    monkeypatch.setattr(codec, "VERSION", 99)
    with pytest.raises(CodecError, match=r"blob of version \d+; this is version 99"):
        codec.decode(data, NAME)


def damaged(data: bytes, seed: int) -> bytes:
    """The same bytes cut, or with one bit flipped."""
    dice, changed = random.Random(seed), bytearray(data)
    if seed % 2:
        del changed[dice.randrange(len(changed)) :]
    else:
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def test_a_changed_blob_is_refused_whatever_bit_it_is() -> None:
    data = codec.encode({"a": np.arange(40), "b": np.zeros(40, np.bool_)}, NAME)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedError, match=f"{NAME}: {len(data)} bytes"):
            codec.decode(bytes(changed), NAME)


def damaged_bytes_are_refused(seed: int) -> None:
    for data, read in (
        (
            codec.encode({"a": np.arange(100), "b": np.zeros(100, np.bool_)}, NAME),
            partial(codec.decode, name=NAME),
        ),
        (stored_manifest(), manifest.decode),
    ):
        with pytest.raises(DamagedError) as caught:
            read(damaged(data, seed))
        assert "\n" not in str(caught.value)


def test_damaged_blobs_and_manifests_are_refused_in_one_line() -> None:
    hold_for_all(range(sized(60, 300)), damaged_bytes_are_refused, "seed {}".format)


@pytest.mark.parametrize("rows", [2**40, limits.MAX_BLOB_ROWS + 1])
def test_a_blob_that_says_it_is_huge_is_refused(rows: int) -> None:
    header = codec._Header(codec.VERSION, rows, [codec._Column("a", "<i8", 1, 1)])
    head = msgspec.msgpack.encode(header)
    body = bytes(cramjam.lz4.compress_block(b"\0" * 12))
    with pytest.raises(CodecError, match=f"says that it has {rows} rows"):
        codec.decode(framed(len(head).to_bytes(4, "little") + head + body, NAME), NAME)
    with pytest.raises(ValueError, match="are more than"):
        codec.unpacked((2**32 - 1).to_bytes(4, "little") + b"x")


def test_bytes_beyond_what_the_header_says_are_refused() -> None:
    data = body_of(codec.encode({"a": np.arange(3)}, NAME), NAME)
    start = 4 + int.from_bytes(data[:4], "little")
    longer = bytes(cramjam.lz4.compress_block(bytes(codec.unpacked(data[start:])) + b"\0"))
    with pytest.raises(CodecError, match="where its header says"):
        codec.decode(framed(data[:start] + longer, NAME), NAME)


def stored_manifest() -> bytes:
    return stored().manifest


@cache
def stored() -> Commit:
    name = "few values"
    records = log_records(1, name, 300, 1)
    engines = run_engines(SETTINGS[name], 1, to_log(records), 100)
    journal = Journal(engines.partitions[0], "claim")
    for chunk in chunks_of(to_log(records), 50):
        last = chunk.records[-1]
        journal.remember(chunk.kind, fingerprint_of(last.offset, last.record_ms, last.value))
    return journal.prepare()


def test_a_manifest_comes_back() -> None:
    data = stored_manifest()
    found = manifest.decode(data)
    assert found.commit == 1
    assert manifest.decode(found.encode()) == found
    assert found.blob_names()
    assert all(name.startswith("claim.") for name in found.blob_names())
    its = Texts.decode(stored().blobs[found.texts], found.texts)
    assert Texts.decode(its.encode(NAME), NAME) == its
    header = found.header(its)
    assert (header.commit, len(header.segments)) == (1, len(its.segments))


def test_bytes_of_another_place_are_refused() -> None:
    for data, read in (
        (codec.encode({"a": np.arange(3)}, NAME), codec.decode),
        (Texts([], [], [], [], {}).encode(NAME), Texts.decode),
    ):
        read(data, NAME)
        with pytest.raises(DamagedError, match=r"claim\.2: .* are damaged, or of another place"):
            read(data, "claim.2")


def test_texts_are_written_where_they_change_alone() -> None:
    records = log_records(1, "few values", 300, 1)
    engines = run_engines(SETTINGS["few values"], 1, to_log(records), 100)
    journal = Journal(engines.partitions[0], "claim")
    first, second = journal.prepare(), journal.prepare()
    name = manifest.decode(first.manifest).texts
    assert manifest.decode(second.manifest).texts == name in first.blobs
    assert name not in second.blobs
    assert name in journal.blob_names()
    journal.texts = name, Texts([], [], [], [], {})
    third = journal.prepare()
    assert third.delete == [name]
    assert manifest.decode(third.manifest).texts in third.blobs


def test_another_version_of_the_manifest_is_refused() -> None:
    found = manifest.decode(stored_manifest())
    found.version = 99
    with pytest.raises(CodecError, match="manifest of version 99; this is version"):
        manifest.decode(found.encode())


@pytest.mark.parametrize("version", [5, 99])
def test_a_manifest_without_checksum_is_of_another_version(version: int) -> None:
    """Not damaged: its partition must not be counted again."""
    old = bytes(cramjam.lz4.compress_block(msgspec.msgpack.encode({"version": version})))
    with pytest.raises(CodecError, match=f"manifest of version {version}; this is") as caught:
        manifest.decode(old)
    assert not isinstance(caught.value, DamagedError)


def test_a_manifest_of_version_11_is_of_another_version() -> None:
    """Its checksum does not name its place."""
    packed = bytes(cramjam.lz4.compress_block(msgspec.msgpack.encode({"version": 11})))
    with pytest.raises(CodecError, match="manifest of version 11; this is") as caught:
        manifest.decode(b"smc1" + zlib.crc32(packed).to_bytes(4, "little") + packed)
    assert not isinstance(caught.value, DamagedError)


@pytest.mark.parametrize("body", [b"", msgspec.msgpack.encode([1, 2]), b"\xc1"])
def test_bytes_that_are_no_manifest(body: bytes) -> None:
    packed = bytes(cramjam.lz4.compress_block(body))
    with pytest.raises(DamagedError, match=f"{len(packed)} bytes are not in the format"):
        manifest.decode(packed)
    with pytest.raises(CodecError, match="cannot be read"):
        manifest.decode(framed(packed, "the manifest"))
