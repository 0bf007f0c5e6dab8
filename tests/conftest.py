"""Says which servers the tests ran against, and what could not run for lack of a program.

Whichever process of a parallel run found them.
"""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web_app
from hypothesis import settings

from tests.support.agreement import DOCUMENTS
from tests.support.all_cases import too_many_cases
from tests.support.components import SKIPPED
from tests.support.lanes import IS_ALL, left_to_others
from tests.support.lending import STARTS, Lender

settings.register_profile("short", deadline=None, max_examples=40)  # speed is no matter of tests
settings.register_profile("all", deadline=None, max_examples=300)
settings.load_profile("all" if IS_ALL else "short")

THRESHOLDS = (50_000, 10, 10)
"""Of the collection of garbage: with Python's own it takes a seventh of the time of tests."""
gc.set_threshold(*THRESHOLDS)
FOUND = pytest.StashKey[dict[str, str]]()
"""Which servers the tests ran against, by name."""
LENDERS = "lenders"
"""Key of the addresses of shared servers in what a process of a parallel run is given."""
SHARED = pytest.StashKey[dict[str, Lender]]()
"""The lenders of servers, in the process that controls a parallel run."""
TOO_MANY = pytest.StashKey[list[str]]()
"""Tests of more cases than a test may have: tests/test_all_cases.py fails if there are any, which
an error of the collection would not say in a parallel run."""
pytest_plugins = ["tests.support.fixtures"]
SLOW = ("system", "kafka", "server", "state", "worker", "cli")
"""Rooms whose tests wait for processes: their files come between those of the others, so that some
process of tests has work while others wait."""
SERVERS = {"kafka", "redis_url", "make_redis", "secured", "redis"}
"""Fixtures that start one."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests with the mark ``long`` out of the short lane, unless -m asks for them; files that
    wait come between the others."""
    config.stash[TOO_MANY] = too_many_cases(item.nodeid for item in items)
    for item in items:
        if SERVERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.integration)
    if IS_ALL or config.option.markexpr:
        items[:] = interleaved(items)
        return
    short = [item for item in items if not item.get_closest_marker("long")]
    kept = set(short) - left_to_others(short, DOCUMENTS)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = interleaved([item for item in items if item in kept])


def interleaved(items: list[pytest.Item]) -> list[pytest.Item]:
    """By file, those of slow rooms spread evenly over the first three quarters of all."""
    folders = [Path(__file__).parent / room for room in SLOW]
    by_file: dict[Path, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.path, []).append(item)
    slow = [path for each in folders for path in by_file if path.is_relative_to(each)]
    fast = [path for path in by_file if path not in slow]
    places = {path: 0.75 * at / len(slow) for at, path in enumerate(slow)}
    places |= {path: at / len(fast) for at, path in enumerate(fast)}
    return [item for path in sorted(by_file, key=places.__getitem__) for item in by_file[path]]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FOUND] = {}
    config.stash[SHARED] = {}


def pytest_unconfigure(config: pytest.Config) -> None:
    for lender in config.stash.get(SHARED, {}).values():
        lender.stop()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of a parallel run where servers are lent."""
    lenders = node.config.stash[SHARED]
    if not lenders:
        lenders.update({name: Lender(start) for name, start in STARTS.items()})
    node.workerinput[LENDERS] = {name: lender.address for name, lender in lenders.items()}


def pytest_collection_finish() -> None:
    """What was imported stays: without it garbage is collected in a tenth less time."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """Give memory back: aiohttp remembers a thousand applications by their handlers, and so all
    that an exporter has read; and ``streamer replay``, which tests run in this process, has
    garbage collected hardly ever."""
    gc.set_threshold(*THRESHOLDS)
    web_app._cached_build_middleware.cache_clear()


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["servers"] = session.config.stash[FOUND]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    node.config.stash[FOUND].update(getattr(node, "workeroutput", {}).get("servers", {}))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, what in terminalreporter.config.stash[FOUND].items():
        terminalreporter.write_line(f"{name}: {what}")
    why: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        text = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else "")
        why[text.removeprefix("Skipped: ")] += 1
    for text, tests in why.items():
        if text.startswith(SKIPPED):
            terminalreporter.write_line(f"{tests} tests {text}")
