"""Documentation that is run: commands exist, examples hold, generated pages are current."""

from __future__ import annotations

import functools
import json
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamer
from streamer import errors
from streamer.cli import arguments
from streamer.errors import UsageError
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.settings.event_fields import KINDS, LINE_TYPES, field_names
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from tests.conformance import offline
from tests.core.decoders import REASONS
from tests.docs import reference, rooms
from tests.support.all_cases import hold_for_all

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)#?([^)\s]*)[^)]*\)")
"""Target and anchor."""
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def hold_for_pages(law: Callable[[Path], None]) -> None:
    """A law holds for every page; the failure names all others."""
    hold_for_all(PAGES, law, lambda page: str(page.relative_to(ROOT)), at_least=40)


def commands(page: Path) -> list[str]:
    """Lines of the page's shell blocks that call streamer."""
    lines = []
    for language, block in _FENCE.findall(page.read_text(encoding="utf-8")):
        if language in ("", "sh", "bash", "console"):
            lines += [line.removeprefix("$ ").strip() for line in block.splitlines()]
    return [line for line in lines if line.startswith("streamer ")]


def test_there_are_commands_to_check() -> None:
    assert len(commands(ROOT / "README.md")) >= 5


def commands_parse(page: Path) -> None:
    for line in commands(page):
        call = re.split(r"\s[|>&]|\s#", line)[0]
        words = shlex.split(call)[1:]
        try:
            arguments.parser().parse_args(words)
        except UsageError as error:
            pytest.fail(f"{page.name}: {line}: {error}")


