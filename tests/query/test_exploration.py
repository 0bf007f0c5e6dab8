"""What an exploration says of the lifts of several treatments."""

from __future__ import annotations

from streamer.query.exploration import Exploration
from streamer.stats.experiments.heterogeneity import TOO_FEW, heterogeneity


def test_a_sentence_begins_with_its_arm_where_there_are_several() -> None:
    nothing = heterogeneity({}, 0.05)
    one = Exploration("device", 0.05, {}, "ctr_ratio", "percent", {"B": nothing})
    two = Exploration("device", 0.05, {}, "ctr_ratio", "percent", {"B": nothing, "C": nothing})
    assert one.sentences == {"B": TOO_FEW}
    assert two.sentences == {"B": f"B: {TOO_FEW}", "C": f"C: {TOO_FEW}"}
