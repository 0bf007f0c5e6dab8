"""Secrets and certificates in files that settings name: what is read goes to a server, and nowhere
else. Errors name the setting and the file, never what is in it."""

from __future__ import annotations

from pathlib import Path

from streamer.errors import SettingsError


def secret_of(key: str, path: str) -> str:
    """What a file holds, without blanks around it; SettingsError where it is empty or cannot be
    read."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingsError(f"cannot read {key}: {reason}; at {path}") from None
    if not text:
        raise SettingsError(f"{key} is an empty file; at {path}")
    return text


def unusable(key: str, paths: str, error: Exception) -> SettingsError:
    """The error to raise where a certificate or its key cannot be used."""
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return SettingsError(f"cannot use {key}: {reason}; at {paths}")
