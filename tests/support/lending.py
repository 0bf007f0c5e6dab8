"""Servers that the processes of a parallel run share: the controlling one starts each of them when
the first test of any process asks for it, and stops it in the end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Client, Listener

from streamer.errors import StreamerError
from tests.support.servers import Found, kafka_server, redis_server

Start = Callable[[], contextlib.AbstractContextManager[Found]]
STARTS: Mapping[str, Start] = {"kafka": kafka_server, "redis": redis_server}
ASK, STOP = "ask", "stop"


class Lender:
    """Answers at ``address`` with the server that it starts when the first one asks.

    Its thread starts and stops the server: Linux ends a server with the thread that started it.
    """

    def __init__(self, start: Start) -> None:
        self._start = start
        self._listener = Listener()
        self.address = str(self._listener.address)
        self._thread = threading.Thread(target=self._lend, daemon=True)
        self._thread.start()

    def _lend(self) -> None:
        answer: Found | str | None = None
        with contextlib.ExitStack() as stack:
            while True:
                with self._listener.accept() as connection:
                    if connection.recv() == STOP:
                        return
                    answer = answer or self._started(stack)
                    connection.send(answer)

    def _started(self, stack: contextlib.ExitStack) -> Found | str:
        try:
            return stack.enter_context(self._start())
        except StreamerError as error:
            return str(error)

    def stop(self) -> None:
        """Stop the server, if it was started."""
        with Client(self.address) as connection:
            connection.send(STOP)
        self._thread.join()
        self._listener.close()


def borrowed(address: str) -> Found:
    """The server of the lender at an address; StreamerError where it could not be started."""
    with Client(address) as connection:
        connection.send(ASK)
        answer = connection.recv()
    if isinstance(answer, str):
        raise StreamerError(answer)
    assert isinstance(answer, Found)
    return answer


@contextlib.contextmanager
def shared(name: str, lenders: Mapping[str, str]) -> Iterator[Found]:
    """A server by name: that of the lender at the address, or one of this process's own."""
    if name in lenders:
        yield borrowed(lenders[name])
        return
    with STARTS[name]() as server:
        yield server
