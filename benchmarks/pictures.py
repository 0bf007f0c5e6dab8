"""Pictures and a table of what benchmarks/peers and benchmarks/scaling.py have written.

    python -m benchmarks.pictures

Reads docs/benchmarks-peers.json and docs/benchmarks-scaling.json; writes docs/benchmarks-peers.svg
and docs/how-to/scaling.svg, and prints the table of docs/benchmarks.md.
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
from benchmarks.peers.run import costs

DOCS = Path(__file__).parents[1] / "docs"
OURS, OTHERS, FLOORS = "#1f6feb", "#8b949e", "#d0d7de"
mpl.rcParams.update({"svg.hashsalt": "streamer", "font.size": 9, "axes.spines.top": False})
mpl.rcParams.update({"axes.spines.right": False, "svg.fonttype": "path"})
FLOOR_NAMES = {some.name for some in CONTESTANTS if some.wrong is not_done}
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
    rows = []
    for name, result in results.items():
        if result["runs"]:
            found = [costs(pair) for pair in result["runs"]]
            spent = sorted(cpu for _, cpu in found)
            rates = [rate for rate, _ in found if rate is not None]
            rate = f"{statistics.median(rates):,.0f}" if rates else ""
            peak = max(pair[1]["peak_mb"] for pair in result["runs"])
            rows.append((statistics.median(spent), spent, rate, peak, name, result["leaves_out"]))
    rows.sort()
    print("| contestant | CPU s a million | events/s | peak MB | its counts leave out |")
    print("| --- | --- | --- | --- | --- |")
    for cpu, spent, rate, peak, name, leaves_out in rows:
        span = f"{spent[0]:.2f} to {spent[-1]:.2f}"
        print(f"| {name} | {cpu:.2f} ({span}) | {rate} | {peak:,.0f} | {leaves_out} |")
    figure, axes = plt.subplots(figsize=(7.5, 0.28 * len(rows) + 0.8), layout="constrained")
    names = [row[4] for row in rows]
    colours = [
        OURS
        if name.startswith("streamer")
        else FLOORS
        if "decod" in name or "msgspec" in name
        else OTHERS
        for name in names
    ]
    bars = axes.barh(names, [row[0] for row in rows], color=colours)
    axes.bar_label(bars, [f"{row[0]:.3g}" for row in rows], padding=3)
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
