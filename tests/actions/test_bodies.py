"""Requests: values escaped for each receiver, and bodies that receivers' schemas accept."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

import pytest

from streamer.actions.bodies import HttpRequest, request_of, require_usable
from streamer.errors import SettingsError
from streamer.settings.actions import Hook
from streamer.settings.load import parse
from streamer.state.acted import ActionRecord, Numbers

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "act-on-a-verdict.md"
HOSTILE = 'a"b\\c\n<!channel> & ${secret}\x1b[2J'
RECORD = ActionRecord(
    key="ranker/2026-03-02/harm/B/1",
    kind="harm",
    experiment="ranker",
    start=datetime.date(2026, 3, 2),
    arm="B",
    action="stop: harm",
    sentence="ranker: stop: harm",
    reason="B harms ctr_ratio.",
    at_ms=1_772_450_000_000,
    stream_ms=1_772_449_999_000,
    commits={0: 12},
    numbers=Numbers("ctr_ratio", 400, 0.5, 0.4, -0.2, -0.3, -0.1),
    owner="ads",
    url="https://wiki/ranker",
)


def made(template: str, record: ActionRecord = RECORD, secret: str | None = None) -> HttpRequest:
    hook = Hook(url="https://example.org/x", template=template, secret_file=secret)
    return request_of(hook, record, 1_772_450_001)


def test_json_has_the_whole_record() -> None:
    request = made("json")
    document = json.loads(request.body)
    assert (document["key"], document["numbers"]["low"]) == (RECORD.key, -0.3)
    assert request.headers["Idempotency-Key"] == RECORD.key
    assert "X-Streamer-Signature" not in request.headers


def test_the_signature_is_over_the_time_and_the_body(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(" s3cret\n")
    request = made("json", secret=str(tmp_path / "secret"))
    signed = b"1772450001." + request.body
    own = hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()
    assert request.headers["X-Streamer-Signature"] == f"sha256={own}"
    assert request.headers["X-Streamer-Time"] == "1772450001"


def hostile(**more: Any) -> ActionRecord:
    from msgspec.structs import replace

    return replace(RECORD, sentence=HOSTILE, reason=HOSTILE, experiment=HOSTILE, **more)


def test_slack_reads_no_text_of_ours_as_a_command() -> None:
    text = json.loads(made("slack", hostile()).body)["text"]
    assert "&lt;!channel&gt; &amp;" in text
    assert "<!channel>" not in text


def test_values_of_a_template_stay_values(tmp_path: Path) -> None:
    path, secret = tmp_path / "body", tmp_path / "secret"
    secret.write_text("s3cret")
    path.write_text(
        "PUT\nAuthorization: Bearer ${secret}\nX-Name: ${experiment}\n\n"
        '{"text": "${sentence}", "lift": "${lift}", "cost": "$$5"}\n'
    )
    request = made(str(path), hostile(), str(secret))
    assert request.method == "PUT"
    assert request.headers["Authorization"] == "Bearer s3cret"
    assert request.headers["X-Name"] == HOSTILE.replace("\n", " ").replace("\x1b", " ")
    assert json.loads(request.body) == {"text": HOSTILE, "lift": "-20%", "cost": "$5"}
    assert b"s3cret" not in request.body


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": "${nobody}"}', r"\$\{nobody\} is none of key, kind"),
        ('{"a": "${secret}"}', r"\$\{secret\} is none of"),
        ('{"a": "5 $"}', "write \\$\\$"),
        ("POST\nno header\n\n{}", "a method and headers are followed by an empty line"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_at_the_start(
    text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "body").write_text(text)
    with pytest.raises(SettingsError, match=words):
        require_usable(Hook(url="https://a", template=str(tmp_path / "body")))
    with pytest.raises(SettingsError, match="none of json, slack and no file"):
        require_usable(Hook(url="https://a", template="teams"))


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ({"url": "ftp://a"}, "url is none that begins with https:// or http://; at actions"),
        ({"url": "https://a", "on": ["harmm"]}, "on = 'harmm': one of harm, guardrail"),
        ({"url": "https://a", "on": []}, "on is empty"),
        ({"url": "https://a", "of": ["x"]}, "of = 'x': experiments are none"),
        ({"url": "https://a", "max_age": "soon"}, "max_age of the action to a"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(hook: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        parse({"actions": [hook]})


def test_the_same_action_twice_is_refused() -> None:
    with pytest.raises(SettingsError, match="are the same"):
        parse({"actions": [{"url": "https://a"}] * 2})
    assert "https://hooks/secret" not in repr(parse({"actions": [{"url": "https://hooks/secret"}]}))


RECIPES = dict(re.findall(r'```text title="(\S+)"\n(.*?)```', PAGE.read_text(), re.DOTALL))
SCHEMAS: dict[str, dict[str, Any]] = {
    # What each receiver's own reference asks for.
    "teams.txt": {
        "required": ["type", "attachments"],
        "properties": {
            "type": {"const": "message"},
            "attachments": {
                "minItems": 1,
                "items": {
                    "required": ["contentType", "content"],
                    "properties": {
                        "contentType": {"const": "application/vnd.microsoft.card.adaptive"},
                        "content": {
                            "required": ["type", "version", "body"],
                            "properties": {"type": {"const": "AdaptiveCard"}},
                        },
                    },
                },
            },
        },
    },
    "pagerduty.txt": {
        "required": ["routing_key", "event_action", "dedup_key", "payload"],
        "properties": {
            "event_action": {"enum": ["trigger", "acknowledge", "resolve"]},
            "dedup_key": {"maxLength": 255},
            "payload": {
                "required": ["summary", "source", "severity"],
                "properties": {
                    "summary": {"maxLength": 1024},
                    "severity": {"enum": ["critical", "error", "warning", "info"]},
                },
            },
        },
    },
    "unleash.txt": {"type": "object"},
    "launchdarkly.txt": {
        "required": ["environmentKey", "instructions"],
        "properties": {
            "instructions": {
                "minItems": 1,
                "items": {
                    "required": ["kind"],
                    "properties": {"kind": {"enum": ["turnFlagOff", "turnFlagOn"]}},
                },
            }
        },
    },
    "growthbook.txt": {
        "required": ["reason", "environments"],
        "properties": {
            "reason": {"type": "string"},
            "environments": {"additionalProperties": {"type": "boolean"}},
        },
    },
    "statsig.txt": {
        "required": ["isEnabled"],
        "properties": {"isEnabled": {"const": False}},
    },
}


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_each_recipe_is_what_its_receiver_takes(name: str, tmp_path: Path) -> None:
    import jsonschema

    (tmp_path / "secret").write_text("s3cret")
    (tmp_path / name).write_text(RECIPES[name])
    request = made(str(tmp_path / name), hostile(), str(tmp_path / "secret"))
    jsonschema.validate(json.loads(request.body), SCHEMAS[name])
    assert RECIPES.keys() == SCHEMAS.keys()
    if name not in ("teams.txt", "pagerduty.txt"):
        assert "s3cret" in "".join(request.headers.values())
