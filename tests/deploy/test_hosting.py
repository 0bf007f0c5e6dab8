"""What a hosting service reads: workflows, forms and citation are valid, and do what the Makefile
does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FOLDER = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(path for path in FOLDER.glob("*.yml") if path.name != "config.yml")
SCHEMAS = [
    *((path, "vendor.github-workflows") for path in WORKFLOWS),
    *((path, "vendor.github-issue-forms") for path in FORMS),
    (FOLDER / "config.yml", "vendor.github-issue-config"),
    (ROOT / ".github" / "dependabot.yml", "vendor.dependabot"),
    (ROOT / "CITATION.cff", "vendor.citation-file-format"),
]


def of_yaml(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("path", "schema"), SCHEMAS, ids=lambda x: getattr(x, "name", ""))
def test_a_file_is_valid(path: Path, schema: str) -> None:
    words = ["-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    done = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_get_no_more_than_they_need(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, version in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", version), action
    assert of_yaml(path)["permissions"] == {"contents": "read"}
    assert "target-cpu" not in text


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_of_the_makefile(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = set(re.findall(r"run: make ([a-z-]+)", path.read_text(encoding="utf-8")))
    assert called <= targets
    if path.name == "ci.yml":
        assert called == {"check", "test", "demo", "image", "wheel"}


def test_the_matrix_has_the_pythons_of_the_classifiers() -> None:
    matrix = of_yaml(ROOT / ".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", text)
    assert set(named) <= set(matrix["python"])


def test_hooks_run_what_make_check_runs() -> None:
    hooks = of_yaml(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    check = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\nbench")[0]
    for hook in hooks:
        command = hook["entry"].replace(".venv/bin", "$(BIN)").replace(" --force-exclude", "")
        assert command in check, hook["id"]
