"""Programs that the tests run, and how to get them.

`python3 tests/support/components.py` installs them. It goes through apt where it may (as root, or
by `sudo -n`) and says in one line each what it does. Where it may not, tests whose program is
missing are skipped by name, and the last lines of a run list them; with `CI=true` such a skip is a
failure. Only the standard library is used here: it runs before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

SECONDS = 1200.0
"""Longest time that apt may take."""


def where(program: str) -> str | None:
    """The path of a program: on PATH, or beside the Python of the tests."""
    beside = os.path.dirname(sys.executable)
    return shutil.which(program) or shutil.which(program, path=beside)


@dataclass(frozen=True)
class Component:
    """Something that tests need. Of each tuple of ``programs`` one has to be there: distributions
    differ in names. ``packages``: Debian's; ``module``: what Go installs, where Debian has none."""

    programs: tuple[tuple[str, ...], ...]
    packages: tuple[str, ...] = ()
    module: str = ""

    @property
    def is_there(self) -> bool:
        return all(any(map(where, names)) for names in self.programs)

    @property
    def way(self) -> str:
        """How to get it."""
        words = ("go", self.module) if self.module else ("apt", *self.packages)
        return f"{words[0]} install {' '.join(words[1:])}"


COMPONENTS = {
    "Apache Kafka": Component((("java",), ("mvn",)), ("default-jre-headless", "maven")),
    "Redis": Component((("redis-server",),), ("redis-server",)),
    "Prometheus": Component((("prometheus",), ("promtool",)), ("prometheus",)),
    "Alertmanager": Component(
        (("prometheus-alertmanager", "alertmanager"), ("amtool",)), ("prometheus-alertmanager",)
    ),
    "Chromium": Component((("chromium",), ("chromedriver",)), ("chromium", "chromium-driver")),
    "Valgrind": Component((("valgrind",),), ("valgrind",)),
    "iproute2": Component((("ip",),), ("iproute2",)),
    "wget": Component((("wget",),), ("wget",)),
    "systemd": Component((("systemd-analyze",),), ("systemd",)),
    "Helm": Component((("helm",),), module="helm.sh/helm/v3/cmd/helm@v3.22.0"),
}
SKIPPED = "not run without "
"""How the reason of a skip begins."""


def reason(name: str) -> str:
    """Why tests that need a component are skipped where it is missing.

    >>> reason("Redis")
    'not run without Redis: apt install redis-server (or the like of your system)'
    """
    return f"{SKIPPED}{name}: {COMPONENTS[name].way} (or the like of your system)"


def _apt() -> list[str] | None:
    """What to put before the arguments of apt-get; None where it may not be used."""
    apt = shutil.which("apt-get")
    if apt is None:
        return None
    if os.geteuid() == 0:
        return [apt]
    sudo = shutil.which("sudo")
    if (
        sudo is None
        or subprocess.run([sudo, "-n", "true"], check=False, capture_output=True).returncode
    ):
        return None
    return [sudo, "-n", apt]


def _run(command: Sequence[str]) -> str | None:
    """Why a command failed; None where it did not."""
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            env=env,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
    return lines[-1] if done.returncode else None


def _install_by_go(name: str, component: Component) -> None:
    """Compile it beside the Python of the tests, where there is Go."""
    go = shutil.which("go")
    if go is None:
        print(f"tests: no {name}, and no Go to compile it: {component.way}")
        return
    print(f"tests: compiling {name} (a few minutes, once): {component.way}", flush=True)
    os.environ["GOBIN"] = os.path.dirname(sys.executable)
    problem = _run([go, "install", component.module])
    if problem is not None:
        print(f"tests: {name} could not be compiled: {problem}", flush=True)


def install() -> None:
    """Install what is missing, where that is allowed."""
    missing = {name: c for name, c in COMPONENTS.items() if not c.is_there}
    for name in [name for name, component in missing.items() if component.module]:
        _install_by_go(name, missing.pop(name))
    if not missing:
        return
    apt = _apt()
    if apt is None:
        for name, component in missing.items():
            print(f"tests: no {name}, and apt may not be used here: {component.way}")
        return
    print("tests: reading the lists of packages (apt-get update)", flush=True)
    problem = _run([*apt, "update", "-qq"])
    for name, component in missing.items():
        packages = list(component.packages)
        print(f"tests: installing {name}: apt-get install {' '.join(packages)}", flush=True)
        problem = _run([*apt, "install", "-y", "-qq", "--no-install-recommends", *packages])
        if problem is not None:
            print(f"tests: {name} could not be installed: {problem}", flush=True)


if __name__ == "__main__":
    install()
    sys.exit(0)
