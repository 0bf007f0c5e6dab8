"""``streamer dashboards`` and ``streamer rules`` write files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.cli.main import main
from tests.support.compose import load

CONFIG = '[[dimensions]]\nname = "country"\n[[alerts]]\nname = "ctr"\n'


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("streamer.toml").write_text(CONFIG)


def failed(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """The one line of an error."""
    assert main(words) == code
    (line,) = capsys.readouterr().err.splitlines()
    return line


# Files --------------------------------------------------------------------------------------------


def test_dashboards_are_written_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dashboards", "boards", "-c", "streamer.toml"]
    assert main(words) == 0
    assert capsys.readouterr().out == "boards: 5 files, 5 written\n"
    names = sorted(str(p.relative_to("boards")) for p in Path("boards").rglob("*") if p.is_file())
    assert names == [
        *("dashboards/overview.json", "dashboards/processor.json", "dashboards/ranking.json"),
        *("provisioning/dashboards/streamer.yml", "provisioning/datasources/prometheus.yml"),
    ]
    page = json.loads(Path("boards/dashboards/overview.json").read_text())
    assert "country" in json.dumps(page["templating"])
    (provider,) = load(Path("boards/provisioning/dashboards/streamer.yml"))["providers"]
    assert provider["options"]["path"] == str(Path("boards/dashboards").absolute())
    assert main([*words, "--check"]) == 0
    Path("boards/dashboards/ranking.json").write_text("{}")
    line = failed(capsys, 1, *words, "--check")
    assert line.startswith("streamer: boards/dashboards/ranking.json is not current")
    assert main(words) == 0
    assert capsys.readouterr().out == "boards: 5 files, 1 written\n"


def test_addresses_can_be_given() -> None:
    places = ["--page", "https://numbers/", "--prometheus", "http://prom:9090", "--path", "/etc/x"]
    assert main(["dashboards", "boards", *places]) == 0
    page = json.loads(Path("boards/dashboards/overview.json").read_text())
    assert "https://numbers" in [link["url"] for link in page["links"]]
    (source,) = load(Path("boards/provisioning/datasources/prometheus.yml"))["datasources"]
    assert (source["url"], source["uid"]) == ("http://prom:9090", "prometheus")
    (provider,) = load(Path("boards/provisioning/dashboards/streamer.yml"))["providers"]
    assert provider["options"]["path"] == "/etc/x"


def test_rules_are_written_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    places = ["--runbooks", "https://wiki/streamer", "--page", "https://numbers"]
    words = ["rules", "prom", "-c", "streamer.toml", *places]
    assert main(words) == 0
    assert capsys.readouterr().out == "prom: 3 files, 3 written\n"
    for name in ("streamer", "metrics"):
        for group in load(Path(f"prom/rules/{name}.yml"))["groups"]:
            for rule in (rule for rule in group["rules"] if "alert" in rule):
                url = rule["annotations"]["runbook_url"]
                assert url == f"https://wiki/streamer#{rule['alert'].lower()}"
    (group,) = load(Path("prom/rules/metrics.yml"))["groups"]
    assert group["rules"][0]["annotations"]["dashboard"] == "https://numbers/?alert=ctr#explain"
    routes = load(Path("prom/alertmanager.example.yml"))
    assert ["system", "alert", "country"] in [rule["equal"] for rule in routes["inhibit_rules"]]
    assert main([*words, "--check"]) == 0
    assert main([*words[:-1], "https://other", "--check"]) == 1
    assert capsys.readouterr().err.count("is not current") == 2


def test_runbooks_are_those_of_the_exporter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "prom", "-c", "streamer.toml", "--page", "https://numbers/"]) == 0
    assert capsys.readouterr().err == ""
    (group,) = load(Path("prom/rules/metrics.yml"))["groups"]
    url = group["rules"][0]["annotations"]["runbook_url"]
    assert url == "https://numbers/runbooks#streamermetricregression"


def test_links_that_lead_nowhere_from_another_machine_are_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["rules", "prom", "-c", "streamer.toml"]
    assert main(words) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "http://localhost:8000" in line
    assert "give --page" in line
    assert main([*words, "--check"]) == 0
    assert capsys.readouterr().err == ""
    places = ["--page", "https://numbers", "--runbooks", "http://127.0.0.1/x"]
    assert main([*words, *places]) == 0
    assert "give --runbooks" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    assert "cannot write: " in failed(capsys, 1, "rules", "file")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dashboards"], "DIR"),
        (["dashboards", "x", "--prometheus", "ftp://x"], "--prometheus is no"),
        (["dashboards", "x", "--page", "numbers"], "--page is no URL"),
        (["rules", "x", "--runbooks", "docs/operations.md"], "--runbooks is no URL"),
        (["rules"], "DIR"),
    ],
)
def test_arguments_that_do_not_fit(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert said in failed(capsys, 2, *words)
