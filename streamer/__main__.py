"""``python -m streamer``."""

from __future__ import annotations

import sys

from streamer.cli.main import main

sys.exit(main())
