"""Slates without items."""

from __future__ import annotations

from streamer.settings.load import parse

from .timeline import H, Log, S, value

HOUR = {"window": "1h"}
DIMENSIONS = [{"name": "query"}]
BY_QUERY = parse({"dimensions": DIMENSIONS, "windows": {"lengths": ["1h"]}})


def test_an_event_without_items_is_a_request_without_results() -> None:
    log = Log().shown(0, items=[], request_id="q1").shown(S, items=["a", "b"], request_id="q2")
    log.shown(2 * S, items=["a"]).shown(3 * S)  # the last one is no slate
    result = log.run()
    assert value(result, "window_requests", **HOUR) == 3
    assert value(result, "zero_results_ratio", **HOUR) == 1 / 3
    assert value(result, "window_impressions", **HOUR) == 4
    assert value(result, "window_users", **HOUR) == 1


def test_it_has_its_own_dimensions() -> None:
    log = Log().shown(0, items=[], query="shoes").shown(S, items=[], query="hats")
    log.shown(S, items=["a"], query="hats")
    result = log.run(BY_QUERY)
    shares = {
        query: value(result, "zero_results_ratio", query=query, **HOUR)
        for query in ("shoes", "hats", "all")
    }
    assert shares == {"shoes": 1, "hats": 1 / 2, "all": 2 / 3}
    assert value(result, "window_impressions", query="shoes", **HOUR) is None


def test_it_is_sent_again_with_its_id_or_for_its_request() -> None:
    log = Log().shown(0, items=[], event_id="e").shown(S, items=[], event_id="e")
    log.shown(0, items=[], request_id="q").shown(S, items=[], request_id="q")
    log.shown(2 * S, items=[], request_id="q", user_id="v")  # it is another person's
    log.shown(3 * S, 2 * H, items=[]).shown(2 * H, items=[], request_id="q")
    result = log.run()
    assert result.duplicates == [("impressions", 0, 1), ("impressions", 0, 3)]
    assert value(result, "window_requests", **HOUR) == 1


def test_whoever_saw_nothing_is_in_the_experiment() -> None:
    settings = parse(
        {
            "dimensions": [{"name": "variant"}],
            "windows": {"lengths": ["1h"]},
            "experiments": [
                {
                    "name": "e",
                    "dimension": "variant",
                    "control": "A",
                    "split": {"A": 1, "B": 1},
                    "start": "2023-11-14",
                    "metrics": [{"name": "zero_results_ratio"}],
                }
            ],
        }
    )
    log = Log().shown(0, items=["a"], variant="A").shown(0, items=[], variant="B", user_id="v")
    result = log.run(settings)
    users = {arm: value(result, "experiment_users", experiment="e", arm=arm) for arm in "AB"}
    assert users == {"A": 1, "B": 1}
    log.truth(settings)
