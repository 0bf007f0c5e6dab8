"""Random experiments whose unit is not the user, over a random log whose lines name stores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import msgspec

from streamer.settings.experiments import Experiment, Switchback
from streamer.settings.model import Settings
from streamer.settings.schedules import shares_of
from streamer.settings.validation import validate

STORE = "store"
STORES = ("s1", "s2", "s3", "s4", "s5", "Zürich ✓", "other", "")
"""What lines name; some are no store."""


def with_units(
    settings: Settings, log: Sequence[bytes], random: Random
) -> tuple[Settings, list[bytes]]:
    """Settings with some more experiments, by stores and by slots of time, and the log with stores
    in most of its lines."""
    if not settings.experiments or random.random() < 0.3:
        return settings, list(log)
    plain = [e for e in settings.experiments if e.outcomes == "exposed"]
    more = [by_store(random, e) for e in plain[:2]]
    more += [by_time(random, e) for e in settings.experiments[: random.randint(0, 2)]]
    named = [
        msgspec.structs.replace(e, name=f"unit-{i}", explore=(), layer="", holdout=False)
        for i, e in enumerate(more)
    ]
    found = msgspec.structs.replace(settings, experiments=(*settings.experiments, *named))
    validate(found)
    return found, [naming(line, random) for line in log]


def by_store(random: Random, experiment: Experiment) -> Experiment:
    """The experiment with stores in place of users."""
    return msgspec.structs.replace(experiment, unit=STORE, key=experiment.called)


def by_time(random: Random, experiment: Experiment) -> Experiment:
    """The experiment with arms by time."""
    arms, slot = experiment.arms, random.choice(("1m", "10m", "1h", "6h"))
    some = (*random.choices(arms, k=random.randint(2, 7)), *arms)
    lists = [some[-i:] + some[:-i] for i in range(3)]
    shares = shares_of({"*": lists[0]})
    schedule = dict(zip(random.sample((*STORES[:6], "*"), 3), lists, strict=True))
    is_of_stores = random.random() < 0.7
    return msgspec.structs.replace(
        experiment,
        dimension="",
        arm=(),
        split=shares,
        key="",
        outcomes="exposed",
        covariate_days=0,
        switchback=Switchback(
            by=STORE if is_of_stores else "",
            slot=slot,
            washout=random.choice((None, "20s", "5m")) if slot != "1m" else None,
            schedule=schedule if is_of_stores else lists[0],
        ),
    )


def naming(line: bytes, random: Random) -> bytes:
    """A line that names a store, mostly; not one that is no object."""
    text = line.rstrip()
    if random.random() < 0.3 or not (text.startswith(b"{") and text.endswith(b"}")):
        return line
    store = json.dumps(random.choice(STORES), ensure_ascii=random.random() < 0.5)
    return text[:-1] + f', "{STORE}": {store}}}'.encode()
