"""`streamer plan`: from all users of files, and from the control of an experiment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from streamer.cli.main import main
from tests.support.visitors import FIRST_MS, experiment, written
from tests.support.workers import as_toml

EXPERIMENT = experiment()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Paths of a log and of settings."""
    folder = tmp_path_factory.mktemp("plan")
    return written(folder, 250, EXPERIMENT)


def said(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> tuple[int, str, str]:
    code = main(["plan", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_all_users_of_files(site: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever variant they see: each counts once."""
    log, _ = site
    events = [json.loads(line) for line in Path(log).read_text().splitlines()]
    shown = {e["user_id"] for e in events if e["type"] == "impression"}
    code, out, err = said(capsys, ["clicks_per_user", "--lift", "5%", "--file", log])
    assert (code, err) == (0, "")
    assert "clicks_per_user of all users of the files, 2025-06-01 to 2025-06-05: " in out
    assert f"{len(shown)} users" in out
    assert "A lift of 5.00% is found with a probability of 80% (alpha 0.05, 2 arms of" in out
    assert "For looks at any time set expected_users = " in out
    _, out, _ = said(capsys, ["clicks_per_user", "--lift", "0.05", "--file", log, "--json"])
    plan = json.loads(out)
    exposed: set[str] = set()
    clicks = 0
    for event in sorted(events, key=lambda e: e["ts"]):
        if event["type"] == "impression":
            exposed.add(event["user_id"])
        elif event["type"] == "click" and event.get("feedback", "click") == "click":
            clicks += event["user_id"] in exposed
    assert plan["users"] == len(shown)
    assert plan["value"] == pytest.approx(clicks / len(shown), rel=1e-12)
    assert plan["needed"]["anytime"]["users"] > plan["needed"]["fixed"]["users"] > 0


def test_sources_have_all_users_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, config = tmp_path / "shop.ndjson", tmp_path / "streamer.toml"
    day = 86_400_000
    rows = [
        {"e": "view", "u": f"u{d}-{i}", "t": FIRST_MS + d * day + i, "sku": "s"}
        for d in range(4)
        for i in range(300)
    ]
    rows += [r | {"e": "buy", "t": r["t"] + 60_000} for r in rows[::3]]  # type: ignore[operator]
    rows.sort(key=lambda r: r["t"])  # type: ignore[arg-type, return-value]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {
        "topics": ["shop"],
        "kind": {"field": "e", "impression": ["view"], "click": ["buy"]},
        "fields": {"ts": "t", "user_id": "u", "item_id": "sku"},
    }
    config.write_text(as_toml({"sources": [source]}))
    words = ["clicks_per_user", "--lift", "20%", "-c", str(config), "--file", str(log)]
    code, out, err = said(capsys, words)
    assert (code, err) == (0, "")
    assert "2025-06-02 to 2025-06-05: 0.33333, 1,200 users" in out
    code, out, _ = said(capsys, [*words, "--json"])
    plan = json.loads(out)
    assert plan["needed"]["fixed"]["users"] > 1200
    assert plan["needed"]["fixed"]["days"] > 3


def test_the_control_of_an_experiment(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    words = ["ctr_ratio", "--lift", "5%", "--experiment", "ranker", "-c", config, "--file", log]
    code, out, _ = said(capsys, [*words, "--arms", "3", "--power", "90%", "--alpha", "0.01"])
    assert code == 0
    assert "ctr_ratio of the users of A, the control of ranker, 2025-06-02 to 2025-06-05" in out
    assert "with a probability of 90% (alpha 0.01, 3 arms of equal size)" in out


def test_what_cannot_be_planned(
    site: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    of = ["-c", config, "--file", log]
    (tmp_path / "odd").write_text("{}\n")
    for words, code, why in (
        (["ctr_ratio", "--lift", "5%"], 2, "plan needs users to learn from"),
        (["ctr_ratio", "--lift", "5%", "--experiment", "no", *of], 2, "no experiment 'no'"),
        (["mrr", "--lift", "5%", "--experiment", "ranker", *of], 2, "it has ctr_ratio"),
        (["nothing", "--lift", "5%", *of], 2, "metric 'nothing': none of ctr_ratio"),
        (["ctr_ratio", "--lift", "120%", *of], 2, "'120%' is not a share like 0.02 or 2%"),
        (["ctr_ratio", "--lift", "much", *of], 2, "--lift"),
        (["ctr_ratio", "--lift", "5%", "--arms", "1", *of], 2, "--arms 1: 2 to 16"),
        (["ctr_ratio", "--lift", "5%", "--power", "0.3", *of], 2, "--power 0.3: at least 0.5"),
        (["classifier_recall_ratio@0.5", "--lift", "5%", *of], 1, "no plan by class"),
        (["ctr_ratio", "--lift", "5%", "--file", str(tmp_path / "odd")], 1, "nothing is known"),
    ):
        found, _, err = said(capsys, words)
        assert (found, why in err) == (code, True), (words, err)
