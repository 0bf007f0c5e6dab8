"""A real Redis with a replica, and three Sentinels that agree who is the master, on loopback."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import redis

from streamer.testing.embedded import HOST, EmbeddedRedis, free_port
from tests.support.servers import own_redis, redis_program

MASTER, PASSWORD = "shop", "of-sentinels"
WAIT_SECONDS = 30.0


class Sentinels:
    """``nodes``: the first began as the master. A context manager."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.nodes = [own_redis(directory / f"node-{n}", appendonly=True) for n in range(2)]
        self.ports = [free_port() for _ in range(3)]
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        places = ",".join(f"{HOST}:{port}" for port in self.ports)
        return f"redis+sentinel://:{PASSWORD}@{places}/{MASTER}/0"

    def __enter__(self) -> Self:
        first, second = self.nodes
        for node in self.nodes:
            self._stack.enter_context(node)
        self.ask(second.port, "REPLICAOF", HOST, first.port)
        self.wait_for_replica(second)
        for port in self.ports:
            self._stack.enter_context(self._sentinel(port))
        for port in self.ports:
            self.wait(lambda at=port: len(self._sentinel_ask(at, "SENTINELS")) == 2)  # type: ignore[misc]
            self.wait(lambda at=port: len(self._sentinel_ask(at, "REPLICAS")) == 1)  # type: ignore[misc]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _sentinel(self, port: int) -> ExitStack:
        program = redis_program()
        assert program is not None, "Sentinel needs redis-server"
        path = self._directory / f"sentinel-{port}.conf"
        lines = (
            f"port {port}",
            f"bind {HOST}",
            f"dir {self._directory}",
            f"requirepass {PASSWORD}",
            f"sentinel sentinel-pass {PASSWORD}",
            f"sentinel monitor {MASTER} {HOST} {self.nodes[0].port} 2",
            f"sentinel down-after-milliseconds {MASTER} 1000",
            f"sentinel failover-timeout {MASTER} 5000",
        )
        path.write_text("\n".join([*lines, ""]))
        words = [program, str(path), "--sentinel"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        stack = ExitStack()
        stack.callback(process.wait)
        stack.callback(process.kill)
        self.wait(lambda: self._answers(port))
        return stack

    def _answers(self, port: int) -> bool:
        try:
            return bool(self.ask(port, "PING", password=PASSWORD))
        except redis.RedisError:
            return False

    def _sentinel_ask(self, port: int, what: str) -> Any:
        return self.ask(port, f"SENTINEL {what}", MASTER, password=PASSWORD)

    def ask(self, port: int, *command: Any, password: str | None = None) -> Any:
        """One command to one process."""
        options: dict[str, Any] = {"host": HOST, "port": port, "socket_timeout": 10}
        with closing(redis.Redis(**options, password=password)) as client:
            return client.execute_command(*command)  # type: ignore[no-untyped-call]

    def is_master(self, node: EmbeddedRedis) -> bool:
        """As the process says itself."""
        return bool(self.ask(node.port, "ROLE")[0] == b"master")

    def wait_for_replica(self, node: EmbeddedRedis) -> None:
        """Until it follows a master."""
        self.wait(lambda: not self.is_master(node))
        self.wait(lambda: self.ask(node.port, "ROLE")[3] == b"connected")

    @staticmethod
    def wait(holds: Callable[[], bool]) -> None:
        """Until something holds."""
        end = time.monotonic() + WAIT_SECONDS
        while not holds():
            assert time.monotonic() < end, "Sentinel did not get so far"
            time.sleep(0.05)
