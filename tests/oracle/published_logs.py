"""Clean logs whose metrics of people and visits can be recomputed by the published definitions.

What is recomputed, and how: ``tests.oracle.published``.
"""

from __future__ import annotations

from streamer.settings.load import parse
from streamer.sources import open_bandit
from streamer.sources.synthetic import SyntheticTraffic, generate
from tests.oracle.published import NAMES, Values
from tests.support.rollups import every

SETTINGS = parse(
    {
        "dimensions": [{"name": "variant"}],
        "windows": {"lengths": ["1h", "24h"]},
        "metrics": every("variant"),
    }
)
TRAFFIC = SyntheticTraffic(
    seed=3,
    events_per_second=0.15,
    users=250,
    items=80,
    slate=6,
    variants=(("A", 0.10), ("B", 0.15)),
    items_form_share=0.3,
    session_share=0.8,
    pause_share=0.1,
)
"""Over 24 hours in 16,000 lines; after a pause a session goes on without its dimensions."""
SKETCHED = "streamer_window_session_length_seconds"


def synthetic() -> list[bytes]:
    """Lines of made-up traffic."""
    return [line for _, line in generate(TRAFFIC, 16_000)]


def packaged() -> list[bytes]:
    """Lines of the packaged A/B test."""
    return [line for _, line in open_bandit.lines(open_bandit.events())]


def compared(got: Values, expected: Values, sketched: float = 1e-9) -> list[str]:
    """What differs by more than 1e-9 (quantiles: by the part ``sketched``), is missing, or more."""
    keys = {key for key in got if key[0] in NAMES and _kind_of(key[1]) == "click"} | expected.keys()
    found = []
    for key in keys:
        a, b = got.get(key), expected.get(key)
        near = sketched * abs(b or 0) if key[0] == SKETCHED else 0.0
        if a is None or b is None or abs(a - b) > near + 1e-9:
            found.append(f"{key[0]} {dict(key[1])}: {a}, not {b}")
    return found


def _kind_of(labels: frozenset[tuple[str, str]]) -> str:
    return dict(labels).get("feedback", "click")
