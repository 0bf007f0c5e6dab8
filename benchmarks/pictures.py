"""Pictures and pages of what benchmarks/peers and benchmarks/scaling.py have measured.

    python -m benchmarks.pictures

Reads docs/benchmarks-peers.json and docs/benchmarks-scaling.json; writes docs/benchmarks-peers.svg,
docs/benchmarks-peers.md and docs/how-to/scaling.svg.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

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
PANELS = {
    "partitions": ("partitions, one worker", "ns", "CPU ns an event"),
    "segments": ("values of a dimension", "ns", "CPU ns an event"),
    "users": ("users", "ns", "CPU ns an event"),
    "slate": ("items of a slate", "ns", "CPU ns an event"),
    "windows": ("windows", "ns", "CPU ns an event"),
    "series": ("series", "scrape_ms", "ms a scrape"),
    "commits": ("events a second", "kb", "kB a commit"),
    "takeover": ("open events", "seconds", "seconds to take over"),
}
"""Curve → what x is, the figure that is shown, and what that is."""


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
    """A panel a curve."""
    figure, panels = plt.subplots(2, 4, figsize=(11, 5), layout="constrained")
    for axes, (name, (what, shown, unit)) in zip(panels.flat, PANELS.items(), strict=True):
        points = curves[name]
        x = [point["series" if name == "series" else "x"] for point in points]
        axes.plot(x, [point[shown] for point in points], marker="o", color=OURS)
        if name != "windows":
            axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(what)
        axes.set_ylabel(unit)
    figure.savefig(DOCS / "how-to" / "scaling.svg", metadata={"Date": None})


if __name__ == "__main__":
    peers(json.loads((DOCS / "benchmarks-peers.json").read_text(encoding="utf-8")))
    scaling(json.loads((DOCS / "benchmarks-scaling.json").read_text(encoding="utf-8")))
