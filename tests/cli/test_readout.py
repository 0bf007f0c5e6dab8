"""Experiments from files: the readout, some days of it, and what `replay` says of them."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from tests.support import assigned
from tests.support.commands import called
from tests.support.visitors import FIRST, experiment, written
from tests.support.workers import as_toml

EXPERIMENT = experiment(
    covariate_days=1,
    metrics=[
        {"name": "ctr_ratio"},
        {"name": "ndcg_ratio@10", "margin": 0.5},
        {"name": "clicks_per_user"},
    ],
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Paths of a log and of settings."""
    folder = tmp_path_factory.mktemp("experiment")
    later = {**EXPERIMENT, "name": "later", "start": FIRST + datetime.timedelta(days=40)}
    return written(folder, 250, EXPERIMENT, later)


def readout(site: tuple[str, str], *words: str) -> list[str]:
    log, config = site
    return ["readout", *words, "-c", config, "--file", log]


def test_files_have_a_readout(site: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = called(capsys, readout(site, "ranker"))
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert words.startswith("ranker: keep running. ctr_ratio: ")
    assert " ranker: B against A (variant), 2025-06-02 to 2025-06-05, " in words
    assert "ctr_ratio (primary): higher is better" in words
    assert "ndcg_ratio@10 (guardrail): higher is better, may fall by up to 50%" in words
    assert "clicks_per_user (secondary): higher is better" in words
    code, out, _ = called(capsys, readout(site, "ranker", "--json"))
    document = json.loads(out)
    assert words.startswith(f"ranker: {document['recommendation']['sentence']}. ")
    assert len(document["history"]) == 4
    assert sum(document["users"].values()) > 200


def test_some_days_of_files(site: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, readout(site, "ranker", "--from", "2025-06-04", "--json"))
    some = json.loads(out)
    assert code == 0
    assert (some["first"], some["recommendation"]) == ("2025-06-04", None)
    _, out, _ = called(capsys, readout(site, "ranker", "--json"))
    shown = [m["arms"][0]["value"] for d in (some, json.loads(out)) for m in d["metrics"]]
    assert shown[0] != shown[3]
    code, _, err = called(capsys, readout(site, "later", "--to", "2025-07-13"))
    assert (code, "starts only on 2025-07-12" in err) == (2, True)


def test_what_files_lack(
    site: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = called(capsys, readout(site, "none"))
    assert code == 2
    assert err == "streamer: no experiment 'none'; the settings have ranker, later\n"
    code, _, err = called(capsys, readout((str(tmp_path / "no"), site[1]), "ranker"))
    assert (code, "No such file" in err) == (1, True)
    (tmp_path / "odd").write_text("{}\n" * 3)
    code, out, err = called(capsys, readout((str(tmp_path / "odd"), site[1]), "ranker"))
    assert (code, "none of 3 lines were accepted" in err) == (1, True)
    assert "starts on 2025-06-02" in out


def test_replay_ends_with_the_readouts(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    _, alone, _ = called(capsys, readout(site, "ranker"))
    code, out, _ = called(capsys, ["replay", log, "-c", config])
    assert code == 0
    assert alone in out
    assert out.endswith("\nlater: B against A (variant), starts on 2025-07-12\n")
    code, out, _ = called(capsys, ["replay", log, "-c", config, "--json"])
    assert (code, "streamer_experiment_value" in out, "Recommend" in out) == (0, True, False)


def test_an_experiment_is_explored_by_another_dimension(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys, readout(site, "ranker", "--by", "surface"))
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert words.startswith(
        "ranker: By surface, for ideas and not for decisions: 3 values share alpha"
    )
    assert "Recommendation" not in words
    assert "holds at level 98.3%" in words  # 1 - 0.05 / 3
    assert words.index("surface = home") < words.index("surface = product")
    code, out, _ = called(capsys, readout(site, "ranker", "--by", "surface", "--json"))
    apart = json.loads(out)
    _, out, _ = called(capsys, readout(site, "ranker", "--json"))
    whole = json.loads(out)
    assert apart["exploration"]
    (test,) = apart["heterogeneity"]
    assert test["sentence"].startswith("The absolute lift of ctr_ratio does not differ by surface")
    assert test["sentence"] in words
    assert list(test["values"]) == ["home", "search", "product"]
    assert list(apart["values"]) == ["home", "search", "product"]
    for arm, users in whole["users"].items():
        assert users == sum(its["users"][arm] for its in apart["values"].values())
    assert all(its["recommendation"] is None for its in apart["values"].values())


def test_without_a_name_all_are_listed(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys, readout(site))
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert words.startswith("2 experiments: 1 running, 1 not-started ")
    assert words.endswith("later starts on 2025-07-12")
    assert "ranker: keep running" in words
    code, out, _ = called(capsys, readout(site, "--only", "not-started", "--json"))
    assert [each["name"] for each in json.loads(out)["experiments"]] == ["later"]
    for wrong in (["--only", "shipped"], ["--from", "2025-06-03"], ["--across", "ranker"]):
        code, _, err = called(capsys, readout(site, *wrong))
        assert (code, err.count("\n")) == (2, 1)


def test_pairs_and_interactions_of_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def arms(user: int) -> dict[str, str]:
        arm = "old" if user % 3 else "new"
        return {"a": arm, "b": arm, "c": "old" if user % 2 else "new"}

    log, config = tmp_path / "log.ndjson", tmp_path / "streamer.toml"
    log.write_text("".join(json.dumps(e) + "\n" for e in assigned.events(300, arms)))
    own = [assigned.experiment(name, arm="experiments") for name in "abc"]
    config.write_text(as_toml({"experiments": own, "dimensions": []}))
    files = (str(log), str(config))
    code, out, _ = called(capsys, readout(files, "--pairs"))
    assert code == 0
    assert " ".join(out.split()).startswith(
        "3 pairs of experiments share users; 1 problem. The splits of a and b depend on each other"
    )
    code, out, _ = called(capsys, readout(files, "a", "--across", "c"))
    assert (code, out.startswith("new: ")) == (0, True)
    code, out, _ = called(capsys, readout(files, "a", "--across", "c", "--json"))
    assert json.loads(out)["across"] == "c"
    code, _, err = called(capsys, readout(files, "a", "--across", "a"))
    assert (code, "name another experiment" in err) == (2, True)
    code, _, err = called(capsys, readout(files, "a", "--across", "d"))
    assert (code, "no experiment 'd'; there are a, b, c" in err) == (2, True)


def test_an_experiment_of_stores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, config = tmp_path / "log.ndjson", tmp_path / "streamer.toml"
    made = [
        {**event, "store": f"s{int(event['user_id'][1:]) % 20}"}
        for event in assigned.events(300, lambda user: {"prices": ("old", "new")[user % 2]}, 3)
    ]
    log.write_text("".join(json.dumps(event) + "\n" for event in made))
    own = assigned.experiment("prices", arm="experiments", unit="store")
    config.write_text(as_toml({"experiments": [own], "dimensions": []}))
    files = (str(log), str(config))
    code, out, _ = called(capsys, readout(files, "prices", "--json"))
    document = json.loads(out)
    assert (code, document["unit"]) == (0, "a value of store")
    assert document["users"] == {"old": 10, "new": 10}
    assert document["recommendation"]["action"] == "keep running"
    code, out, _ = called(capsys, readout(files, "prices"))
    assert "The unit is a value of store: 'user' means this here" in " ".join(out.split())
    code, _, err = called(capsys, readout(files, "prices", "--from", "2026-11-03"))
    assert code == 2
    assert err == (
        "streamer: --from and --to: it is made of rows of users, and the unit of experiment "
        "'prices' is a value of store\n"
    )


def test_what_an_experiment_cannot_be_explored_by(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong in ("variant", "shoes"):
        code, _, err = called(capsys, readout(site, "ranker", "--by", wrong))
        assert code == 2
        assert f"explore = ['{wrong}']: dimensions besides 'variant'" in err
    code, _, err = called(capsys, ["readout", "ranker", "--by", "surface", "-c", site[1]])
    assert code == 2
    assert "add 'surface' to it in [[experiments]]" in err
