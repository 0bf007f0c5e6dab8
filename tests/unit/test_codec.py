"""Columns ↔ bytes, manifests ↔ bytes; what is not ours is refused in words."""

from __future__ import annotations

import random
from typing import Any

import cramjam
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from streamer.errors import CodecError
from streamer.store import codec, manifest
from streamer.store.journal import Journal
from streamer.testing import chunks_of
from streamer.witnesses import witness_of
from tests.agreement import SETTINGS, random_records, run_engines, to_log

DTYPES = st.sampled_from([np.int64, np.uint64, np.int32, np.int8, np.bool_, np.uint16, np.float64])


@given(st.integers(0, 50), st.lists(DTYPES, min_size=1, max_size=5), st.data())
@settings(max_examples=150, deadline=None)
def test_columns_come_back(rows: int, dtypes: list[type], data: st.DataObject) -> None:
    columns: dict[str, Any] = {
        f"c{i}": data.draw(arrays.arrays(dtype, rows)) for i, dtype in enumerate(dtypes)
    }
    found = codec.decode(codec.encode(columns))
    assert list(found) == list(columns)
    for name, column in columns.items():
        assert found[name].dtype == column.dtype
        assert found[name].tobytes() == column.tobytes()


def test_extremes_and_views() -> None:
    whole = np.array([-(2**63), 2**53 + 1, 2**63 - 1, 0, -1], np.int64)
    found = codec.decode(codec.encode({"whole": whole, "view": whole[::-1]}))
    assert found["whole"].tolist() == whole.tolist()
    assert found["view"].tolist() == whole[::-1].tolist()


def test_slow_columns_shrink() -> None:
    n = 10_000
    columns: dict[str, Any] = {
        "event_ms": 1_700_000_000_000 + np.arange(n) * 37,
        "segment": np.zeros(n, np.int32),
    }
    assert len(codec.encode(columns)) < 3 * n


def test_runs_and_decimals_shrink_and_come_back() -> None:
    n = 10_000
    dice = np.random.default_rng(1)
    score = np.round(dice.random(n), 6)
    score[::7] = np.nan
    user = np.repeat(dice.integers(1, 2**63, n // 10), 10).astype(np.uint64)
    data = codec.encode({"user": user, "score": score})
    assert len(data) < 4.8 * n
    found = codec.decode(data)
    assert found["user"].tobytes() == user.tobytes()
    assert found["score"].tobytes() == score.tobytes()


@pytest.mark.parametrize("odd", [1 / 3, -0.0, 2147.5, 1e-7, np.inf, -2147.483648, 1.7e308])
def test_numbers_that_are_no_millionths_come_back_to_the_last_bit(odd: float) -> None:
    column = np.array([0.5, odd, np.nan, 0.25] * 9)
    assert codec.decode(codec.encode({"a": column}))["a"].tobytes() == column.tobytes()


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = codec.encode({"a": np.arange(3)})
    monkeypatch.setattr(codec, "VERSION", 3)
    with pytest.raises(CodecError, match=r"blob of version 2; this is version 3"):
        codec.decode(data)


@pytest.mark.parametrize("seed", range(200))
def test_damaged_blobs_raise_nothing_but_codec_errors(seed: int) -> None:
    dice = random.Random(seed)
    data = bytearray(codec.encode({"a": np.arange(100), "b": np.zeros(100, np.bool_)}))
    if seed % 2:
        del data[dice.randrange(len(data)) :]
    else:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    said = ""
    try:
        found = codec.decode(bytes(data))
    except CodecError as error:
        said = str(error)
    else:
        assert all(isinstance(c, np.ndarray) for c in found.values())
    assert "\n" not in said


def stored_manifest() -> bytes:
    name = "few values"
    records, _ = random_records(1, name, 300, 1)
    engines = run_engines(SETTINGS[name], 1, to_log(records), 100)
    journal = Journal(engines.partitions[0], "claim")
    for chunk in chunks_of(to_log(records), 50):
        last = chunk.records[-1]
        journal.remember(chunk.kind, witness_of(last.offset, last.record_ms, last.value))
    return journal.prepare().manifest


def test_a_manifest_comes_back() -> None:
    data = stored_manifest()
    found = manifest.decode(data)
    assert found.commit == 1
    assert manifest.decode(found.encode()) == found
    assert found.blob_names()
    assert all(name.startswith("claim.") for name in found.blob_names())
    assert found.header().commit == 1


def test_another_version_of_the_manifest_is_refused() -> None:
    found = manifest.decode(stored_manifest())
    found.version = 99
    with pytest.raises(CodecError, match="manifest of version 99; this is version"):
        manifest.decode(found.encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        bytes(cramjam.lz4.compress_block(b"")),
        bytes(cramjam.lz4.compress_block(msgspec.msgpack.encode({"version": 1}))),
        bytes(cramjam.lz4.compress_block(msgspec.msgpack.encode([1, 2]))),
    ],
)
def test_bytes_that_are_no_manifest(data: bytes) -> None:
    with pytest.raises(CodecError, match=f"{len(data)} bytes cannot be read"):
        manifest.decode(data)
