"""The build back end of the wheel: maturin's, which compiles the core.

It says in one line what is missing, instead of what a compiler prints. Only ``make`` fetches a Rust
toolchain (0.7 GB) by itself: it sets ``STREAMER_FETCH_RUST``.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import maturin
from maturin import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What pip installs before it builds; SystemExit where a compiler is missing."""
    _require_compilers()
    found: list[str] = maturin.get_requires_for_build_wheel(config_settings)
    return found


def prepare_metadata_for_build_wheel(*arguments: Any, **named: Any) -> str:
    """Write the metadata of the wheel; SystemExit where a compiler is missing."""
    _require_compilers()
    return str(maturin.prepare_metadata_for_build_wheel(*arguments, **named))


def build_wheel(*arguments: Any, **named: Any) -> str:
    """Compile the core; SystemExit where a compiler is missing."""
    _require_compilers()
    return str(maturin.build_wheel(*arguments, **named))


def build_editable(*arguments: Any, **named: Any) -> str:
    """Likewise, for a checkout that is worked on."""
    _require_compilers()
    return str(maturin.build_editable(*arguments, **named))


get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def _require_compilers() -> None:
    missing = []
    if not shutil.which("cargo") and not os.environ.get("STREAMER_FETCH_RUST"):
        crate = tomllib.loads((Path(__file__).parent / "Cargo.toml").read_text(encoding="utf-8"))
        missing.append(f"Rust {crate['package']['rust-version']} or newer (https://rustup.rs)")
    if not any(map(shutil.which, ("cc", "gcc", "clang", "cl"))):
        missing.append("a C compiler (Debian, Ubuntu: apt install gcc libc6-dev)")
    if missing:
        sys.exit(f"streamer: its core is built from source, which needs {' and '.join(missing)}")
