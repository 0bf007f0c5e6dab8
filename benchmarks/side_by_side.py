"""The same events in several forms, each fed to a core of its own, side by side in one process."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.endless import Run
from streamer.kafka.chunk import Records
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.state.snapshot import view_of

Fed = Sequence[Sequence[Records]]
"""What is applied together, in order."""


def counted(run: Run, fed: Fed) -> tuple[float, Any]:
    """CPU seconds, users' sums included, and the readings."""
    begun = time.process_time()
    for batch in fed:
        applied = run.partition.apply(batch)
        assert applied.unknown_schemas is None
        run.partition.refresh_user_sums()
    took = time.process_time() - begun
    run.partition.apply((), at_end=list(run.settings.logs))
    found = readout(run.settings, run.catalogue, [view_of(run.partition)]).readings
    counts = [reading for reading in found if reading.name != "streamer_source_info"]
    return took, {(r.name, frozenset(r.labels.items())): r.value for r in counts}


def compare(
    forms: Mapping[str, tuple[Mapping[str, Any], Fed]],
    rounds: int,
    prepare: Callable[[str, Run], None] | None = None,
) -> int:
    """Print the median ratio of each form (settings, what is fed) to the first; 1 where readings
    are not equal."""
    took: dict[str, list[float]] = {name: [] for name in forms}
    right = True
    for _ in range(rounds):
        expected = None
        for name, (document, fed) in forms.items():
            run = Run(parse(document))
            if prepare is not None:
                prepare(name, run)
            seconds, readings = counted(run, fed)
            took[name].append(seconds)
            expected = expected or readings
            right = right and readings == expected and len(readings) > 100
    base = next(iter(took.values()))
    ratios: dict[str, float] = {}
    for name, spent in took.items():
        values = [value for batch in forms[name][1] for some in batch for value in some.values]
        size = sum(len(value or b"") for value in values) / len(values)
        ratio = statistics.median(a / b for a, b in zip(spent, base, strict=True))
        each = statistics.median(spent) / len(values) * 1e9
        print(f"{name}: {each:.0f} ns an event of {size:.0f} bytes, {ratio:.2f}")
        ratios[name] = round(ratio, 2)
    print(json.dumps(ratios | {"readings are equal": right}))
    return 0 if right else 1
