"""What `streamer metrics NAME` says of one metric."""

from __future__ import annotations

from math import log2

import pytest

from streamer.cli import main
from streamer.cli.metric_page import FIELDS, LABELS, example_of
from streamer.metrics.catalogue import FAMILIES
from streamer.server.series import Entry, entries
from tests.support.all_cases import hold_for_all


def test_it_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["metrics", "ndcg"]) == 0
    out = capsys.readouterr().out
    for part in (
        "streamer_ndcg_ratio\n",
        "dcg(k): sum over the first k items",
        "maturity: provisional",
        "others: jurity, exponential",
        "Jurity, metric page",
        "on by default (metrics.families)",
        '"type":"click"',
        "ndcg_ratio = 0.63093",
        "see also   ndcg_ratio_stderr",
    ):
        assert part in out, part
    assert main.main(["metrics", "snips_ratio"]) == 0
    assert 'add "off_policy" to metrics.families' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ctr_ratio", 0.5),
        ("ndcg_ratio", 1 / log2(3)),
        ("mrr", 0.5),
        ("index_recall_ratio", 0.5),
        ("snips_ratio", 0.75),
        ("conversion_value_per_click", 12.5),
        ("bounce_rate_ratio", 1.0),
        ("mse", (0.8**2 + 0.6**2) / 2),
        ("dwell_mean_seconds", 3.0),
    ],
)
def test_examples_have_the_values_of_their_formulas(name: str, value: float) -> None:
    found = example_of(name)
    assert found is not None
    assert len(found[0]) == 2
    assert found[1] == pytest.approx(value, abs=1e-8)


def test_every_label_and_family_is_explained() -> None:
    assert {label for entry in entries() for label in entry.labels} == LABELS.keys()
    assert {family.name for family in FAMILIES} == FIELDS.keys()


def stands_alone(entry: Entry) -> None:
    assert not entry.doc.startswith(("The same,", "The same from", "Likewise", "As above"))


def test_a_help_text_stands_alone() -> None:
    hold_for_all(entries(), stands_alone, lambda entry: entry.name, at_least=200)
