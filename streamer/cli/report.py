"""``streamer report``: an experiment as one HTML file, to be mailed or kept."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from streamer.cli.readout import ReadoutRequest, read_experiment
from streamer.errors import StreamerError
from streamer.query.readout_document import document, history
from streamer.server.web.frozen import frozen
from streamer.settings.load import load


def main(args: argparse.Namespace) -> int:
    """Write the file; what it held before is replaced."""
    settings = load(args.config, os.environ)
    stored, readout, code = read_experiment(settings, ReadoutRequest(args.experiment), args.file)
    html = frozen(document(stored, readout) | {"history": history(stored)})
    try:
        Path(args.html).write_text(html, encoding="utf-8")
    except OSError as error:
        raise StreamerError(
            f"cannot write the report: {error.strerror}; at {args.html}; name another file with "
            "--html"
        ) from error
    print(f"Written: {args.html}")
    return code
