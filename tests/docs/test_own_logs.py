"""Pages that go from a log of one's own making to page, alert and test print what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import blocks
from tests.support.lanes import long
from tests.system.test_readme import fetched, running, said_by


def printed(command: str, folder: Path) -> str:
    """What lines of a shell print, without spaces at the ends of lines."""
    lines = command.replace("python ", f"{sys.executable} ")
    lines = lines.replace("streamer ", f"{sys.executable} -m streamer ")
    done = subprocess.run(
        ["bash", "-c", f"set -e -o pipefail\n{lines}"],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines() if line.strip())


@long
@pytest.mark.parametrize("name", ["search", "ads"])
def test_a_page_prints_what_it_says(name: str, tmp_path: Path) -> None:
    page = f"docs/how-to/metrics-for-{name}.md"
    for language, suffix in (("python", "py"), ("toml", "toml")):
        (text,) = blocks(language, page)
        (tmp_path / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    *commands, view = blocks("sh", page)
    assert [printed(each, tmp_path) for each in commands] == blocks("text", page)
    with running(tmp_path / "view.txt", *view.split()[1:], "--port=0"):
        url = said_by(tmp_path / "view.txt", r"(http://[\d.:]+)/")[1]
        (alert,) = json.loads(fetched(f"{url}/api/alerts"))["firing"]
    assert f"*{alert['headline']}*" in Path(page).read_text(encoding="utf-8")
