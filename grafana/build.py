"""The dashboards, generated from what streamer declares.

python -m grafana.build                       writes grafana/dashboards/*.json
python -m grafana.build --check               exits 1 and names those that are not current
python -m grafana.build -c streamer.toml --out DIR    for the dimensions and alerts of your settings

Without settings they are for those of docker-compose.yml.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import table
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from grafana.alerts import Alerts
from grafana.custom import Custom
from grafana.declared import declared
from grafana.engagement import Engagement
from grafana.experiments import Experiments
from grafana.intervals import Intervals
from grafana.overview import Overview
from grafana.processor import Processor
from grafana.ranking import Ranking
from grafana.rules import compose_settings
from grafana.scores import Scores
from streamer.cli import generated
from streamer.settings.load import load
from streamer.settings.model import Settings

DASHBOARDS = Path(__file__).parent / "dashboards"


def pages(settings: Settings) -> dict[str, str]:
    """File name → JSON of every dashboard."""
    series = declared()
    boards = {
        "overview.json": Overview(series, settings).build().build(),
        "engagement.json": Engagement(series, settings).build().build(),
        "alerts.json": Alerts(series, settings).build().build(),
        "experiments.json": Experiments(series).build().build(),
        "intervals.json": Intervals(series, settings).build().build(),
        "ranking.json": Ranking(series, settings).build().build(),
        "custom.json": Custom(series, settings).build().build(),
        "scores.json": Scores(series, settings).build().build(),
        "processor.json": Processor(series).build().build(),
    }
    found = {}
    for name, board in boards.items():
        _tidy(board)
        found[name] = json.dumps(board, cls=JSONEncoder, indent=1, sort_keys=True) + "\n"
    return found


def _tidy(board: Dashboard) -> None:
    """Numbers of panels, which links need; without what the library adds and Grafana 12 lacks."""
    for number, panel in enumerate(board.panels or [], 1):
        panel.id_val = number
        if isinstance(panel, Panel) and isinstance(panel.options, table.Options):
            panel.options.footer = None
    for variable in board.templating.list_val or []:
        variable.auto = variable.auto_count = variable.auto_min = None  # of intervals only


def main(argv: Sequence[str] | None = None) -> int:
    """Write the dashboards, or with ``--check`` compare them."""
    parser = generated.parser("grafana.build", __doc__ or "")
    parser.add_argument("-c", "--config", metavar="FILE", help="settings: dimensions, alerts")
    parser.add_argument("--out", type=Path, default=DASHBOARDS, metavar="DIR", help="where to")
    arguments = parser.parse_args(argv)
    settings = load(arguments.config, os.environ) if arguments.config else compose_settings()
    files = {arguments.out / name: text for name, text in pages(settings).items()}
    return generated.keep(files, "grafana.build", arguments.check)


if __name__ == "__main__":
    sys.exit(main())
