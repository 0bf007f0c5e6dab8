"""A real Redis Cluster on loopback: three masters, each with a replica if wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import redis

from streamer.errors import StreamerError
from streamer.testing.embedded import HOST, EmbeddedRedis, free_port
from tests.support.servers import own_redis

NODES, SLOTS = 3, 16384
WAIT_SECONDS = 30.0
_REPLICATION = "replication-user"
_OPTIONS = {
    "cluster-enabled": "yes",
    "cluster-node-timeout": "1000",
    "cluster-replica-validity-factor": "0",  # a stale replica may take over: seconds are lost
    "masteruser": _REPLICATION,
    "masterauth": _REPLICATION,
}


class Cluster:
    """Its nodes: the first three began as masters. A context manager."""

    def __init__(self, directory: Path, replicas: bool = False) -> None:
        self.nodes: list[EmbeddedRedis] = []
        self._bus: list[int] = []
        for number in range(2 * NODES if replicas else NODES):
            self._bus.append(free_port())
            options = {**_OPTIONS, "cluster-port": str(self._bus[-1])}
            path = directory / f"node-{number}"
            self.nodes.append(own_redis(path, appendonly=True, options=options))

        self._stack = ExitStack()

    @property
    def url(self) -> str:
        """Of one node: clients find the others."""
        return f"redis://{HOST}:{self.nodes[0].port}/0"

    def __enter__(self) -> Self:
        for node in self.nodes:
            self._stack.enter_context(node)
        acl = ("ACL", "SETUSER", _REPLICATION, "on", f">{_REPLICATION}", "+@all", "~*", "&*")
        for node in self.nodes:
            self.ask(node, *acl)
        for number in range(NODES):
            first, last = SLOTS * number // NODES, SLOTS * (number + 1) // NODES - 1
            self.ask(self.nodes[number], "CLUSTER", "ADDSLOTSRANGE", first, last)
        for number, node in enumerate(self.nodes):
            self.ask(node, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node, bus in zip(self.nodes[1:], self._bus[1:], strict=True):
            self.ask(self.nodes[0], "CLUSTER", "MEET", HOST, node.port, bus)
        self.wait(lambda: all(len(self.table(n)) == len(self.nodes) for n in self.nodes))
        for number, node in enumerate(self.nodes[NODES:]):
            self.ask(node, "CLUSTER", "REPLICATE", self.id_of(self.nodes[number]))
        self.wait(lambda: all(map(self.is_well, self.nodes)))
        for node in self.nodes[NODES:]:
            self.wait(lambda n=node: self.is_linked(n))  # type: ignore[misc]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask(self, node: EmbeddedRedis, *command: Any) -> Any:
        """One command to one node, whatever slots it has."""
        url = f"redis://{HOST}:{node.port}/0"
        with closing(redis.Redis.from_url(url, socket_timeout=10)) as client:
            return client.execute_command(*command)  # type: ignore[no-untyped-call]

    def table(self, node: EmbeddedRedis) -> list[list[str]]:
        """CLUSTER NODES, as that node sees it."""
        answer = self.ask(node, "CLUSTER", "NODES")
        text = answer.decode() if isinstance(answer, bytes) else str(answer)
        return [line.split() for line in text.splitlines()]

    def is_well(self, node: EmbeddedRedis) -> bool:
        answer = self.ask(node, "CLUSTER", "INFO")
        return b"cluster_state:ok" in answer

    def is_linked(self, replica: EmbeddedRedis) -> bool:
        return bool(self.ask(replica, "INFO", "replication")["master_link_status"] == "up")

    def id_of(self, node: EmbeddedRedis) -> str:
        return str(self.ask(node, "CLUSTER", "MYID").decode())

    def slot_of(self, key: str) -> int:
        return int(self.ask(self.nodes[0], "CLUSTER", "KEYSLOT", key))

    def master_of(self, slot: int) -> EmbeddedRedis:
        """The node that has a slot, as it says itself."""
        for node in self.nodes:
            try:
                (mine,) = [row for row in self.table(node) if "myself" in row[2]]
            except redis.RedisError:
                continue
            ranges = [tuple(map(int, r.split("-"))) for r in mine[8:] if "[" not in r]
            if "master" in mine[2] and any(r[0] <= slot <= r[-1] for r in ranges):
                return node
        raise StreamerError(f"no node has slot {slot}")

    def replica_of(self, master: EmbeddedRedis) -> EmbeddedRedis:
        wanted = self.id_of(master)
        for node in self.nodes:
            if node is not master:
                (mine,) = [row for row in self.table(node) if "myself" in row[2]]
                if mine[3] == wanted:
                    return node
        raise StreamerError("this master has no replica")

    def migrate(self, slot: int, target: EmbeddedRedis, halfway: Callable[[], None]) -> int:
        """Move a slot as ``redis-cli --cluster reshard`` does; returns how many keys went.

        ``halfway`` is called when some of its keys are here and some there.
        """
        source = self.master_of(slot)
        ids = self.id_of(source), self.id_of(target)
        self.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        self.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        moved = 0
        while keys := self.ask(source, "CLUSTER", "GETKEYSINSLOT", slot, 3):
            self.ask(source, "MIGRATE", HOST, target.port, "", 0, 5000, "KEYS", *keys)
            if not moved:
                halfway()
            moved += len(keys)
        for node in (target, source, *(n for n in self.nodes if n not in (source, target))):
            if self.is_master(node):
                self.ask(node, "CLUSTER", "SETSLOT", slot, "NODE", ids[1])
        return moved

    def is_master(self, node: EmbeddedRedis) -> bool:
        (mine,) = [row for row in self.table(node) if "myself" in row[2]]
        return "master" in mine[2]

    def stop_replicating(self, master: EmbeddedRedis) -> None:
        """From now on the replica of this master gets older and older."""
        self.ask(master, "ACL", "SETUSER", _REPLICATION, "off")
        self.ask(master, "CLIENT", "KILL", "USER", _REPLICATION)

    def wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise StreamerError(
                    f"the cluster is not as it should be: {self.table(self.nodes[0])}"
                )
            time.sleep(0.05)
