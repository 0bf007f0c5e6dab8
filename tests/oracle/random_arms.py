"""Random arms that fields of events and events of exposures say, over a random log and experiments.

Each user has one arm of an experiment, mostly, and some see several. Values say arms in every form,
and some say nothing that is an arm. Events of exposures come before, after and at the time of other
events of their user; some are late, copies, wrong, or nobody's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec

from streamer.settings.experiments import Experiment, ExperimentDefaults
from streamer.settings.model import Settings
from streamer.settings.validation import validate

from .arms import paths_of, text_of
from .files import fields_of
from .parsing import BrokenError, parse
from .random_log import FAR_MS

ARMS = (
    ("old", "new", "newer"),
    ("1", "2", "3"),
    ("false", "true", "maybe"),
    ("0.5", "1.5", "A"),
    ("B", "Zoë ✓", "all of it"),
)
"""Arms of an experiment, of which it has two or three; some are no texts in JSON."""
SHARED = "experiments"
"""The path whose values say the arms of several experiments."""
NOWHERE = "nowhere.to.be.found"
NOTHING: tuple[Any, ...] = (
    None,
    [],
    {},
    "",
    7,
    [1, {}],
    ["", [], ["new"]],
    {"deep": {"deep": {"arm": "new"}}},
    ":",
)
"""Values that say no arm."""
Pairs = list[tuple[str, str]]


class Spoken(NamedTuple):
    """A line that is an event of a user, mostly."""

    user: str
    at_ms: int
    value: dict[str, Any]


def with_arms(
    settings: Settings, log: Sequence[bytes], random: Random
) -> tuple[Settings, list[bytes]]:
    """Settings of which about half of the experiments have an arm in place of a dimension, and the
    log with lines that say arms. In some settings events of exposures are not read."""
    if not settings.experiments:
        return settings, list(log)
    experiments = [
        by_field(random, e, settings) if random.random() < 0.4 else e for e in settings.experiments
    ]
    for number in range(random.randint(0, 1 + (len(experiments) < 3))):
        copied = msgspec.structs.replace(random.choice(experiments), name=f"more-{number}")
        experiments.append(by_field(random, copied, settings))
    topic = "exposures" if random.random() < 0.85 else None
    topics = msgspec.structs.replace(settings.kafka.topics, exposures=topic)
    found = msgspec.structs.replace(
        settings,
        experiments=tuple(experiments),
        experiments_defaults=ExperimentDefaults(arm=SHARED),
        kafka=msgspec.structs.replace(settings.kafka, topics=topics),
    )
    validate(found)
    return found, Talk(random, found).lines(log)


def by_field(random: Random, experiment: Experiment, settings: Settings) -> Experiment:
    """The experiment with other arms, which stand at a path, or several."""
    name = experiment.name
    arms = random.choice(ARMS)[: len(experiment.arms)]
    paths: list[str | tuple[str, ...]] = [
        *((), (), SHARED, f"{SHARED}.{name}", f"flags.{name}", f"ab_{name}", NOWHERE),
        (f"ab_{name}", SHARED, f"context.its.{name}"),
    ]
    return msgspec.structs.replace(
        experiment,
        dimension="",
        arm=random.choice(paths),
        key=random.choice(("", "", f"key of {name}", "one")),
        control=random.choice(arms),
        split=dict.fromkeys(arms, 1.0),
        outcomes="exposed",
        explore=tuple(n for n in settings.dimension_names if random.random() < 0.4),
    )


class Talk:
    """What the lines of a log say of arms."""

    def __init__(self, random: Random, settings: Settings) -> None:
        self.random, self.settings = random, settings
        self.own: dict[tuple[str, str], str | None] = {}
        self.share = random.choice((0.05, 0.4))
        self.serial = 0

    def lines(self, log: Sequence[bytes]) -> list[bytes]:
        """The log with fields in some lines, and events of exposures between them."""
        random = self.random
        spoken = [spoken_of(line, self.settings) for line in log]
        for its in spoken:
            for experiment in self.settings.experiments:
                if its is not None:
                    self.meet(its.user, its.value, experiment)
        placed: list[tuple[float, bytes]] = []
        for place, (line, its) in enumerate(zip(log, spoken, strict=True)):
            if its is None:
                placed.append((place, line))
                continue
            is_said = random.random() < self.share
            placed.append((place, self.saying(line, its.user) if is_said else line))
            if its.at_ms < FAR_MS and random.random() < 0.12:
                placed += [
                    (place + delay + random.choice((-0.5, 0.5)), made)
                    for delay, made in self.exposures(its)
                ]
        return [line for _, line in sorted(placed, key=lambda each: each[0])]

    def meet(self, user: str, value: dict[str, Any], experiment: Experiment) -> None:
        """Give a user an arm: that of the first line with any, where a dimension says it; None:
        another one each time."""
        name = self.settings.events.fields.get(experiment.dimension, experiment.dimension)
        said = text_of(value.get(name)) if name else ""
        if (user, experiment.name) in self.own or (name and said not in experiment.arms):
            return
        arm = said or self.random.choice(experiment.arms)
        self.own[user, experiment.name] = arm if self.random.random() < 0.85 else None

    def arm_of(self, user: str, experiment: Experiment) -> str:
        """What is said of a user now; not always an arm."""
        if self.random.random() < 0.008:
            return self.random.choice(("neither", "unknown", *experiment.arms))
        return self.own.get((user, experiment.name)) or self.random.choice(experiment.arms)

    # Fields --------------------------------------------------------------------------------------

    def saying(self, line: bytes, user: str) -> bytes:
        """A line with fields that say arms of its user."""
        random = self.random
        said: dict[str, Any] = {}
        paths = [p for e in self.settings.experiments for p in paths_of(e, self.settings)]
        for path in sorted({*paths} - {NOWHERE}):  # of all before of one in it
            of_path = [e for e in self.settings.experiments if path in paths_of(e, self.settings)]
            its = [e for e in of_path if random.random() < 0.8]
            if its and random.random() < 0.8:
                put(said, path.split("."), self.value(user, its, is_shared=path == SHARED))
        if random.random() < 0.1 and paths:
            its = list(self.settings.experiments)
            said["experiment_arms"] = {random.choice(paths): self.value(user, its, is_shared=True)}
        if not said:
            return line
        text = json.dumps(said, ensure_ascii=random.random() < 0.5)[1:]
        return line.rstrip()[:-1] + b", " + text.encode()

    def value(self, user: str, experiments: list[Experiment], is_shared: bool) -> Any:
        """A value that says the arms of some experiments."""
        random = self.random
        if random.random() < 0.06:
            return random.choice(NOTHING)
        pairs = [(e.called, self.arm_of(user, e)) for e in experiments]
        if not is_shared and random.random() < 0.7:
            arm = typed(random, pairs[0][1])
            return random.choice((arm, arm, {"variant": arm}, {"enabled": True, "group": arm}))
        return of_several(random, pairs)

    # Events of exposures -------------------------------------------------------------------------

    def exposures(self, near: Spoken) -> Iterator[tuple[float, bytes]]:
        """An event of exposures near another one of the user, perhaps a copy: with how many lines
        later each comes."""
        random, late_ms = self.random, self.settings.time.max_lateness_ms
        experiment = random.choice(self.settings.experiments)
        apart_ms = random.choice((0, 0, 0, 1, -1, 1000, late_ms // 9, late_ms // 2, 2 * late_ms))
        value = {
            "type": "exposure",
            "ts": near.at_ms - apart_ms,
            "user_id": near.user,
            "experiment": experiment.called if random.random() < 0.95 else "another",
            "arm": typed(random, self.arm_of(near.user, experiment)),
        }
        if random.random() < 0.08:
            value[random.choice(("user_id", "experiment", "arm"))] = random.choice((None, "", []))
        if random.random() < 0.4:
            self.serial += 1
            value["event_id"] = f"x{self.serial}"
        yield random.choice((0, 0, 3, 20)), self.exposure(value)
        if "event_id" in value and random.random() < 0.4:
            other = {**value, "arm": random.choice(experiment.arms)}
            yield random.choice((0, 5, 40)), self.exposure(random.choice((value, other)))

    def exposure(self, value: dict[str, Any]) -> bytes:
        """The line of one; some say arms in fields, too, or what is of no matter."""
        random, names = self.random, self.settings.events.fields
        if random.random() < 0.2:
            value = {**value, "item_id": [], "request_id": {}, "note": None}
        line = json.dumps({names.get(ours, ours): it for ours, it in value.items()}).encode()
        is_said = isinstance(value["user_id"], str) and random.random() < 0.2
        return self.saying(line, value["user_id"]) if is_said else line


def spoken_of(line: bytes, settings: Settings) -> Spoken | None:
    """User, time and fields of a line that is JSON and has them."""
    try:
        value = parse(line)
    except BrokenError:
        return None
    user = text_of(value.get(settings.events.fields.get("user_id", "user_id")))
    at_ms = fields_of(line, settings)[1]
    return Spoken(user, at_ms, value) if user and at_ms is not None else None


def put(said: dict[str, Any], names: list[str], value: Any) -> None:
    """A value at the end of some names, unless something else stands on the way."""
    within: Any = said
    for name in names[:-1]:
        within = within.setdefault(name, {})
        if not isinstance(within, dict):
            return
    within[names[-1]] = value


def typed(random: Random, arm: str) -> Any:
    """An arm as JSON has it: sometimes a number, true or false."""
    try:
        value = json.loads(arm)
    except ValueError:
        return arm
    return value if random.random() < 0.5 and json.dumps(value) == arm else arm


def of_several(random: Random, pairs: Pairs) -> Any:
    """Experiments and arms in one value, in one of the forms that tools have."""
    its = [(key, typed(random, arm)) for key, arm in pairs]
    forms = (
        lambda: dict(its),
        lambda: {key: random.choice((arm, {"variant": arm}, {"name": arm})) for key, arm in its},
        lambda: {key: {"value": arm, "enabled": True} for key, arm in its},
        lambda: [{"name": key, "arm": arm} for key, arm in its],
        lambda: [{"flagKey": key, "id": 7, "variation_id": arm} for key, arm in its],
        lambda: [[key, arm] for key, arm in its],
        lambda: [f"{key}{random.choice(':=')}{arm}" for key, arm in pairs],
        lambda: random.choice(",;|").join(f" {key} : {arm} " for key, arm in pairs),
        lambda: {"experiment": its[0][0], "treatment": its[0][1]},
    )
    return random.choice(forms)()
