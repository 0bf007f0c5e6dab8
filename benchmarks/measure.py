"""What every benchmark program reports, and the arguments they share.

A program prints one JSON object: ``{"events", "seconds", "cpu_seconds", "peak_rss_mb"}``. The clock
runs from its first event to its last, so that start-up and joining a group are left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LIMIT_SECONDS = 900
TOPICS = ("impressions", "clicks", "conversions", "sessions")
"""Kinds a backlog holds; a topic is called by its kind and the suffix."""

WATCHED = """
[[experiments]]
name = "ranker"
dimension = "variant"
control = "A"
split = { A = 1, B = 1 }
start = 2023-11-14
metrics = [
    { name = "ctr_ratio" }, { name = "ndcg_ratio@10" }, { name = "conversion_value_per_user" },
    { name = "dwell_mean_seconds" },
]
[[alerts]]
name = "ctr"
segments = ["variant", "surface"]
[[alerts]]
name = "order"
metric = "ndcg_ratio@10"
segments = ["variant"]
"""
"""Settings of an experiment over the synthetic traffic, and of alerts on it."""

TROUBLED = {
    "late_share": 0.02,
    "duplicate_share": 0.05,
    "out_of_order_share": 0.2,
    "requestless_click_share": 0.3,
    "broken_share": 0.01,
}
"""What differs from the usual traffic in a log that has every trouble."""


class Meter:
    """Time, processor time and memory of this process between ``start`` and ``report``."""

    def __init__(self) -> None:
        self.started = False
        self._start_s = self._start_cpu_s = 0.0

    def start(self) -> None:
        """Call at the first event; later calls do nothing."""
        if not self.started:
            self.started = True
            self._start_s, self._start_cpu_s = time.perf_counter(), time.process_time()

    def report(self, events: int) -> None:
        """Print the result."""
        result = {
            "events": events,
            "seconds": round(time.perf_counter() - self._start_s, 3),
            "cpu_seconds": round(time.process_time() - self._start_cpu_s, 3),
            "peak_rss_mb": round(peak_rss_mb(), 1),
        }
        print(json.dumps(result), flush=True)


def program(module: str, *arguments: str) -> dict[str, Any]:
    """Run one benchmark program; what its last line says."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS
    )
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def peak_rss_mb(pid: int | str = "self") -> float:
    """Largest resident memory of a process so far; not that of the one it was forked from."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def parser(description: str | None) -> argparse.ArgumentParser:
    """Arguments that all programs take."""
    arguments = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    arguments.add_argument("--brokers", required=True, help="Kafka's host:port")
    arguments.add_argument("--events", type=int, required=True, help="stop after this many")
    arguments.add_argument("--suffix", default="", help="of the topics' names")
    return arguments
