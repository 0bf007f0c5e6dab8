"""How many users there will have been, and who is left out, as readers of the sums see it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer import formatting
from streamer.query.counters import CounterInputs
from streamer.query.experiment_gauges import FAMILY
from streamer.query.experiments import StoredExperiment, stored_experiments, users_of
from streamer.query.notes import Severity
from streamer.query.readout import readout_of
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from streamer.stats.experiments.forecast import Growth
from streamer.stats.experiments.recommendation import Action, Recommendation
from tests.support.agreement import run_engines
from tests.support.engines import LogRecord

FIRST = datetime.date(2025, 6, 2)
FIRST_MS = int(datetime.datetime(2025, 6, 2, tzinfo=datetime.UTC).timestamp()) * 1000
DAY_MS = 86_400_000
SETTINGS = parse(
    {
        "dimensions": [{"name": "variant"}],
        "experiments": [
            {
                "name": "x",
                "dimension": "variant",
                "control": "A",
                "split": {"A": 1, "B": 1},
                "start": FIRST,
            }
        ],
    }
)


def book_of(shown: Sequence[tuple[int, int, str]]) -> StoredExperiment:
    """Of (day, user, variant) of impressions, in the order of days."""
    records = []
    for i, (day, user, variant) in enumerate(shown):
        ts = FIRST_MS + day * DAY_MS + DAY_MS - len(shown) + i
        event = {"ts": ts, "user_id": f"u{user}", "item_id": "i", "variant": variant}
        records.append(LogRecord("impressions", 0, i, ts, msgspec.json.encode(event)))
    engines = run_engines(SETTINGS, 1, records, 10**6, None)
    views = [view_of(p) for p in engines.partitions]
    return stored_experiments(SETTINGS, engines.catalogue.experiment_measures, views)["x"]


def test_returning_users_are_counted_once() -> None:
    """After three days a straight line promises two thirds more than there are on day 7."""
    dice = np.random.default_rng(3)
    comes = dice.random((1200, 7)) < dice.beta(0.5, 1.5, 1200)[:, None]
    shown = [(d, u, "AB"[u % 2]) for d in range(7) for u in np.flatnonzero(comes[:, d]).tolist()]
    there_were = int(comes.any(axis=1).sum())
    early = book_of([each for each in shown if each[0] < 3])
    past = early._past(early.parts, early.trial.days.start, early.trial.days.start + 2)
    assert past is not None
    growth = past.growth
    assert growth.users == int(comes[:, :3].any(axis=1).sum())
    assert growth.users_at(7) == pytest.approx(there_were, rel=0.1)
    assert growth.users / 3 * 7 > 1.6 * there_were
    stored = book_of(shown)
    start = stored.trial.days.start
    for day in range(7):
        assert users_of(stored.trial, stored.parts, start + day) == int(
            comes[:, : day + 1].any(axis=1).sum()
        )


def test_a_day_that_is_past_or_the_first_one_forecasts_nothing() -> None:
    shown = [(d, 10 * d + u, "AB"[u % 2]) for d in range(3) for u in range(10)]
    stored = book_of(shown)
    start = stored.trial.days.start
    assert stored._past(stored.parts, start, start + 1) is None
    first = book_of(shown[:10])
    assert first._past(first.parts, start, start) is None


@pytest.mark.parametrize(("mixed", "is_warning"), [(0, False), (1, False), (2, True), (30, True)])
def test_many_users_of_several_arms_are_a_warning(mixed: int, is_warning: bool) -> None:
    shown = [(0, u, "AB"[u % 2]) for u in range(200)]
    shown += [(0, u, "AB"[1 - u % 2]) for u in range(mixed)]
    stored = book_of(shown)
    found = readout_of(stored, stored.read())
    assert found.users_in_several_arms == mixed
    assert found.users_in_several_arms_ratio == mixed / 200
    assert [
        f"{mixed} users ({formatting.percent(mixed / 200)} of all" in note.text
        for note in found.notes
        if note.severity is Severity.WARNING
    ] == ([True] if is_warning else [])


@given(st.integers(1, 20), st.integers(1, 10**6), st.integers(1, 20), st.integers(0, 10**6))
def test_forecasts_go_through_what_was_seen(d: int, users: int, more_d: int, more: int) -> None:
    growth = Growth(d, users, d + more_d, users + more)
    assert growth.users_at(d + more_d) == pytest.approx(users + more)
    assert growth.users_at(2 * (d + more_d)) <= 2 * (users + more) * (1 + 1e-9)


def test_the_document_recommends_from_the_start_on_only() -> None:
    shown = [(d, 200 * d + u, "AB"[u % 2]) for d in range(4) for u in range(200)]
    stored = book_of(shown)
    start = stored.trial.days.start
    advice = readout_of(stored, stored.read()).recommendation
    assert advice is not None
    assert (advice.action, advice.arm) == ("keep running", None)
    assert advice.reason.startswith("ctr_ratio: There is no range yet")
    assert advice.words == "keep running"
    later = stored.of_parts(stored.parts, start + 1, start + 3)
    assert readout_of(stored, later).recommendation is None
    assert readout_of(stored, stored.of_parts([], start, None)).recommendation is None
    assert [m.role for m in readout_of(stored, later).metrics] == ["primary"]


@pytest.mark.parametrize("action", Action)
def test_the_series_of_a_recommendation_is_that_of_the_readout(action: Action) -> None:
    """One of all actions, with the arm where there is one; none before the first day."""
    (gauge,) = [each for each in FAMILY.metrics if each.name == "experiment_recommendation"]
    arm = "B" if action in (Action.SHIP, Action.STOP_HARM) else None
    advice = Recommendation(action, arm, "why", 9)
    stored = book_of([(0, 1, "A")])
    readouts = [
        replace(stored.read(), recommendation=advice),
        stored.of_parts([], stored.trial.days.start, None),
    ]
    known = CounterInputs(SETTINGS, (), 0, readouts)
    assert gauge.labels == ("experiment", "recommendation", "arm")
    assert list(gauge.series(known)) == [(("x", action.value, arm or ""), 1)]
    assert action.value in gauge.doc
