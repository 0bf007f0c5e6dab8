"""``streamer export-sums``: what the readout of an experiment is computed from, as Parquet."""

from __future__ import annotations

import argparse
import os

from streamer.cli.readout import ReadoutRequest, read_experiment
from streamer.cli.terminal import print_line
from streamer.errors import StreamerError
from streamer.library.experiment import ExperimentReport
from streamer.settings.load import load


def main(args: argparse.Namespace) -> int:
    """Write the file; what it held before is replaced. UsageError without pyarrow."""
    settings = load(args.config, os.environ)
    stored, readout, code = read_experiment(settings, ReadoutRequest(args.experiment), args.file)
    table = ExperimentReport(stored, readout).sums().to_arrow()
    from pyarrow import parquet

    try:
        parquet.write_table(table, args.parquet)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StreamerError(
            f"cannot write the sums: {reason}; at {args.parquet}; name another file with --parquet"
        ) from error
    print_line(f"Written: {args.parquet}")
    return code
