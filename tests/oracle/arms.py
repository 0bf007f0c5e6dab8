"""Which arms events say, and who was exposed to which arm when.

A value is the arm itself, or it says the arms of several experiments by their keys:

- a text, a number, true or false: the arm; a text may also be a list `ranker:new,layout:wide`;
- an object that names an experiment and an arm: that one; any other object: arms by experiment, and
  the arm that it names, if it does;
- an object with fields that are called like experiments of PostHog or Amplitude: those alone;
  LaunchDarkly's state of all flags;
- a list of objects that name an experiment and an arm, of pairs, or of texts `ranker:new`.

An experiment or an arm may be named by an object with a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamer.settings.experiments import Experiment
from streamer.settings.model import Settings

from .parsing import Decimals, Object, Whole
from .shape import Event

BY_PATH = "experiment_arms"
"""Field of rekeyed events with an object: path → value."""
EXPERIMENT_NAMES = (
    *("experiment", "experiment_key", "experimentKey", "experiment_name", "experimentName"),
    *("experiment_id", "experimentId", "allocatedExperiment", "flagKey", "flag_key"),
    "feature_flag.key",
    *("featureFlag", "featureName", "feature", "flag", "gate", "config", "test"),
    *("key", "name", "id"),
)
ARM_NAMES = (
    *("arm", "variant", "variation", "variationKey", "variation_key", "variationName"),
    *("variation_name", "feature_flag.result.variant", "feature_flag.variant"),
    *("feature_flag.result.value", "experimentGroupName", "experiment_group"),
    *("group", "groupName", "group_name", "bucket", "treatment"),
    *("variationId", "variation_id", "gateValue", "value", "ruleID"),
)
EXPERIMENT_OBJECTS = ("experiment", "feature", "flag", "test")
ARM_OBJECTS = ("arm", "variant", "variation", "treatment", "group", "result")
PROPERTY = re.compile(r"(?:\$feature/|\[Experiment\] )(.*)", re.DOTALL)
Said = tuple[str | None, str]
"""Key of an experiment, None: whichever the value is of; and the arm."""


@dataclass(frozen=True)
class Saw:
    """An event that says that its user is in an arm. ``how``: `dimension`, `field` or `event`."""

    event_ms: int
    arm: str
    how: str
    event: Event


def saw_of(events: Iterable[Event], experiment: Experiment, settings: Settings) -> Iterator[Saw]:
    """What fields of events, and events of exposures, say of an experiment's arms."""
    paths = paths_of(experiment, settings)
    for event in events:
        if event.line:
            continue
        if event.experiment == experiment.called and event.arm in experiment.arms:
            yield Saw(event.event_ms, event.arm or "", "event", event)
        for path, key, arm in event.said_of_arms:
            is_of_it = path in paths and key in (None, experiment.called)
            if is_of_it and arm in experiment.arms:
                yield Saw(event.event_ms, arm, "field", event)


def paths_of(experiment: Experiment, settings: Settings) -> tuple[str, ...]:
    """Where events say the arm of an experiment: what it says itself, else the default."""
    if experiment.dimension or experiment.switchback:
        return ()
    paths = experiment.arm or settings.experiments_defaults.arm
    return (paths,) if isinstance(paths, str) else paths


def said_of_arms(
    value: Mapping[str, Any], settings: Settings
) -> tuple[tuple[str, str | None, str], ...]:
    """What an event says at all paths of arms: path, key and arm."""
    found = []
    for path in {path for e in settings.experiments for path in paths_of(e, settings)}:
        values = at_path(value, path.split(".")), at_path(value, [BY_PATH, path])
        found += [(path, *said) for its in values for said in said_by(its)]
    return tuple(found)


def at_path(value: Any, names: list[str]) -> Any:
    """The value at the end of some names."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


# Values ------------------------------------------------------------------------------------------


def said_by(value: Any) -> list[Said]:
    """What a value says.

    >>> said_by("new"), said_by("ranker:new, layout=wide")[1:]
    ([(None, 'new')], [('ranker', 'new'), ('layout', 'wide')])
    """
    if isinstance(value, list):
        return [said for element in value for said in said_by_element(element)]
    if isinstance(value, Object):
        return said_by_object(value)
    text = text_of(value)
    return [(None, text), *assignments_in(text)] if text else []


def said_by_element(element: Any) -> list[Said]:
    if isinstance(element, Object):
        return assignment_of(element)
    if isinstance(element, list):
        pair = [text_of(part) for part in element]
        return [(pair[0], pair[1])] if len(pair) == 2 and all(pair) else []
    return assignments_in(text_of(element))


def said_by_object(value: Object) -> list[Said]:
    named = [(match[1], its) for key, its in value.items() if (match := PROPERTY.fullmatch(key))]
    if named:
        return [(key, text) for key, its in named if (text := text_of(its))]
    if "$flagsState" in value:
        states = value["$flagsState"]
        flags = states.items() if isinstance(states, Object) else ()
        arms = [(flag, text_of(value.get(flag)) or variation_of(its)) for flag, its in flags]
        return [(flag, arm) for flag, arm in arms if arm]
    if one := assignment_of(value):
        return one
    found: list[Said] = []
    for key, its in value.items():
        arm = (
            first_of(its, (*ARM_NAMES, "key", "name")) if isinstance(its, Object) else text_of(its)
        )
        found += [(key, arm)] if arm else []
    arm = first_of(value, ARM_NAMES)
    return [*found, *([(None, arm)] if arm else [])]


def assignment_of(value: Object) -> list[Said]:
    """The experiment and the arm that an object names; nothing where it lacks one of them."""
    experiment = first_of(value, EXPERIMENT_NAMES) or key_of(value, EXPERIMENT_OBJECTS)
    arm = first_of(value, ARM_NAMES) or key_of(value, ARM_OBJECTS)
    return [(experiment, arm)] if experiment and arm else []


def first_of(value: Object, names: tuple[str, ...]) -> str:
    """The text of the first of some fields that has one."""
    return next((text for name in names if (text := text_of(value.get(name)))), "")


def key_of(value: Object, names: tuple[str, ...]) -> str:
    """The key in the first of some fields that holds an object with one."""
    objects = [its for name in names if isinstance(its := value.get(name), Object)]
    return next((key for its in objects if (key := first_of(its, ("key", "name", "id")))), "")


def variation_of(state: Any) -> str:
    return first_of(state, ("variation",)) if isinstance(state, Object) else ""


def assignments_in(text: str) -> list[Said]:
    """The parts of a text that are an experiment and an arm, with `:` or `=` between them."""
    parts = (re.fullmatch(r"(.*)[:=](.*)", part, re.DOTALL) for part in re.split("[,;|]", text))
    pairs = [(part[1].strip(), part[2].strip()) for part in parts if part]
    return [(key, arm) for key, arm in pairs if key and arm]


def text_of(value: Any) -> str:
    """A text, or a number, true or false as it is written; nothing of anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Whole | Decimals):
        return value.text
    return value if isinstance(value, str) else ""
