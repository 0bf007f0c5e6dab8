"""Files that are generated: written, or with ``--check`` compared with what they would be."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path


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
    stale = {
        path: text
        for path, text in files.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        if is_check:
            name = f"{folder}/{path.name}" if folder else path
            print(f"{name} is not current: run `python -m {program}`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(is_check and bool(stale))
