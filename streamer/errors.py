"""The exceptions of streamer.

StreamerError                 exit 1: something outside went wrong
├── UsageError                exit 2: a command, or a call from Python, asks for what there is not
├── SettingsError             exit 2: streamer.toml or the environment
├── SourceError               an input file cannot be read
├── BrokerError               Kafka is unreachable, refuses us, or its topics do not fit
├── RegistryError             a schema registry is unreachable, refuses us, or lacks a schema
├── StoreError                Redis is unreachable, refuses us, or may evict
│   └── StoreAccessError      Redis refuses us: waiting does not help
├── CodecError                stored bytes are not what this version writes
│   └── DamagedError          they were, and are damaged or gone: their log has to be read again
├── SumOverflowError          a sum would pass 2**62
└── CoreError                 the core failed: a bug; what it holds is not to be used any more

Each message is one line: what, the value, the rule, where.
"""

from __future__ import annotations

from collections.abc import Sequence


class StreamerError(Exception):
    """Base of every error that streamer raises on purpose."""

    exit_code = 1


class UsageError(StreamerError):
    """A command line, or a call from Python, asks for what there is not."""

    exit_code = 2


class SettingsError(StreamerError):
    """A setting is unknown, of the wrong type, or contradicts another one."""

    exit_code = 2


class ProposalError(SettingsError):
    """No settings can be proposed that read the records of some topics."""

    exit_code = 1

    def __init__(self, message: str, topics: Sequence[str], *, is_log: bool = True) -> None:
        """``is_log``: whether the records are events, so that settings could read them."""
        super().__init__(message)
        self.topics, self.is_log = tuple(topics), is_log
        self.toml = ""
        """What is known already, as settings to be completed by hand."""


class SourceError(StreamerError):
    """An input file cannot be read."""


class BrokerError(StreamerError):
    """Kafka is unreachable, refuses us, or its topics do not fit together."""


class RegistryError(StreamerError):
    """A schema registry is unreachable, refuses us, or does not have a schema."""


class SchemaMissingError(RegistryError):
    """The registry answers that it does not have a schema."""


class StoreError(StreamerError):
    """Redis is unreachable, refuses us, or is not fit to keep state."""


class StoreAccessError(StoreError):
    """Redis refuses our name, password or command, or we refuse its certificate."""


class CodecError(StreamerError):
    """Stored bytes are not what this version writes."""


class DamagedError(CodecError):
    """Stored bytes do not fit their checksum, or are gone."""


class SumOverflowError(StreamerError):
    """An integer sum would pass 2**62."""


class CoreError(StreamerError):
    """The core failed, which is a bug; what it holds is not to be used any more."""
