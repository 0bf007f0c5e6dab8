"""What the README tells a newcomer to run: the demo, and one's own Kafka and Redis."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from prometheus_client.parser import text_string_to_metric_families

from tests.support.lanes import long

STREAMER = [sys.executable, "-m", "streamer"]
README = Path(__file__).parents[2] / "README.md"
START_MS = 1_700_000_000_000
EVENTS = [
    {"type": "impression", "request_id": "r1", "position": 1, "variant": "A", "surface": "home"},
    {"type": "click", "request_id": "r1", "dwell_ms": 21000},
    {"type": "conversion", "value": 12.5},
]


def log_of(users: int) -> str:
    lines = []
    for i in range(users):
        base = {"user_id": f"u{i}", "item_id": "i7"}
        for k, event in enumerate(EVENTS):
            lines.append(json.dumps({**event, **base, "ts": START_MS + 1000 * i + 100 * k}))
    return "\n".join(lines) + "\n"


def blocks(language: str) -> list[str]:
    """The README's blocks of a language."""
    text = README.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Arguments of every call of streamer in the README."""
    lines = [shlex.split(line, comments=True) for b in blocks("sh") for line in b.splitlines()]
    return [words[1:] for words in lines if words[:1] == ["streamer"]]


def command(name: str) -> list[str]:
    """The one call of a subcommand."""
    (found,) = [words for words in commands() if words[0] == name]
    return found


@contextmanager
def running(said: Path, *arguments: str) -> Iterator[None]:
    """A command in the background; it has to end with 0 when it is told to."""
    with said.open("w") as file:
        process = subprocess.Popen(
            [*STREAMER, *arguments],
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=said.parent,
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
    assert code == 0, said.read_text()


def said_by(said: Path, pattern: str) -> re.Match[str]:
    """What a command in the background has said, once it has."""
    return until(lambda: re.search(pattern, said.read_text()), 30, f"it says {pattern}")  # type: ignore[no-any-return]


def line_with(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """The first line of its output that matches."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        found = re.search(pattern, line)
        if found:
            return found
    raise AssertionError("".join(seen))


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def until(true: Callable[[], Any], seconds: float, what: str) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        try:
            result = true()
        except (urllib.error.URLError, ConnectionError):
            result = None
        if result:
            return result
        assert time.monotonic() < deadline, what
        time.sleep(0.5)