def test_commands_parse() -> None:
    hold_for_pages(commands_parse)


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[*`]|(?<!\w)_|_(?!\w)", "", text)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


@functools.cache
def anchors(page: Path) -> set[str]:
    """Those of all headings of a page; of equal ones the second has `-1` at its end."""
    found: Counter[str] = Counter()
    names = set()
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        name = slug(heading)
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("What is guaranteed, and `how` it is kept", "what-is-guaranteed-and-how-it-is-kept"),
        ("[kafka.topics]", "kafkatopics"),
        ("A *scrape* - warm", "a-scrape---warm"),
        ("[Kafka](kafka.md) and user_id", "kafka-and-user_id"),
    ],
)
def test_anchors_are_those_of_github(heading: str, expected: str) -> None:
    assert slug(heading) == expected


def test_pages_have_what_is_looked_for_in_each() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert len(_LINK.findall(text)) > 100
    assert len(_SOURCE.findall(text)) > 20
    assert sum(name == "toml" for name, _ in _FENCE.findall(text)) > 10


def links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name} links to {target}"
            if anchor and path.suffix == ".md":
                assert anchor in anchors(path.resolve()), f"{page.name}: {target}#{anchor}"


def test_links_lead_somewhere() -> None:
    hold_for_pages(links_lead_somewhere)


_SOURCE = re.compile(r"`((?:\w+/)+\w+\.(?:py|rs))`")


def sources_are_there(page: Path) -> None:
    roots = (ROOT, ROOT / "streamer", ROOT / "core" / "src")
    for path in _SOURCE.findall(page.read_text(encoding="utf-8")):
        assert any((root / path).is_file() for root in roots), f"{page.name} names {path}"


def test_sources_that_pages_name_are_there() -> None:
    hold_for_pages(sources_are_there)


_PAGE = re.compile(r"(?<![\w/])(docs/[\w/-]+\.md)(?:#([\w-]+))?")


def test_pages_that_sources_name_are_there() -> None:
    folders = ("streamer", "benchmarks", "core/src")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    named = 0
    for path in (ROOT / "pyproject.toml", *files):
        if path.suffix in (".py", ".rs", ".yml", ".toml", ".json", ".js"):
            for page, anchor in _PAGE.findall(path.read_text(encoding="utf-8")):
                assert (ROOT / page).is_file(), f"{path} names {page}"
                assert not anchor or anchor in anchors(ROOT / page), f"{path}: {page}#{anchor}"
                named += 1
    assert named > 10


def blocks(language: str, page: str = "README.md") -> list[str]:
    found = _FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    return [block for name, block in found if name == language]


def test_events_of_the_readme_count() -> None:
    replay = Replay(Settings())
    (block,) = blocks("json")
    kinds = ("impressions", "clicks", "conversions")
    lines = block.encode().splitlines()
    replay.feed([(k, 1_700_000_000_000, x) for k, x in zip(kinds, lines, strict=True)])
    replay.finish()
    values = {(r.name, *r.labels.values()): r.value for r in replay.readout().readings}
    assert [values["streamer_accepted_total", kind] for kind in kinds] == [1, 1, 1]
    for segment in (("A", "all"), ("all", "home")):
        assert values["streamer_window_conversions", "24h", *segment] == 1
        assert values["streamer_ctr_ratio", "24h", *segment] == 1.0


def test_the_visit_of_the_page_on_engagement_is_what_it_says() -> None:
    replay = Replay(Settings())
    pages = ("README.md", "docs/engagement.md")
    log = [line for page in pages for line in "".join(blocks("json", page)).encode().splitlines()]
    replay.feed([(LINE_TYPES[json.loads(line)["type"]], 1_700_000_060_000, line) for line in log])
    replay.finish()
    values = {(r.name.removeprefix("streamer_"), *r.labels.values()): r.value
              for r in replay.readout().readings}  # fmt: skip
    in_a = ("1h", "A", "all")
    assert values["window_sessions", *in_a] == values["bounce_rate_ratio", *in_a] == 1
    assert values["session_length_mean_seconds", *in_a] == 31
    assert values["window_dwells", *in_a] == 1
    assert values["dwell_mean_seconds", *in_a] == 26


def test_the_slates_of_the_page_on_ranking_are_what_it_says() -> None:
    replay = Replay(Settings())
    log = blocks("json", "docs/ranking.md")[0].encode().splitlines()
    replay.feed([(LINE_TYPES[json.loads(line)["type"]], 1_700_000_060_000, line) for line in log])
    replay.finish()
    values = {(r.name, *sorted(r.labels.values())): r.value for r in replay.readout().readings}
    common = ("24h", "all", "all", "provisional")
    found = values["streamer_mrr", *sorted((*common, "all"))]
    assert found == pytest.approx(5 / 12, abs=1e-9)
    engaged = ("24h", "all", "all", "provisional", "engaged")
    assert values["streamer_mrr", *sorted(engaged)] == pytest.approx(5 / 9, abs=1e-9)
    ndcg = values["streamer_ndcg_ratio", *sorted((*engaged, "10"))]
    assert ndcg == pytest.approx(2 / 3, abs=1e-9)


EVALUATION = "docs/how-to/evaluate-a-recommender.md"


def test_the_page_on_offline_evaluation_prints_what_it_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, expected = blocks("python", EVALUATION), blocks("text", EVALUATION)
    assert len(code) == len(expected) == 1
    exec(code[0], {})
    assert capsys.readouterr().out == expected[0]


def test_the_page_on_offline_evaluation_has_the_values_of_the_log() -> None:
    text = (ROOT / EVALUATION).read_text(encoding="utf-8")
    number = r"(0\.\d{6}) \|"
    rows = re.findall(rf"^\| (.*?) \| {number} {number} {number}(.* )\|$", text, re.MULTILINE)
    of_shown = ("ndcg@5", "map@5", "recall@5", "mrr@5")
    of_jurity = ("ndcg@5.jurity", "map@5.jurity", "recall@5", "")
    assert len(rows) == 6
    for name, *values in rows:
        relevant: Any = "shown" if "shown" in name else "all"
        asked = of_jurity if "urity" in name else of_shown
        found = streamer.evaluate(
            *offline.frames("binary"), [x for x in asked if x], relevant=relevant
        )
        assert [x.strip() for x in values] == [
            f"{found.value(x):.6f}" if x else "" for x in asked
        ], name


def settings_are_valid(page: Path) -> None:
    for block in blocks("toml", str(page.relative_to(ROOT))):
        Catalogue(parse(tomllib.loads(block)))


def test_settings_of_the_pages_are_valid() -> None:
    hold_for_pages(settings_are_valid)


def test_the_page_on_operations_names_every_dashboard() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.startswith("| Grafana, dashboards"))
    titles = [
        json.loads(path.read_text(encoding="utf-8"))["title"].removeprefix("streamer: ")
        for path in (ROOT / "grafana" / "dashboards").glob("*.json")
    ]
    assert sorted(re.findall(r"\*([^*]+)\*", row)) == sorted(titles)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    found: set[str] = set()
    for page in PAGES:
        used = re.findall(
            r"`make (\w+)|^make (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        for pair in used:
            assert set(pair) - {""} <= targets, f"{page.name}: make {pair}"
            found.update(pair)
    assert {"demo", "test", "check"} <= found


def test_every_command_is_described() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = list(reference.subcommands())
    assert names
    for name in names:
        assert f"streamer {name}" in text, f"README.md does not mention `streamer {name}`"


@pytest.mark.parametrize("name", reference.pages())
def test_generated_pages_are_current(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert text == reference.pages()[name], "run `python -m tests.docs.reference`"


def test_check_names_what_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    (tmp_path / "settings.md").write_text("old")
    assert reference.main(["--check"]) == 1
    err = capsys.readouterr().err
    assert "docs/settings.md" in err
    assert "metrics.md" not in err
    assert (tmp_path / "settings.md").read_text() == "old"


def test_every_setting_has_a_meaning() -> None:
    assert reference.settings_page()  # a KeyError names the one without
    assert all(text for text in reference.field_docs().values())


def test_the_page_on_events_names_every_field_and_every_reason() -> None:
    text = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    for kind in KINDS:
        for name in (*field_names(kind), *Settings().dimension_names):
            assert f"`{name}`" in text or f'"{name}"' in text, name
    for reason in REASONS:
        assert f"`{reason}`" in text, reason
    replay = Replay(Settings())
    (line,) = blocks("json", "docs/events.md")
    replay.feed([("impressions", 1_700_000_060_000, line.encode().strip())])
    replay.finish()
    values = {(r.name, *r.labels.values()): r.value for r in replay.readout().readings}
    assert values["streamer_accepted_total", "impressions"] == 1


_SERIES = re.compile(r"\bstreamer_[a-z0-9_]+")
_OF_A_FAMILY = re.compile("_(total|info|count|sum|bucket)$")


@functools.cache
def described() -> set[str]:
    """Families of series: those of the catalogue, and those of the processor and the exporter."""
    pages = " ".join(reference.metrics_pages().values())
    found = {_OF_A_FAMILY.sub("", name) for name in _SERIES.findall(pages)}
    for module in ("processor", "exporter"):
        text = (ROOT / "streamer" / "server" / f"{module}.py").read_text(encoding="utf-8")
        found |= {PREFIX + name for name in re.findall(r'(?:\{PREFIX\}|\(")([a-z_]+)"', text)}
    return found


def series_and_alerts_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    families = described()
    named = {name for name in _SERIES.findall(text) if not name.endswith("_")}
    assert {n for n in named if _OF_A_FAMILY.sub("", n) not in families} == set()
    rules = (ROOT / "grafana" / "prometheus" / "rules").glob("*.yml")
    alerts = set(re.findall(r"alert: (Streamer\w+)", "".join(p.read_text() for p in rules)))
    assert set(re.findall(r"`(Streamer[A-Z]\w+)`", text)) <= alerts | vars(errors).keys()


def test_series_and_alerts_that_pages_name_are_there() -> None:
    hold_for_pages(series_and_alerts_are_there)


def test_the_docs_are_short() -> None:
    """Words that hands wrote, in all pages: generated ones say so in their first lines."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    written = [text for text in texts if "<!-- Written by" not in text[:200]]
    assert len(re.findall(r"[^\s|]*\w[^\s|]*", " ".join(written))) <= 25_000


def test_the_picture_of_the_rooms_is_that_of_the_imports() -> None:
    text = rooms.PAGE.read_text(encoding="utf-8")
    assert text == rooms.page(), "run `python -m tests.docs.rooms`"
    arrows = set(re.findall(r"(\w+) --> (\w+)", text))
    assert {("cli", "worker"), ("query", "state"), ("ingest", "metrics")} <= arrows


def test_the_forms_of_a_click_are_types() -> None:
    text = rooms.PAGE.read_text(encoding="utf-8").partition("## A click")[2]
    steps = re.split(r"^\d+\. ", text.partition("\n## ")[0], flags=re.MULTILINE)[1:]
    assert len(steps) == 14
    for step in steps[:-1]:  # the last one is text
        (name, *_), paths = re.findall(r"`(\w+)`", step), re.findall(r"`([\w/.]+\.\w+)`", step)
        folder = ROOT if paths[0].startswith("core/") else ROOT / "streamer"
        code = (folder / paths[0]).read_text(encoding="utf-8")
        declared = rf"^(?:pub(?:\(\w+\))? )?(?:class|struct|enum|type) {name}\b|^{name} = "
        assert re.search(declared, code, re.MULTILINE), name
