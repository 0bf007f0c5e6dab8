"""The folder of the locks by which workers of a host number themselves."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from streamer.errors import StreamerError
from streamer.settings.model import Kafka
from streamer.worker import instance_name
from streamer.worker.instance_name import Slot, directory_of

KAFKA = Kafka(host_name="host")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the locks will be; nothing is there yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return directory_of(KAFKA)


def test_workers_of_a_host_take_the_lowest_free_number(folder: Path) -> None:
    first, second = Slot(KAFKA), Slot(KAFKA)
    assert [first.worker, second.worker] == ["host:0", "host:1"]
    assert folder.stat().st_mode & 0o777 == 0o700
    first.close()
    third = Slot(KAFKA)
    assert third.number == 0
    second.close()
    third.close()


def writable_by_all(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)  # whatever the umask is


def writable_by_the_group(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o770)


def a_link(folder: Path) -> None:
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)


@pytest.mark.parametrize("prepare", [writable_by_all, writable_by_the_group, a_link])
def test_a_folder_that_others_may_write_to_is_refused(
    folder: Path, prepare: Callable[[Path], None]
) -> None:
    """Names of workers, and the locks behind them, could be anybody's."""
    prepare(folder)
    with pytest.raises(StreamerError, match=r"other users can write to it.*; make .* writable"):
        Slot(KAFKA)
    assert [path for path in folder.iterdir() if path.suffix == ".lock"] == []


def test_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    mine = os.getuid()
    monkeypatch.setattr(instance_name, "directory_of", lambda kafka: folder)
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    with pytest.raises(StreamerError, match="other users can write to it"):
        Slot(KAFKA)