def total(metrics: str, name: str) -> float:
    """Sum of the rollup of everything, or of all topics."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == name and set(sample.labels.values()) <= {"all"}
    )


def users_behind(url: str) -> float:
    return total(fetched(f"{url}/metrics"), "streamer_users_behind_seconds")


def done(folder: Path, *arguments: str) -> str:
    """A command that has to succeed, in a folder."""
    result = subprocess.run(
        [*STREAMER, *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=folder,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


async def topics_at(brokers: str) -> set[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    try:
        await admin.start()
        return set(await admin.list_topics())
    finally:
        await admin.close()


@long
def test_the_demo_runs_on_a_kafka_of_yours_and_ends_by_itself(kafka: str) -> None:
    before = asyncio.run(topics_at(kafka))
    command = [*STREAMER, "demo", "--kafka", kafka, "--seconds", "20", "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"streamer demo: Kafka {kafka}" in ended.stdout
    assert "experiment ranker: ship new" in ended.stdout
    left = asyncio.run(topics_at(kafka)) - before
    assert not {name for name in left if name.startswith("streamer-demo")}


def test_the_demo_tells_its_story() -> None:
    with subprocess.Popen(
        [*STREAMER, "demo", "--seconds", "60", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        url = line_with(process, r"(http://\S+)/metrics")[1]

        def live() -> bool:
            recent = json.loads(fetched(f"{url}/api/readings?window=5m&name=window_impressions"))
            shown = {r["labels"]["variant"]: r["value"] for r in recent["readings"]}
            whole = total(fetched(f"{url}/metrics"), "streamer_impressions_total")
            return shown.get("bts", 0) > 100 and whole > 120_000

        def story() -> bool:
            alerts = json.loads(fetched(f"{url}/api/alerts"))["alerts"]
            dropped = [
                a["segment"]["surface"]
                for a in alerts
                if a["checks"]["metric"]["status"] == "dropped"
            ]
            return verdict("ranker") == "better" and dropped == ["women"]

        def verdict(name: str) -> str:
            (metric, *_) = json.loads(fetched(f"{url}/api/experiments/{name}"))["metrics"]
            return str(metric["comparisons"][0]["verdict"]["outcome"])

        until(live, 55, "the past two weeks and live traffic are on /metrics")
        until(story, 20, "the winner and the outage are found")
        assert verdict("layout") == "broken split"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=90)
    assert process.returncode == 0, output
    assert "demo ended" in output
    assert "bts" in output


@long
@pytest.mark.usefixtures("apache_kafka")
def test_from_a_file_to_metrics_on_ones_own_kafka_and_redis(
    kafka: str, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    log = tmp_path / "events.ndjson"
    log.write_text(log_of(200), encoding="utf-8")
    config = tmp_path / "streamer.toml"
    name = redis_prefix.replace(":", "-")
    topics = "".join(
        f'{kind} = "{name}-{kind}"\n'
        for kind in ("impressions", "clicks", "conversions", "sessions", "dead_letters")
    )
    config.write_text(
        f'[kafka]\nbrokers = "{kafka}"\ngroup = "{name}"\n[kafka.topics]\n{topics}'
        f'[redis]\nurl = "{redis_url}"\nprefix = "{redis_prefix}"\n',
        encoding="utf-8",
    )
    at = ("-c", config.name)
    done(tmp_path, *command("produce"))
    assert "ok" in done(tmp_path, *command("check"))
    said = tmp_path / "run.txt", tmp_path / "export.txt"
    with (
        running(said[0], *command("run")),
        running(said[1], *command("export"), "--port=0"),
    ):
        url = said_by(said[1], r"(http://\S+)/metrics")[1]

        def read_all() -> bool:
            return total(fetched(f"{url}/metrics"), "streamer_clicks_total") == 200

        until(read_all, 60, "everything was counted")
        assert until(lambda: fetched(f"{url}/readyz"), 30, "all is ready") == "ready\n"
        assert "owner" in done(tmp_path, *command("inspect"))
        # Metrics of users follow the commits.
        until(lambda: users_behind(url) == 0, 30, "users are current")
        answer = json.loads(fetched(f"{url}/api/readings?at=stream"))
        key = done(tmp_path, "inspect", *at, "--hash-key").strip()
    expected = json.loads(done(tmp_path, "replay", log.name, "--json", "--hash-key", key))

    def shown(document: dict[str, Any]) -> dict[tuple[Any, ...], float]:
        return {
            (r["name"], *sorted(r["labels"].items())): r["value"]
            for r in document["readings"]
            if r["labels"].get("window") != "file"  # of a log there is no such window
        }

    assert shown(answer) == shown(expected)
    assert "claim None" in " ".join(done(tmp_path, "inspect", *at).split())


def test_the_replays_of_the_readme(tmp_path: Path) -> None:
    (log,) = blocks("json")
    (tmp_path / "events.ndjson").write_text(log, encoding="utf-8")
    calls = [words for words in commands() if words[0] in ("replay", "init")]
    assert [words[0] for words in calls] == ["replay", "replay", "replay", "init", "replay"]
    for words in calls:
        assert words[0] == "init" or "impressions" in done(tmp_path, *words), words
        if words[0] == "init":
            done(tmp_path, *words)
    assert (tmp_path / "refused.jsonl").read_text() == ""
    with_settings = done(tmp_path, "replay", "events.ndjson", "-c", "streamer.toml", "--strict")
    assert "impressions" in with_settings
    test = 'control = "A"\nsplit = { A = 1, B = 1 }\nstart = 2023-11-14\n'
    with open(tmp_path / "streamer.toml", "a", encoding="utf-8") as settings:
        settings.write(f'[[experiments]]\nname = "x"\ndimension = "variant"\n{test}')
    (readout,) = (words for words in commands() if words[0] == "readout")
    assert "1 experiment" in done(tmp_path, *readout)
    (view,) = (words for words in commands() if words[0] == "view")
    with running(tmp_path / "view.txt", *view, "--port=0"):
        url = said_by(tmp_path / "view.txt", r"(http://[\d.:]+)/")[1]
        assert json.loads(fetched(f"{url}/api/experiments"))["experiments"][0]["name"] == "x"


def test_every_command_of_the_readme_is_run() -> None:
    """Those of make and docker compose: .ci/run, tests/system/test_stack.py."""
    run = {"produce", "check", "run", "export", "inspect", "replay", "init", "view", "readout"}
    assert {words[0] for words in commands()} == run
