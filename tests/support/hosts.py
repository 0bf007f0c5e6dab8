"""Hosts of their own, as Linux network namespaces: each has a loopback and a link to this one,
which can be cut."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

import pytest

from streamer.errors import StreamerError
from tests.support.components import SKIPPED
from tests.support.required import require

_TAG_BYTES = 3


class Hosts:
    """So many hosts besides this one, whose ``address`` they reach; a context manager.

    ``cut`` loses packets without an answer to anybody, as a failing switch does.
    """

    def __init__(self, count: int) -> None:
        tag = secrets.token_bytes(_TAG_BYTES)
        self._bridge, self._net = f"st{tag.hex()}", f"10.{tag[0]}.{tag[1]}"
        self.address = f"{self._net}.1"
        self.names = [f"{self._bridge}-{number}" for number in range(count)]

    def __enter__(self) -> Self:
        try:
            _ip("link", "add", self._bridge, "type", "bridge")
            _ip("addr", "add", f"{self.address}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            for number, name in enumerate(self.names):
                self._add(number, name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _add(self, number: int, name: str) -> None:
        here = self._link(number)
        _ip("netns", "add", name)
        _ip("link", "add", here, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", here, "master", self._bridge, "up")
        _ip("-n", name, "addr", "add", f"{self._net}.{number + 2}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            _ip("-n", name, "link", "set", link, "up")

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            with suppress(StreamerError):  # it was not made
                _ip("netns", "del", name)
        with suppress(StreamerError):
            _ip("link", "del", self._bridge)

    def _link(self, number: int) -> str:
        return f"{self._bridge}v{number}"

    def command(self, number: int, words: Sequence[str]) -> list[str]:
        """What runs a command on a host."""
        return ["ip", "netns", "exec", self.names[number], *words]

    def cut(self, number: int) -> None:
        """Take its link down."""
        _ip("link", "set", self._link(number), "down")

    def join(self, number: int) -> None:
        """Bring its link up again."""
        _ip("link", "set", self._link(number), "up")


def require_hosts() -> None:
    """Skip the test where no namespaces can be made."""
    require("iproute2")
    try:
        with Hosts(1):
            pass
    except StreamerError as error:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop(f"{SKIPPED}network namespaces: run the tests as root, on Linux ({error})")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise StreamerError(f"ip {' '.join(words)}: {done.stderr.strip()}")
