"""Files that are generated: written, or with ``--check`` compared with what they would be."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from streamer.errors import StreamerError


def parser(program: str, what: str) -> argparse.ArgumentParser:
    """The arguments of ``python -m program``; ``what``: its docstring."""
    found = argparse.ArgumentParser(
        prog=f"python -m {program}",
        description=textwrap.dedent(what),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("--check", action="store_true", help="write nothing")
    return found


def keep(files: Mapping[Path, str], program: str, is_check: bool, folder: str = "") -> int:
    """Write what is not current; or name it, and return 1. ``folder``: what theirs is called."""
    stale = _stale(files)
    for path, text in stale.items():
        if is_check:
            name = f"{folder}/{path.name}" if folder else path
            print(f"{name} is not current: run `python -m {program}`", file=sys.stderr)
        else:
            _write(path, text)
    return int(is_check and bool(stale))


def keep_below(folder: Path, files: Mapping[str, str], *, is_check: bool) -> int:
    """The same for the files of a user's folder, whose names are paths below it."""
    stale = _stale({folder / name: content for name, content in files.items()})
    if is_check:
        for path in stale:
            print(f"streamer: {path} is not current: run this without --check", file=sys.stderr)
        return int(bool(stale))
    for path, content in stale.items():
        try:
            _write(path, content)
        except OSError as error:
            raise StreamerError(f"cannot write: {error.strerror}; at {path}") from error
    print(f"{folder}: {len(files)} files, {len(stale)} written")
    return 0


def _stale(files: Mapping[Path, str]) -> dict[Path, str]:
    return {path: text for path, text in files.items() if _read(path) != text}


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
