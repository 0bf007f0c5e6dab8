"""``streamer dashboards`` and ``streamer rules``: files, and uploads to a test server (see
tests/support/grafana.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.cli.main import main
from streamer.testing.embedded import HOST, free_port
from tests.support.compose import load
from tests.support.grafana import TOKEN, VIEWER, FakeGrafana

CONFIG = '[[dimensions]]\nname = "country"\n[[alerts]]\nname = "ctr"\n'


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("streamer.toml").write_text(CONFIG)
    Path("token").write_text(TOKEN + "\n")


@pytest.fixture
def grafana() -> Iterator[FakeGrafana]:
    with FakeGrafana().listening() as found:
        yield found


def failed(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """The one line of an error."""
    assert main(words) == code
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    for token in (TOKEN, VIEWER):
        assert token not in out + err
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
    assert ["job", "alert", "country"] in [rule["equal"] for rule in routes["inhibit_rules"]]
    assert main([*words, "--check"]) == 0
    assert "is not current" in failed(capsys, 1, *words[:-1], "https://other", "--check")


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
        (["dashboards"], "give a folder (DIR), or --grafana URL"),
        (["dashboards", "--check"], "give a folder"),
        (["dashboards", "x", "--grafana", "http://localhost"], "belong together"),
        (["dashboards", "x", "--token-file", "token"], "belong together"),
        (["dashboards", "x", "--grafana", "ftp://x", "--token-file", "token"], "--grafana is no"),
        (["dashboards", "x", "--page", "numbers"], "--page is no URL"),
        (["dashboards", "x", "--grafana", "http://u:p@x", "--token-file", "t"], "a password"),
        (
            ["dashboards", "x", "--check", "--grafana", "http://x", "--token-file", "token"],
            "give one of them",
        ),
        (["rules", "x", "--runbooks", "docs/operations.md"], "--runbooks is no URL"),
        (["rules"], "DIR"),
    ],
)
def test_arguments_that_do_not_fit(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert said in failed(capsys, 2, *words)


# Uploads ------------------------------------------------------------------------------------------


def upload(grafana: FakeGrafana | str, *more: str, token: str = "token") -> list[str]:
    url = grafana if isinstance(grafana, str) else grafana.url
    return ["dashboards", "-c", "streamer.toml", "--grafana", url, "--token-file", token, *more]


def test_dashboards_are_uploaded_and_replaced(
    grafana: FakeGrafana, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(upload(grafana)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"overview: {grafana.url}/d/streamer-overview/streamer-overview"
    ((uid, title),) = grafana.folders.items()
    assert title == "streamer"
    assert list(grafana.dashboards) == [
        f"streamer-{n}" for n in ("overview", "ranking", "processor")
    ]
    for body in grafana.dashboards.values():
        assert (body["overwrite"], body["folderUid"], body["dashboard"]["id"]) == (
            True, uid, None,
        )  # fmt: skip
    assert main(upload(grafana)) == 0
    assert len([1 for call in grafana.asked if call == ("POST", "/api/folders")]) == 1


def test_the_folder_can_be_chosen(grafana: FakeGrafana) -> None:
    grafana.folders["mine"] = "Ranking team"
    assert main(upload(grafana, "--folder", "Ranking team")) == 0
    assert grafana.folders == {"mine": "Ranking team"}
    assert {body["folderUid"] for body in grafana.dashboards.values()} == {"mine"}


def test_a_token_that_grafana_does_not_know(
    grafana: FakeGrafana, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("token").write_text("glsa_old")
    line = failed(capsys, 1, *upload(grafana))
    assert line.startswith("streamer: Grafana answers 401 Unauthorized for the folder 'streamer'")
    assert "(Invalid API key): the token is not valid" in line
    assert "glsa_old" not in line


def test_a_token_that_may_not_edit(
    grafana: FakeGrafana, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("token").write_text(VIEWER)
    assert "needs the role Editor" in failed(capsys, 1, *upload(grafana))


def test_an_address_without_the_api(
    grafana: FakeGrafana, capsys: pytest.CaptureFixture[str]
) -> None:
    line = failed(capsys, 1, *upload(f"{grafana.url}/elsewhere"))
    assert "Grafana answers 404 Not Found" in line
    assert "is this the address of Grafana" in line


def test_another_dashboard_with_the_name(
    grafana: FakeGrafana, capsys: pytest.CaptureFixture[str]
) -> None:
    grafana.dashboards["mine"] = {"dashboard": {"title": "streamer: ranking"}}
    line = failed(capsys, 1, *upload(grafana))
    assert "Grafana answers 412" in line
    assert "the dashboard streamer-ranking" in line
    assert "has its name" in line


def test_a_redirect_gets_no_token(grafana: FakeGrafana, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeGrafana().listening() as other:
        grafana.moved_to = other.url
        assert "give the address it redirects to" in failed(capsys, 1, *upload(grafana))
        assert other.asked == []


def test_no_proxy_sees_the_token_for_this_machine(
    grafana: FakeGrafana, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://{HOST}:{free_port()}")
    monkeypatch.setenv("no_proxy", "")
    assert main(upload(grafana)) == 0
    assert len(grafana.dashboards) == 3


def test_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    place = f"{HOST}:{free_port()}"
    line = failed(capsys, 1, *upload(f"http://{place}"))
    assert line.startswith("streamer: cannot reach Grafana: ")
    assert line.endswith(f"; at {place}")


@pytest.mark.parametrize("text", ["", "two words", "glsa\nother", "glsa_ä"])
def test_what_is_no_token(capsys: pytest.CaptureFixture[str], text: str) -> None:
    Path("token").write_text(text)
    line = failed(capsys, 2, *upload("http://localhost:1"))
    assert "--token-file" in line
    assert not text or text not in line


def test_a_token_goes_unencrypted_to_this_machine_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = failed(capsys, 2, *upload("http://grafana.example:3000"))
    assert "unencrypted to grafana.example:3000: use https, or --plain-http" in line
    assert "cannot reach" in failed(
        capsys, 1, *upload(f"http://0.0.0.0:{free_port()}", "--plain-http")
    )
