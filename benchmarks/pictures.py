"""Pictures and pages of what benchmarks/peers and benchmarks/scaling.py have measured.

    python -m benchmarks.pictures

Reads docs/benchmarks-peers.json and docs/benchmarks-scaling.json; writes docs/benchmarks-peers.svg,
docs/benchmarks-peers.md, docs/how-to/scaling.svg and docs/how-to/beyond-one-machine.md.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks import beyond_one_machine
from benchmarks.peers.contestant import not_done
from benchmarks.peers.contestants import CONTESTANTS
from benchmarks.peers.run import costs, figures

DOCS = Path(__file__).parents[1] / "docs"
OURS, OTHERS, FLOORS = "#1f6feb", "#8b949e", "#d0d7de"
mpl.rcParams.update({"svg.hashsalt": "streamer", "font.size": 9, "axes.spines.top": False})
mpl.rcParams.update({"axes.spines.right": False, "svg.fonttype": "path"})
FLOOR = "rdkafka and typed decoding"
HEAD = "| contestant | CPU s a million | × floor | events/s | peak MB | its counts leave out |"
FLOOR_NAMES = {some.name for some in CONTESTANTS if some.wrong is not_done}
PAGE = """<!-- Written by `python -m benchmarks.pictures`. -->

# The same job in other engines

`make bench-peers` runs this: CTR and CVR by variant and surface in sliding windows of five
minutes, a new one every five seconds, from Apache Kafka into Redis. All read the same logs of
four partitions, of JSON of 200 bytes: 88 % impressions, 8 % clicks, 1 % conversions, 3 %
sessions. Every count of every window is compared with plain addition; of streamer, the totals of
each segment and the windows that end with a minute are.

Each program is written as its own documentation would have it, with the settings that were the
cheapest here. Figures are medians of three alternating rounds, with their span, and the
difference of a short log and a long one: no start, and no first compilation, is in them. Where
a start takes as long as the difference, no rate is told. All share two cores with Kafka and
Redis, so that rates are those of such a machine. The two floors only fetch and decode;
*× floor* is CPU beside that in Rust, round by round. *Panes*
are windows of five seconds that the program adds up by hand. [Raw
results](benchmarks-peers.json).

`denormalized` 0.0.13 (DataFusion) is not among them: it drops what comes for a window that it
has already written, how late that may be cannot be set, and one of nine runs lost clicks. On a
backlog, Kafka Streams needs a grace that is as long as the log, and documented windows of Faust
follow the wall clock.

![CPU seconds a million events](benchmarks-peers.svg)
"""
Take = Callable[[Mapping[str, Any]], float]


def of(name: str) -> Take:
    """A figure of a point, by its name."""
    return lambda point: float(point[name])


def filled_seconds(point: Mapping[str, Any]) -> float:
    """When a browser has filled the page."""
    return float(point["in Chromium"]["filled_ms"]) / 1000


PANELS: Sequence[tuple[str, str, Take, Take, str]] = (
    ("partitions", "partitions, one worker", of("x"), of("ns"), "CPU ns an event"),
    ("segments", "values of a dimension", of("x"), of("ns"), "CPU ns an event"),
    ("users", "users", of("x"), of("ns"), "CPU ns an event"),
    ("slate", "items of a slate", of("x"), of("ns"), "CPU ns an event"),
    ("windows", "windows", of("x"), of("ns"), "CPU ns an event"),
    ("commits", "events a second", of("x"), of("kb"), "kB a commit"),
    ("commits", "events a second", of("x"), of("redis_share_of_a_core"), "cores of Redis"),
    ("takeover", "open events", of("x"), of("seconds"), "seconds to take over"),
    ("series", "series", of("series"), of("scrape_s"), "seconds a scrape"),
    ("series", "series", of("series"), filled_seconds, "seconds to fill the page"),
    ("exporter", "partitions of 5,000 segments", of("x"), of("scrape_s"), "seconds a scrape"),
    ("exporter", "partitions of 5,000 segments", of("x"), of("exporter_mb"), "MB of the exporter"),
)
"""Curve, what x is, x and y of a point, and what y is."""


def peers(results: Mapping[str, Any]) -> None:
    """Bars of CPU a million events, and the table."""
    floor = [costs(pair)[1] for pair in results[FLOOR]["runs"]]
    right = [(figures(result), name) for name, result in results.items() if result["runs"]]
    rows = sorted(right, key=lambda row: row[0].cpu)
    lines = [PAGE, HEAD, "| --- | --- | --- | --- | --- | --- |"]
    for of, name in rows:
        result = results[name]
        cpus = [costs(pair)[1] for pair in result["runs"]]
        beside = statistics.median(a / b for a, b in zip(cpus, floor, strict=True))
        span = f"{of.costs[0]:.3g} to {of.costs[-1]:.3g}"
        cells = (name, f"{of.cpu:.3g} ({span})", f"{beside:.3g}", of.rate, f"{of.peak_mb:,.0f}")
        lines.append(f"| {' | '.join(cells)} | {result['leaves_out']} |")
    (DOCS / "benchmarks-peers.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    figure, axes = plt.subplots(figsize=(7.5, 0.28 * len(rows) + 0.8), layout="constrained")
    names = [name for _, name in rows]
    colours = [
        OURS
        if name.startswith("streamer")
        else FLOORS
        if "decod" in name or "msgspec" in name
        else OTHERS
        for name in names
    ]
    bars = axes.barh(names, [of.cpu for of, _ in rows], color=colours)
    axes.bar_label(bars, [f"{of.cpu:.3g}" for of, _ in rows], padding=3)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("CPU seconds a million events (logarithmic)")
    figure.savefig(DOCS / "benchmarks-peers.svg", metadata={"Date": None})


def scaling(curves: Mapping[str, Any]) -> None:
    """The panels."""
    figure, panels = plt.subplots(3, 4, figsize=(11, 7), layout="constrained")
    for axes, (name, what, x, y, unit) in zip(panels.flat, PANELS, strict=True):
        points = curves[name]
        drawn = [x(point) for point in points], [y(point) for point in points]
        axes.plot(*drawn, marker="o", color=OURS)
        if name != "windows":
            axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(what)
        axes.set_ylabel(unit)
    figure.savefig(DOCS / "how-to" / "scaling.svg", metadata={"Date": None})


if __name__ == "__main__":
    peers(json.loads((DOCS / "benchmarks-peers.json").read_text(encoding="utf-8")))
    measured = json.loads((DOCS / "benchmarks-scaling.json").read_text(encoding="utf-8"))
    scaling(measured)
    page = DOCS / "how-to" / "beyond-one-machine.md"
    page.write_text(beyond_one_machine.page(measured), encoding="utf-8")
