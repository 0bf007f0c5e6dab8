"""A demo without its worker is no demo: it ends at once, and says why."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.support.lanes import long, shortened

DEMO = """
import sys
from streamer.cli import demo, main
demo.worker_command = lambda: [sys.executable, "-c", {script!r}]
sys.exit(main.main(["demo", "--seconds", "60", "--port", "0"]))
"""


@pytest.mark.parametrize(
    ("script", "message"),
    shortened(
        [
            ("import sys; sys.exit('streamer: no room')", "exit code 1: no room"),
            ("import os; os.kill(os.getpid(), 9)", "exit code -9: it printed nothing"),
        ]
    ),
    ids=["it cannot start", "it is killed"],
)
@long
def test_a_demo_whose_worker_ends_fails_with_its_message(script: str, message: str) -> None:
    started = time.monotonic()
    command = [sys.executable, "-c", DEMO.format(script=script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert time.monotonic() - started < 30
    assert f"streamer: the worker of the demo ended with {message}" in done.stderr
    assert "Traceback" not in done.stderr
