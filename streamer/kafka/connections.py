"""Deadlines for the connections of an aiokafka client: one that hangs is replaced by a new one.

A connection hangs where its other end is gone without a word: a firewall has forgotten it, a host
has lost power, a broker stands still. aiokafka waits for every answer as long as the slowest
request may take, which is joining the group. Here every other request ends, with its connection,
once nothing at all has arrived for ``limits.SILENT_SECONDS``; a large answer on a slow line takes
as long as it takes.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from typing import Any

from aiokafka.client import ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.errors import RequestTimedOutError

from streamer.settings import limits

logger = logging.getLogger("streamer")
_JOIN, _SYNC = 11, 14
"""Requests that Kafka answers once all members of the group have sent theirs."""
_LOOK_SECONDS = 0.5
_MISSED_SECONDS = 5.0
"""A node that nothing was asked of for so long is not missed."""
_KEEPALIVE = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 5, "TCP_USER_TIMEOUT": 7000}
"""The operating system's own watch, which holds while a worker joins the group, too."""


class Connections:
    """The connections of one client. Other threads may call ``problems``."""

    def __init__(self, client: Any) -> None:
        self._client, self._send, self._connect = client, client.send, client._get_conn
        self._unanswered: dict[int, tuple[float, float]] = {}
        """Node → when its first question without an answer was asked, and its last."""
        client.send, client._get_conn = self.send, self.connect

    def problems(self) -> list[str]:
        """The brokers that do not answer."""
        now = time.monotonic()
        return [
            f"Kafka at {self._address(node)} has not answered for more than "
            f"{limits.UNANSWERED_SECONDS:g} s; its connections are replaced after "
            f"{limits.SILENT_SECONDS:g} s of silence"
            for node, (first, last) in sorted(self._unanswered.copy().items())
            if now - first > limits.UNANSWERED_SECONDS and now - last < _MISSED_SECONDS
        ]

    def close(self, node_id: int) -> None:
        """Close the connection for fetches, which the next one opens again."""
        connection = self._client._conns.get((node_id, ConnectionGroup.DEFAULT))
        if connection is not None:
            connection.close(reason=CloseReason.CONNECTION_BROKEN)

    def _address(self, node: int) -> str:
        broker = self._client.cluster.broker_metadata(node)
        return f"node {node}" if broker is None else f"{broker.host}:{broker.port}"

    async def connect(self, node_id: int, **options: Any) -> Any:
        """A connection to a node; None where there is none in time."""
        try:
            async with asyncio.timeout(limits.CONNECT_SECONDS):
                connection = await self._connect(node_id, **options)
        except TimeoutError:
            self._client.force_metadata_update()
            return None
        if connection is not None:
            _keep_alive(connection)
        return connection

    async def send(
        self, node_id: int, request: Any, *, group: Any = ConnectionGroup.DEFAULT
    ) -> Any:
        """The answer to a request; RequestTimedOutError, and the connection closed, where none
        comes."""
        if request.API_KEY in (_JOIN, _SYNC):
            return await self._send(node_id, request, group=group)
        now = time.monotonic()
        self._unanswered[node_id] = self._unanswered.get(node_id, (now, now))[0], now
        sending = asyncio.ensure_future(self._send(node_id, request, group=group))
        is_silent = False
        try:
            await self._wait(sending, node_id, group)
            return await sending
        except RequestTimedOutError:
            is_silent = True
            raise
        finally:
            sending.cancel()
            if not is_silent:
                self._unanswered.pop(node_id, None)

    async def _wait(self, sending: asyncio.Future[Any], node_id: int, group: Any) -> None:
        """Until an answer has come; looks are counted, for a process may stand still, too."""
        heard, silent_seconds = None, 0.0
        while True:
            done, _ = await asyncio.wait({sending}, timeout=_LOOK_SECONDS)
            if done:
                return
            connection = self._client._conns.get((node_id, group))
            if connection is None or (now := _heard(connection)) != heard:
                silent_seconds = 0.0  # it is being made, or something has arrived
                heard = None if connection is None else now
            silent_seconds += _LOOK_SECONDS
            if connection is not None and silent_seconds > limits.SILENT_SECONDS:
                logger.warning("Kafka at %s is silent: connecting again", self._address(node_id))
                connection.close(reason=CloseReason.CONNECTION_TIMEOUT)
                raise RequestTimedOutError


def _heard(connection: Any) -> tuple[float, int]:
    """Changes with everything that arrives."""
    reader = connection._reader
    return connection._last_action, 0 if reader is None else len(reader._buffer)


def _keep_alive(connection: Any) -> None:
    """Let the operating system notice where the other end is gone; some have only part of it."""
    transport = connection._writer.get_extra_info("socket") if connection._writer else None
    if transport is None or transport.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE):
        return
    transport.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            transport.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
