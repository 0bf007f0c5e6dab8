"""What a change of settings does to stored state, in words, before it is done."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from streamer.errors import SettingsError
from streamer.metrics.rollups import CROSSED
from streamer.state.contents import Contents, Listed
from streamer.stats.experiments.trials import CompiledExperiment, all_wanted

_WHY = {
    "attribution.click": "impressions that a longer time would join have left, and what was joined "
    "in a longer time is counted",
    "attribution.conversion": "impressions that a longer time would join have left, and what was "
    "joined in a longer time is counted",
    "attribution.session_gap": "sessions are stored as this gap made them",
    "time.max_lateness": "joins are final, and rows have left, by this time",
    "time.max_skew": "request ids belong to their slates by this time",
    "items.category": "stored lists are of the other categories",
}
_WHY_FIELD = "ids, dimensions and values that are stored were read from the other field"
TWO_WAYS = (
    "set it back, or start anew with another redis.prefix and another kafka.group, which read "
    "again what Kafka still holds"
)
_ROLLUPS = "metrics.rollups"
_EXPOSED = re.compile(r"(?:exposed|attributed) (.*?) by .* from -?\d+.*", re.DOTALL)
"""The name of what exposes users, and in it that of the experiment (``trials.Exposure.name``)."""
_BEGINS = "counted from the restart on"
_GAINS = "metrics of slates are counted again from the restart on"
_REDEFINED = {
    "dimensions": "keeps other values from the restart on",
    "metrics.feedback: gains": _GAINS,
    "metrics.margin": "margin_loss is counted again from the restart on",
}


@dataclass(frozen=True)
class SettingChange:
    """Something that a setting lists, and what becomes of it. ``begins``: it is counted from the
    restart on; ``drops``: what was counted of it is deleted; ``is_refused``: state is not
    continued."""

    setting: str
    key: str
    value: str
    effect: str
    begins: bool = False
    drops: bool = False
    is_refused: bool = False

    def __str__(self) -> str:
        """One line, for people."""
        return f"{self.setting}: {self.effect}"


def changes(stored: Contents, ours: Contents) -> list[SettingChange]:
    """What these settings change in a state that holds something else; refusals come first."""
    found = list(_refused(stored, ours))
    for setting in dict.fromkeys((*ours.listed, *stored.listed)):
        theirs, own = stored.listed.get(setting, {}), ours.listed.get(setting, {})
        if setting == _ROLLUPS:  # those of a dimension that comes or goes follow from it
            both = {*stored.dimensions} & {*ours.dimensions}
            theirs, own = (
                {key: of for key, of in some.items() if both.issuperset(key.split(CROSSED))}
                for some in (theirs, own)
            )
        found += _listed(setting, theirs, own)
    if not found and list(stored.dimensions) != list(ours.dimensions):
        found.append(SettingChange("dimensions", "", "", "in another order: nothing else changes"))
    return found


def require_continuable(stored: Contents, ours: Contents, prefix: str) -> list[SettingChange]:
    """What changes; SettingsError naming every setting that cannot be changed in place."""
    found = changes(stored, ours)
    if refused := [str(change) for change in found if change.is_refused]:
        raise SettingsError(f"the state under {prefix!r}: {'; '.join(refused)}; {TWO_WAYS}")
    return found


def dropped_experiments(
    stored: Iterable[str], trials: Sequence[CompiledExperiment]
) -> Iterator[SettingChange]:
    """Those of which no user is counted under these settings. ``stored``: ``Manifest.scopes``."""
    wanted = {what.name for what, _ in all_wanted(trials)}
    for name in sorted({*stored} - wanted):
        if found := _EXPOSED.fullmatch(name):
            effect = f"{found[1]} (users {name}) is dropped, with what was counted of it"
            yield SettingChange("experiments", name, found[1], effect, drops=True)


def require_accepted(found: Iterable[SettingChange], accepted: Collection[str]) -> None:
    """SettingsError naming all that is dropped, if it is not to be; ``accepted``: names."""
    dropped = [each for each in found if each.drops and each.value not in accepted]
    if dropped:
        names = " ".join(
            f"--accept-drop={quote(x)}" for x in dict.fromkeys(d.value for d in dropped)
        )
        raise SettingsError(
            f"{'; '.join(dict.fromkeys(map(str, dropped)))}; set it back, or drop it with {names}"
        )


def _refused(stored: Contents, ours: Contents) -> Iterator[SettingChange]:
    for name, value in ours.fixed.items():
        was = stored.fixed.get(name, value)
        if was != value:
            yield _refusal(name, was, value, _WHY[name])
    moved: dict[tuple[str, str, str], list[str]] = {}
    for log, fields in ours.fields.items():
        before = stored.fields.get(log, fields)
        for name, field in fields.items():
            was = before.get(name, field)
            if was != field:
                moved.setdefault((name.partition(" of ")[0], was, field), []).append(log)
    for (name, was, field), logs in moved.items():
        where = ", ".join(map(repr, dict.fromkeys(logs)))
        yield _refusal(f"{name} in {where}", was, field, _WHY_FIELD)


def _refusal(name: str, was: str, value: str, why: str) -> SettingChange:
    effect = f"is {value}, was {was}; it cannot be changed in place: {why}"
    return SettingChange(name, "", value, effect, is_refused=True)


def _listed(setting: str, stored: Listed, ours: Listed) -> Iterator[SettingChange]:
    for key, (value, definition) in ours.items():
        if key not in stored:
            if key:  # without one it is a choice that was not needed before
                yield SettingChange(setting, key, value, f"{value} is new: {_BEGINS}", begins=True)
        elif stored[key][1] != definition:
            again = f"{value} is defined otherwise: counted again from the restart on"
            effect = _REDEFINED.get(setting, again)
            named = f"{value} {effect}" if setting == "dimensions" else effect
            yield SettingChange(setting, key, value, named, begins=setting != "dimensions")
    for key, (value, _) in stored.items():
        if key and key not in ours:
            yield SettingChange(
                setting, key, value, f"{value} is dropped, with what was counted of it", drops=True
            )
