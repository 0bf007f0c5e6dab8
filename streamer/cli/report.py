"""``streamer report``: an experiment as one HTML file, to be mailed or kept."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from streamer.cli.readout import Asked, read_experiment
from streamer.cli.report_page import page
from streamer.errors import StreamerError
from streamer.query.experiments import document, history
from streamer.settings.load import load


def main(args: argparse.Namespace) -> int:
    """Write the file; what it held before is replaced."""
    settings = load(args.config, os.environ)
    stored, found, code = read_experiment(settings, Asked(args.experiment), args.file)
    text = page(document(stored, found) | {"history": history(stored)})
    try:
        Path(args.html).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StreamerError(
            f"cannot write the report: {error.strerror}; at {args.html}; name another file with "
            "--html"
        ) from error
    print(f"Written: {args.html}")
    return code
