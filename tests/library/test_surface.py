"""What `import streamer` offers: few names, all typed and documented, and nothing imported before
it is used."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import streamer
from tests.support.lanes import long
from tests.support.required import require_package

ROOT = Path(__file__).parents[2]


def modules_after(statement: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_imports_nothing() -> None:
    found = modules_after("import streamer")
    assert {name for name in found if name.partition(".")[0] == "streamer"} == {"streamer"}
    third_party = {"numpy", "msgspec", "aiohttp", "redis", "pandas", "polars", "pyarrow", "rich"}
    assert not third_party & found


def test_a_table_needs_no_server() -> None:
    found = modules_after("import streamer; streamer.Table; streamer.read; streamer.plan")
    assert "streamer.library.counter" in found
    assert not {"jinja2", "faust", "pandas", "polars", "pyarrow"} & found


def test_every_public_name_is_there_and_documented() -> None:
    assert len(streamer.__all__) <= 15
    assert set(streamer.__all__) <= set(dir(streamer))
    for name in streamer.__all__:
        found = getattr(streamer, name)
        assert (inspect.getdoc(found) or "").endswith((".", ")", "]", "True")), name
        members = inspect.getmembers(found, callable) if inspect.isclass(found) else []
        for member, method in members:
            if not member.startswith("_") and not issubclass(found, Exception):
                assert inspect.getdoc(method), f"{name}.{member}"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = streamer.nothing  # type: ignore[attr-defined]


@long
def test_calls_are_typed_strictly(tmp_path: Path) -> None:
    """Pyright, strict, knows the types of what callers get."""
    require_package("basedpyright", extra="test")
    (tmp_path / "called.py").write_text(
        "import streamer\n"
        "log = streamer.read('events.ndjson', {'windows': {'lengths': ['1h']}})\n"
        "table = log.metrics('ctr', by=['variant'], window='1h')\n"
        "values = table['value']\n"
        "rows = table.to_dicts()\n"
        "advice = log.experiment('ranker', by='surface').advice\n"
        "reveal_type(values)\n"
        "reveal_type(rows)\n"
        "reveal_type(advice)\n"
        "reveal_type(log.history('ctr').window)\n"
        "reveal_type(streamer.connect().experiment())\n"
        "log.metrics(by=5)\n"
    )
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "-p", str(tmp_path), "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    cell = "str | int | float | bool | datetime | None"
    assert f'"list[{cell}]"' in done.stdout.replace("Cell", cell)
    for expected in ('"str | None"', '"str"', '"Table"'):
        assert f"is {expected}" in done.stdout
    errors = [line for line in done.stdout.splitlines() if " error: " in line]
    assert len(errors) == 1, done.stdout
    assert "called.py:12" in errors[0]
