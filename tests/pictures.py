"""The dashboards as pictures: ``python -m tests.pictures`` writes build/pictures/*.png.

All services of docker-compose.yml but Grafana run, with every family of metrics on and twenty
minutes of traffic in the topics. Prometheus scrapes for a while; then the queries of every panel
are asked for the range in which the page opens, cut to what was scraped.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamer.monitoring.files import boards
from tests.support.compose import ROOT, SCRAPE_SECONDS
from tests.support.drawing import Data, Line, Row, draw, organized
from tests.support.opened import asked, filled_in, opened, panels_of
from tests.support.past_traffic import everything, stack_with_past

_POINTS = 120


def main(argv: Sequence[str] | None = None) -> int:
    """Run the stack, and draw every page."""
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description=__doc__)
    parser.add_argument("--seconds", type=float, default=240, help="how long Prometheus scrapes")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "pictures", metavar="DIR")
    parser.add_argument("--prometheus", metavar="URL", help="one that runs, in place of the stack")
    args = parser.parse_args(argv)
    if args.prometheus:
        draw_pages(args.prometheus, args.out, args.seconds)
        return 0
    with tempfile.TemporaryDirectory() as directory:
        stack = stack_with_past(Path(directory))
        try:
            print(f"Prometheus: {stack.url(9090)}", flush=True)
            time.sleep(args.seconds)
            draw_pages(stack.url(9090), args.out, args.seconds)
        finally:
            stack.stop()
    return 0


def draw_pages(prometheus: str, folder: Path, seconds: float) -> None:
    """A picture of each page, over the last ``seconds``."""
    now = time.time()
    span = (now - seconds, now)
    for name, page in boards(everything(), "http://localhost:8000").items():
        chosen = opened(
            page,
            lambda label, series: asked(prometheus, f"label/{label}/values", **{"match[]": series}),
            __rate_interval=f"{5 * SCRAPE_SECONDS}s",
        )
        data = {panel["id"]: data_of(prometheus, panel, chosen, span) for panel in panels_of(page)}
        for row in page["panels"]:
            for panel in (row, *row.get("panels", ())):
                panel["title"] = filled_in(panel["title"], chosen)
        draw(page, data, folder / f"{name}.png", span)
        print(f"{folder / name}.png: {len(data)} panels", flush=True)


def data_of(prometheus: str, panel: Any, chosen: dict[str, str], span: tuple[float, float]) -> Data:
    """The answers to the queries of a panel."""
    lines, rows = [], []
    renamed = organized(panel).get("renameByName", {})
    refs = {}
    only = len(panel["targets"]) == 1
    for target in panel["targets"]:
        ref = target["refId"]
        refs[ref] = renamed.get("Value" if only else f"Value #{ref}", "")
        expr = filled_in(target["expr"], chosen)
        if target["range"]:
            step = f"{max(1, round((span[1] - span[0]) / _POINTS))}"
            found = asked(
                prometheus, "query_range",
                query=expr, start=f"{span[0]}", end=f"{span[1]}", step=step,
            )  # fmt: skip
            for series in found["result"]:
                values = [(float(t), float(v)) for t, v in series["values"]]
                times, numbers = zip(*values, strict=True)
                name = named(target, series["metric"], chosen)
                lines.append(Line(name, list(times), list(numbers)))
        else:
            for series in asked(prometheus, "query", query=expr)["result"]:
                name = named(target, series["metric"], chosen)
                rows.append(Row(ref, name, series["metric"], float(series["value"][1])))
    return Data(lines, rows, refs)


def named(target: Any, labels: dict[str, str], chosen: dict[str, str]) -> str:
    """The legend of a series."""
    text = filled_in(target["legendFormat"], chosen)
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), text)


if __name__ == "__main__":
    sys.exit(main())
