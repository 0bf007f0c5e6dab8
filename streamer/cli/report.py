"""``streamer report``: an experiment as one HTML file, to be mailed or kept."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from streamer.cli.readout import ReadoutRequest, read_experiment, read_exploration
from streamer.cli.terminal import print_line
from streamer.errors import StreamerError
from streamer.formatting import minute
from streamer.query.readout import readout_of
from streamer.query.scorecard import scorecard
from streamer.server.web.scorecards import report
from streamer.settings.load import load


def main(args: argparse.Namespace) -> int:
    """Write the file; what it held before is replaced."""
    settings = load(args.config, os.environ)
    request, explorations = ReadoutRequest(args.experiment, by=args.by), []
    if args.by is None:
        stored, readout, code = read_experiment(settings, request, args.file)
    else:
        stored, exploration, code = read_exploration(settings, request, args.by, args.file)
        readout, explorations = stored.read(), [exploration]
    found = readout_of(stored, readout, with_history=True)
    written = f"{minute(round(1000 * time.time()))} UTC"
    html = report(scorecard(found, explorations), written)
    try:
        Path(args.html).write_text(html, encoding="utf-8")
    except OSError as error:
        raise StreamerError(
            f"cannot write the report: {error.strerror}; at {args.html}; name another file with "
            "--html"
        ) from error
    print_line(f"Written: {args.html}")
    return code
