"""What a readout is computed from, exported: equal to sums over the users of the log, and enough to
compute values, errors and adjusted lifts elsewhere."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from math import sqrt
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import streamer
from tests.library.test_adjusted_lifts import EVENTS, SETTINGS
from tests.support.commands import called
from tests.support.lanes import long
from tests.support.visitors import DAY_MS, FIRST_MS
from tests.support.workers import as_toml

Row = dict[str, Any]


def users_of(arm: str, last_day: int) -> list[tuple[int, int, int, int]]:
    """(clicks, impressions, and both before the start) of each user, from the log itself."""
    arms = {e["user_id"]: e["variant"] for e in EVENTS if e["ts"] >= FIRST_MS}
    found = defaultdict[str, Counter[str]](Counter)
    end_ms = FIRST_MS + (last_day + 1) * DAY_MS
    for event in EVENTS:
        shown_ms = event["ts"] - 1000 * (event["type"] == "click")
        when = "now" if FIRST_MS <= shown_ms < end_ms else "before" if shown_ms < FIRST_MS else ""
        found[event["user_id"]][f"{event['type']} {when}"] += 1
    names = ("click now", "impression now", "click before", "impression before")
    own = (n for user, n in sorted(found.items()) if arms[user] == arm and n["impression now"])
    return [(n[names[0]], n[names[1]], n[names[2]], n[names[3]]) for n in own]


@pytest.fixture(scope="module")
def report() -> Any:
    return streamer.read(EVENTS, SETTINGS).experiment("ranker")


@pytest.fixture(scope="module")
def rows(report: Any) -> list[Row]:
    return list(report.sums().to_dicts())


def test_sums_are_those_of_the_users(rows: list[Row]) -> None:
    days = sorted({row["day"] for row in rows})
    assert len(days) == 5
    for row in rows:
        users = users_of(row["arm"], days.index(row["day"]))
        assert row["users"] == len(users) > 100
        assert row["nonzero"] == sum(x > 0 for x, *_ in users)
        places = dict(zip("xyuv", range(4), strict=True))
        for name in (*"xyuv", "xx", "xy", "yy", "uu", "uv", "vv", "xu", "xv", "yu", "yv"):
            factors = [[user[places[letter]] for letter in name] for user in users]
            expected = sum(f[0] * (f[1] if len(f) > 1 else 1) for f in factors)
            assert row[name] == expected, (row["arm"], row["day"], name)


def test_a_readout_follows_from_them(report: Any, rows: list[Row]) -> None:
    last = max(row["day"] for row in rows)
    (metric,) = report.document["metrics"]
    of_arms = {row["arm"]: row for row in rows if row["day"] == last}
    for arm in metric["arms"]:
        n, x, y, xx, yy, xy = (
            of_arms[arm["name"]][name] for name in ("users", "x", "y", "xx", "yy", "xy")
        )
        rate = x / y
        residuals = xx - 2 * rate * xy + rate**2 * yy
        assert arm["value"] == pytest.approx(rate, rel=1e-12)
        assert arm["stderr"] == pytest.approx(sqrt(residuals * n / (n - 1)) / y, rel=1e-9)


@long
def test_the_command_writes_the_same_as_parquet(
    report: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = tmp_path / "events.ndjson", tmp_path / "streamer.toml"
    log.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    config.write_text(as_toml(SETTINGS))
    made = tmp_path / "sums.parquet"
    command = ["export-sums", "ranker", "--file", str(log), "-c", str(config), "--parquet"]
    code, out, err = called(capsys, [*command, str(made)])
    assert (code, err) == (0, "")
    assert str(made) in out
    assert pyarrow.parquet.read_table(made).to_pylist() == report.sums().to_arrow().to_pylist()
    code, _, err = called(capsys, [*command, str(tmp_path / "none" / "sums.parquet")])
    assert code == 1
    assert "name another file with --parquet" in err
