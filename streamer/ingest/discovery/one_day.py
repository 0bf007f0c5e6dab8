"""Tables with one row for each person, and no time: an experiment of one day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamer.ingest.discovery.dimensions import Dimensions, ProposedDimension
from streamer.ingest.discovery.drafts import Draft
from streamer.ingest.discovery.kinds import YES, Kinds, Value, are_flags
from streamer.ingest.discovery.names import VARIANT
from streamer.ingest.discovery.profile import Profile, Seen, is_id, nearly_all
from streamer.ingest.discovery.writing import toml_value
from streamer.settings.experiments import ExperimentDefaults
from streamer.settings.limits import MAX_NAME_CHARS
from streamer.settings.paths import Path, text_of
from streamer.settings.sources import FieldSource

_DAY = "2000-01-01"
"""Of all rows: none that anybody takes for true."""
_ITEM = "row"
_MOST_ARMS, _LEAST_OF_ARM = 10, 5


def _experiment(
    name: str, arms: Mapping[str, int], metrics: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The lines of an experiment, each with what is not sure about it. ``arms``: arm → its rows,
    the control first."""
    yield "[[experiments]]", ""
    yield f"name = {toml_value(name)}", ""
    yield f"dimension = {toml_value(VARIANT)}", ""
    control = next(iter(arms))
    is_usual = control in ExperimentDefaults().controls
    yield f"control = {toml_value(control)}", "" if is_usual else "? the first in the alphabet"
    rows = ", ".join(f"{n:,}" for n in arms.values())
    shares = toml_value(dict.fromkeys(arms, 1))
    yield f"split = {shares}", f"? the planned shares; looked at were {rows} rows"
    yield f"start = {_DAY}", "one day, as the table has no time"
    yield f"end = {_DAY}", ""
    yield "min_days = 1", ""
    yield "whole_weeks = false", ""
    yield f"metrics = {toml_value([{'name': metric} for metric in metrics])}", ""


def as_one_day(draft: Draft) -> None:
    """Makes an experiment of one day of a table that has one row for each person, with an arm and
    no time."""
    table = _table_of_people(draft)
    if table is None:
        return
    shape, (profile, people, arm) = draft.shape, table
    taken = {people, arm.path}
    flags = [(p, s) for p, s in profile.scalars.items() if p not in taken and _is_flag(s)]
    numbers = [
        (path, seen)
        for path, seen in profile.scalars.items()
        if path not in taken and seen.is_numeric and seen.distinct > 2 and not is_id(path)
    ]
    if not flags and not numbers:
        return
    fields: dict[str, FieldSource] = {
        "ts": {"constant": f"{_DAY}T00:00:00Z"},
        "user_id": text_of(people),
        "item_id": {"constant": _ITEM},
    }
    of_each_row = ("impression", *(["conversion"] if numbers else []))
    kinds = (*of_each_row, *(["click"] if flags else []))
    shape.kinds = Kinds(fixed=of_each_row)
    if flags:
        path, seen = flags[0]
        texts = seen.values.most_common()
        values = [Value(text, kind, n) for text, n in texts for kind in of_each_row]
        values += [Value(text, "click", n) for text, n in texts if text in YES]
        shape.kinds = Kinds(path=path, values=tuple(values))
    shape.fields = {kind: dict(fields) for kind in kinds}
    if numbers:
        shape.fields["conversion"]["value"] = text_of(numbers[0][0])
    shape.profiles = dict.fromkeys(kinds, profile)
    others = [text_of(path) for path, _ in (*flags[1:], *numbers[1:])]
    what = f"there is no time: the rows are an experiment of one day, {_DAY}"
    shape.doubts = [f"ts: {what}"]
    outcomes = [text_of(path) for path, _ in (*flags[:1], *numbers[:1])]
    more = f", and not {', '.join(others)}" if others else ""
    shape.doubts.append(f"kind: the outcome is {' and '.join(outcomes)}{more}")
    draft.dimensions = Dimensions((arm,), (), is_asked=True)
    metrics = ["ctr_ratio"] * bool(flags) + ["conversion_value_per_user"] * bool(numbers)
    controls = ExperimentDefaults().controls
    arms = sorted(arm.seen.values, key=lambda text: (text not in controls, text))
    rows = {text: arm.seen.values[text] for text in arms}
    draft.experiment = list(_experiment(shape.topics[0][:MAX_NAME_CHARS], rows, metrics))


def _table_of_people(draft: Draft) -> tuple[Profile, Path, ProposedDimension] | None:
    """The rows of a table, who they are of, and the arm; None where it is none such."""
    shape = draft.shape
    profile = next(iter(shape.profiles.values()), None)
    if profile is None or shape.preset or shape.is_ours or shape.kinds.is_sure:
        return None
    scalars = profile.scalars
    ids = [path for path, seen in scalars.items() if is_id(path) and not _is_label(seen)]
    people = ids[0] if ids and all(_is_unique(scalars[path], profile) for path in ids) else None
    has_time = any(seen.unit is not None for path, seen in scalars.items() if path != people)
    arms = [one for one in (*draft.dimensions.chosen, *draft.dimensions.arms) if one.path != people]
    arms = [one for one in arms if one.name == VARIANT] or [
        ProposedDimension(VARIANT, path, seen)
        for path, seen in scalars.items()
        if path != people and _is_arm(seen) and not _is_flag(seen)
    ]
    if people is None or has_time or not arms or profile.lists or profile.id_lists:
        return None
    return profile, people, arms[0]


def _is_unique(seen: Seen, profile: Profile) -> bool:
    is_full = nearly_all(seen.count, profile.records)
    return is_full and seen.is_id and seen.repeats <= profile.copies + seen.count // 100


def _is_arm(seen: Seen) -> bool:
    is_text = seen.texts == seen.count and not seen.is_numeric
    is_often = seen.count >= _LEAST_OF_ARM * seen.distinct
    return is_text and is_often and 2 <= seen.distinct <= _MOST_ARMS


def _is_label(seen: Seen) -> bool:
    return not seen.is_id or _is_arm(seen) or _is_flag(seen)


def _is_flag(seen: Seen) -> bool:
    return seen.distinct == 2 and are_flags(seen)
