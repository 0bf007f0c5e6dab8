"""Commands of streamer, run in this process."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streamer.cli.main import main


def called(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> tuple[int, str, str]:
    """The exit code of a command, and what it printed to stdout and stderr."""
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err
