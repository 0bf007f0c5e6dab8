"""What the Kafka client logs, seldom: without a broker it repeats itself many times a second."""

from __future__ import annotations

import logging
import time

AGAIN_SECONDS = 10.0
_LOGGERS = (
    *("aiokafka", "aiokafka.cluster", "aiokafka.conn", "aiokafka.producer.sender"),
    *("aiokafka.consumer.fetcher", "aiokafka.consumer.group_coordinator"),
)


class Seldom(logging.Filter):
    """Lets a message through whose like (same place in the code) was not said lately."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        place, now = (record.pathname, record.lineno), time.monotonic()
        if now - self._said.get(place, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return False
        self._said[place] = now
        return True


def calm_kafka() -> None:
    """For the loggers of the Kafka client in this process."""
    seldom = Seldom()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(seldom)
