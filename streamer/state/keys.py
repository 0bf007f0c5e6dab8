"""Every key in Redis. None has a time to live: state leaves by the log's clock, in commits.

All keys of one partition carry the hash tag ``{number}``, so that one script may touch them all on
Redis Cluster too.

| key | type | holds |
| --- | --- | --- |
| ``prefix:partitions`` | string | number of partitions of every topic |
| ``prefix:hash_key`` | string | the secret key under which ids are hashed, 32 hexadecimal digits |
| ``prefix:{p}:claim`` | string | the random id of the worker that may write partition p |
| ``prefix:{p}:state`` | hash | ``position``, ``manifest``, ``seen_ms`` (Redis time of the commit) |
| ``prefix:{p}:blobs`` | set | names of all blobs written, orphans too |
| ``prefix:{p}:b:name`` | string | one blob: immutable, named by claim and number |
| ``prefix:keyed`` | hash | log → 1: its topic is keyed by user, 0: it was not once |
| ``prefix:workers`` | hash | worker → its last report (no state), and when |
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Keys:
    """The key names under one prefix."""

    prefix: str

    @property
    def partitions(self) -> str:
        return f"{self.prefix}:partitions"

    @property
    def hash_key(self) -> str:
        return f"{self.prefix}:hash_key"

    @property
    def keyed(self) -> str:
        return f"{self.prefix}:keyed"

    @property
    def workers(self) -> str:
        return f"{self.prefix}:workers"

    def claim(self, partition: int) -> str:
        return f"{self.prefix}:{{{partition}}}:claim"

    def state(self, partition: int) -> str:
        return f"{self.prefix}:{{{partition}}}:state"

    def blobs(self, partition: int) -> str:
        return f"{self.prefix}:{{{partition}}}:blobs"

    def blob(self, partition: int, name: str) -> str:
        return f"{self.prefix}:{{{partition}}}:b:{name}"
