"""What the pages on Kubernetes and systemd say, run as far as it goes without a cluster."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from streamer.cli import arguments
from streamer.settings.load import parse
from tests.support.compose import ROOT
from tests.support.required import program

PAGES = ROOT / "docs" / "how-to"


def blocks(page: str, kind: str) -> list[tuple[str, str]]:
    """(title, text) of the blocks of a page that are of a kind."""
    text = (PAGES / page).read_text(encoding="utf-8")
    return re.findall(rf'^```{kind}(?: title="(\S+)")?\n(.*?)^```', text, re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[list[str]]:
    found = [text for _, text in blocks(page, "sh")]
    lines = "".join(found).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines]


def test_from_zero_to_paged(tmp_path: Path) -> None:
    """Settings, values, rules and the chart fit each other; only the cluster is left out."""
    for kind in ("toml", "yaml"):
        for title, text in blocks("kubernetes.md", kind):
            (tmp_path / title).write_text(text)
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    settings = tomllib.loads((tmp_path / "streamer.toml").read_text())
    settings["redis"].pop("password_file")
    assert parse(settings).alerts[0].name == "ctr"
    ran = []
    for words in commands("kubernetes.md"):
        env = {}
        while "=" in words[0]:
            name, _, env[name] = words.pop(0).partition("=")
        if words[0] == "streamer":
            words = [sys.executable, "-m", "streamer", *words[1:]]
        elif words[:3] == ["helm", "upgrade", "--install"]:
            helm = [program("Helm", "helm"), "template", "--kube-version", "1.31"]
            words = [*helm, *words[3:]]
        else:
            assert words[0] in ("docker", "kubectl") or words[:2] == ["helm", "test"], words
            continue
        paths = {"PYTHONPATH": str(ROOT)}
        env = os.environ | paths | env
        done = subprocess.run(
            words, check=False, cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        ran.append(done.stdout)
    assert len(ran) == 2
    documents = [each for each in YAML(typ="safe").load_all(ran[-1]) if each]
    kinds = [each["kind"] for each in documents]
    assert {"StatefulSet", "ServiceMonitor", "PrometheusRule", "Ingress", "Pod"} <= {*kinds}
    rules = [
        rule
        for each in documents
        if each["kind"] == "PrometheusRule"
        for group in each["spec"]["groups"]
        for rule in group["rules"]
    ]
    (paged,) = [rule for rule in rules if rule.get("alert") == "StreamerNoWorkers"]
    assert paged["labels"]["severity"] == "critical"
    assert "https://streamer.example.org/runbooks" in paged["annotations"]["runbook_url"]
    (host,) = (each["spec"]["rules"][0]["host"] for each in documents if each["kind"] == "Ingress")
    assert host in settings["exporter"]["hosts"]


def test_the_units_are_valid(tmp_path: Path) -> None:
    verify = program("systemd", "systemd-analyze")
    ((title, text),) = blocks("systemd.md", "ini")
    text = text.replace("/opt/streamer/bin/streamer", sys.executable).replace("User=streamer\n", "")
    (tmp_path / title).write_text(text)
    unit = title.replace("@.", "@1.")
    done = subprocess.run(
        [verify, "verify", str(tmp_path / unit)], check=False, capture_output=True, text=True
    )
    ours = [line for line in done.stderr.splitlines() if title.partition("@")[0] in line]
    if done.returncode and not ours:
        pytest.skip(f"systemd-analyze cannot run here: {done.stderr.strip()[:200]}")
    assert ours == []
    words = re.findall(r"ExecStart=\S+ ([^`\n]*)", (PAGES / "systemd.md").read_text())
    assert [arguments.parse(shlex.split(each)).command for each in words] == ["run", "export"]
