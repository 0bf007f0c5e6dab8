"""Faults are tried on Apache Kafka: the embedded broker has no transactions, for one."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _apache_kafka(apache_kafka: str) -> None:
    """Skips the tests of this folder without it."""
