"""Are the pinned packages known to be vulnerable? A part of ``make check``.

    python -m tests.deploy.audit                    asks the public vulnerability services
    python -m tests.deploy.audit --osv-url URL      asks a service of one's own that speaks OSV

Exit 1, and a line for each, where a package has a known vulnerability. Where no service answers
(a machine without a way out) nothing is known: one line says so, and that alone fails nothing.
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
SERVICES = ("osv", "pypi")
"""In the order in which they are asked; the next one only where one does not answer."""
ACCEPTED: dict[str, str] = {}
"""Vulnerability id → why it does not concern us. Keep it empty where a newer version will do."""
ANSWER_SECONDS = 10
AUDIT_SECONDS = 300


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="audit the pinned packages")
    parser.add_argument("--osv-url", help="a vulnerability service that speaks OSV")
    parser.add_argument("--pinned", type=Path, default=PINNED, help="the file of pinned versions")
    args = parser.parse_args(argv)
    for service in ("osv",) if args.osv_url else SERVICES:
        more = ("--osv-url", args.osv_url) if args.osv_url else ()
        packages = ask(args.pinned, "--vulnerability-service", service, *more)
        answered = [package for package in packages if "vulns" in package]
        if answered:
            return report(answered, [p for p in packages if "vulns" not in p], service)
    print("audit: no vulnerability service answers here: nothing is known", file=sys.stderr)
    return 0


def ask(pinned: Path, *arguments: str) -> list[dict[str, Any]]:
    """What pip-audit says of each package; nothing where its service does not answer."""
    ignored = [argument for name in ACCEPTED for argument in ("--ignore-vuln", name)]
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(pinned), *ignored]
    command += ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    command += ["--timeout", str(ANSWER_SECONDS), *arguments]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=AUDIT_SECONDS
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return []
    except ValueError:  # a traceback: it could not connect
        if "No module named" in done.stderr:
            raise SystemExit(
                "audit: pip-audit is not installed: pip install -e '.[test]'"
            ) from None
        return []
    return found


def report(answered: list[dict[str, Any]], skipped: list[dict[str, Any]], service: str) -> int:
    """Print what was found; 1 where something was."""
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
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
