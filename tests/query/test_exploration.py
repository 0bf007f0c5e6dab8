"""What an exploration says of the lifts of several treatments."""

from __future__ import annotations

import pytest

from streamer.query.exploration import explored
from streamer.settings.load import parse
from streamer.state.user_days import Days
from streamer.stats.experiments.heterogeneity import TOO_FEW
from tests.support import assigned


@pytest.mark.parametrize("arms", [("old", "new"), ("old", "new", "third")])
def test_a_sentence_begins_with_its_arm_where_there_are_several(arms: tuple[str, ...]) -> None:
    split = dict.fromkeys(arms, 1)
    own = assigned.experiment("prices", arm="experiments", explore=["surface"], split=split)
    settings = parse({"experiments": [own], "dimensions": [{"name": "surface"}]})
    events = assigned.events(30, lambda user: {"prices": arms[user % len(arms)]})
    replay = assigned.replayed(settings, [{**event, "surface": "home"} for event in events])
    stored = replay.experiments()["prices"]
    sums = replay.sums_of_days(Days(stored.trial, stored.so_far, "surface"))
    said = {
        t.arm: t.sentence for t in explored(stored, "surface", sums, stored.so_far).heterogeneity
    }
    several = {arm: f"{arm}: {TOO_FEW}" for arm in arms[1:]}
    assert said == (several if len(arms) > 2 else {"new": TOO_FEW})
