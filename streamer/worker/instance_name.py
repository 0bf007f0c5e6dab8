"""The name of a worker: its host's, and the lowest number that no other worker there has.

A worker that takes the place of a killed one gets the same name, so Kafka hands it the same
partitions at once (static membership, `group.instance.id`), and its report replaces the old one.
Hosts that share a name (containers on the host's network) notice it by each other's reports, and
put a random word behind theirs.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import socket
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

from streamer.errors import StreamerError
from streamer.settings.model import Kafka

_LOCKS = 1000
"""Most workers of one group on a host."""


def directory_of(kafka: Kafka) -> Path:
    """Directory for lock files of a group's workers on this host; safe to lose."""
    return Path(tempfile.gettempdir()) / f"streamer-{os.getuid()}-{quote(kafka.group, safe='')}"


def _require_ours(directory: Path) -> None:
    """Raise OSError where other users could write to the directory."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError("other users can write to it")


def instance_id_of(worker: str) -> str:
    """A worker's name in letters, digits, dots, dashes and underscores, at most 249.

    >>> instance_id_of("my host:0")
    'my-host-0'
    """
    return re.sub("[^a-zA-Z0-9._-]", "-", worker)[-249:]


class Slot:
    """A worker number on this host, held by a file lock until the process ends, however it ends.
    StreamerError where no lock can be taken."""

    def __init__(self, kafka: Kafka) -> None:
        directory = directory_of(kafka)
        self._word = directory / "word"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _require_ours(directory)
            self.number = next(n for n in range(_LOCKS) if self._lock(directory / f"{n}.lock"))
            word = self._word.read_text()[:20] if self._word.exists() else ""
            word = word if re.fullmatch("-[0-9a-f]{6}", word) else ""
        except (OSError, StopIteration) as error:
            text = f"cannot reserve a worker number: {error!r}; make {directory} writable"
            raise StreamerError(text) from error
        self.host = (kafka.host_name or socket.gethostname()) + word

    def _lock(self, path: Path) -> bool:
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    @property
    def worker(self) -> str:
        """Name of the worker in reports and metrics, `host:number`."""
        return f"{self.host}:{self.number}"

    @property
    def instance_id(self) -> str:
        """Kafka's `group.instance.id`."""
        return instance_id_of(self.worker)

    def tell_apart(self) -> None:
        """Give the next workers of this host another name, because another host uses this one."""
        self._word.write_text(f"-{secrets.token_hex(3)}")

    def close(self) -> None:
        """Free the number for another worker."""
        self._file.close()
