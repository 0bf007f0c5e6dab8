"""Random experiments over a random log, for comparing the engine with the oracle."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import msgspec

from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.experiments import Experiment, ExperimentMetric
from streamer.settings.model import Settings
from streamer.settings.validation import validate

from . import items, off_policy, own_ratios, scores
from .acceptance import accept
from .dimensions import Kept
from .experiment_metrics import RATIOS
from .files import records_of_log
from .user_days import measures_of

NOWHERE = ("never-0", "never-1", "never-2")
"""Arms that no log has."""
ENGAGEMENT = (
    *(
        "clicks_per_user",
        "dwell_mean_seconds",
        "dwell_seconds_per_user",
        "bounce_rate_ratio",
        "views_per_session",
        "zero_results_ratio",
    ),
    *("session_length_mean_seconds", "sessions_per_user", "user_hit_ratio"),
)
"""The others without options are of the family traffic."""
Spellings = tuple[str, ...]
"""Names of one metric that all mean the same."""


def with_experiments(
    settings: Settings, log: Sequence[bytes], random: Random | None = None
) -> Settings:
    """The settings, with one to three experiments on days and values that a log has.

    Without ``random`` the experiments depend on the log alone. Settings without dimensions, and a
    log without impressions, have none. An experiment may have begun only after the log's end.
    """
    random = Random(zlib.crc32(b"\n".join(log))) if random is None else random
    verdict = accept(records_of_log(log, settings), settings)
    impressions = [e for e in verdict.events if e.topic == "impressions"]
    stream_ms = verdict.stream_time_ms()
    if not settings.dimensions or not impressions or stream_ms is None:
        return settings
    kept = Kept(verdict.events, settings)
    shown = [kept.shown(e.dims) for e in impressions]
    days = range(min(e.event_ms for e in impressions) // DAY_MS, stream_ms // DAY_MS + 1)
    metrics = list(metrics_of(settings))
    numbers = [i for i, _ in enumerate(settings.dimensions) if kept.overall[i]] or [0]
    experiments = []
    for number in range(random.randint(1, 3)):
        i = random.choice(numbers)
        arms = some_arms(random, Counter(values[i] for values in shown))
        start = days.stop if random.random() < 0.1 else random.choice([*days[:2], *days])
        end = None if random.random() < 0.6 else date_of(start + random.randint(0, 2))
        chosen = random.sample(metrics, min(len(metrics), random.randint(3, 12)))
        experiments.append(
            Experiment(
                name=f"test-{number}",
                dimension=settings.dimension_names[i],
                control=random.choice(arms),
                split={arm: random.choice((0.5, 1.0, 1.0, 2.0)) for arm in arms},
                start=date_of(start),
                end=end,
                metrics=tuple(some_metric(random, random.choice(names)) for names in chosen),
                covariate_days=random.choice((0, 1, 2)),
                explore=tuple(
                    name
                    for j, name in enumerate(settings.dimension_names)
                    if j != i and random.random() < 0.3
                ),
                outcomes=random.choice(("exposed", "exposed", "attributed")),
            )
        )
    found = msgspec.structs.replace(settings, experiments=tuple(experiments))
    validate(found)
    return found


def some_arms(random: Random, shown: Counter[str]) -> list[str]:
    """Two or three values, the frequent ones mostly; sometimes one that never occurs."""
    n = random.choice((2, 2, 3))
    used = [value for value, _ in shown.most_common() if value not in ("other", "unknown")]
    if random.random() < 0.85:
        used = used[: n + 1]
    arms = random.sample(used, min(n, len(used)))
    if len(arms) == n and random.random() < 0.15:
        arms.pop()
    return [*arms, *NOWHERE[: n - len(arms)]]


def some_metric(random: Random, name: str) -> ExperimentMetric:
    """Metrics per user are capped in every third case, and of another third it is a percentile."""
    chance = random.random() if name.partition("@")[0].endswith("_per_user") else 0.0
    if chance > 2 / 3:
        return ExperimentMetric(name=f"{name}@{random.choice(('p50', 'p90', 'p12.5', 'p99'))}")
    is_capped = chance > 1 / 3
    cap = random.choice((1.0, 2.0, 35.5, 0.5, 0.9, 0.999)) if is_capped else None
    return ExperimentMetric(name=name, cap=cap)


def metrics_of(settings: Settings) -> Iterator[Spellings]:
    """All metrics of the settings' families."""
    families = settings.metrics.families
    for name in RATIOS:
        if ("engagement" if name in ENGAGEMENT else "traffic") in families:
            yield (name,)
    of_rows = (scores.ratios, off_policy.ratios, items.ratios, own_ratios.ratios)
    for name in (name for ratios in of_rows for name in ratios(settings)):
        yield (name,)
    for composite in settings.composites:
        if all(part.against != "day_before" for part in composite.parts):
            yield (f"composite@{composite.name}",)
    if "engagement" in families:
        for kind in settings.user_feedback_kinds:
            name = f"positive_rate_ratio.{kind}"
            yield (name, "positive_rate_ratio") if kind == "click" else (name,)
    for name, measure in measures_of(settings).items():
        if measure.over_all:
            yield name, f"{name}.all"
            yield (f"{name}.engaged",)
        else:
            yield (name,)


def settled(
    log: Sequence[bytes], settings: Settings, random: Random, share: float = 0.8
) -> list[bytes]:
    """The log, but this share of its users have one value of a dimension throughout.

    In random logs nearly everybody sees several arms; here most do not, as there are three values
    for them, the most frequent ones. What has no value keeps none, and what is broken stays broken.
    """
    fields = settings.events.fields
    user_pattern = id_field(fields.get("user_id", "user_id"))
    lines = list(log)
    for dimension in settings.dimension_names:
        pattern = text_field(fields.get(dimension, dimension))
        seen = Counter(found[2] for line in lines if (found := pattern.search(line)))
        frequent = [value for value, _ in seen.most_common(4) if value != b"unknown"][:3]
        own: dict[bytes, bytes | None] = {}
        for i, line in enumerate(lines):
            user, value = user_pattern.search(line), pattern.search(line)
            if user is None or value is None or value[2] == b"unknown":
                continue
            name = user[1] or user[2]
            if name not in own:
                own[name] = random.choice(frequent) if random.random() < share else None
            text = own[name]
            if text is not None:
                lines[i] = line[: value.start(2)] + text + line[value.end(2) :]
    return lines


def id_field(name: str) -> re.Pattern[bytes]:
    """A field of a JSON line that holds a text, without escapes, or an integer."""
    return re.compile(rb'"' + re.escape(name.encode()) + rb'":\s*(?:"([^"\\]+)"|(\d+))')


def text_field(name: str) -> re.Pattern[bytes]:
    """A field of a JSON line that holds a text without escapes."""
    return re.compile(rb'("' + re.escape(name.encode()) + rb'":\s*)"([^"\\]*)"')
