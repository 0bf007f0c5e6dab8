"""Prometheus' own opinion of a page of metrics."""

from __future__ import annotations

import asyncio
import subprocess

from tests.support.required import program


async def promtool_finds_nothing(page: str) -> None:
    promtool = program("Prometheus", "promtool")
    done = await asyncio.to_thread(
        subprocess.run,
        [promtool, "check", "metrics"],
        input=page,
        check=False,
        capture_output=True,
        text=True,
    )
    remarks = (done.stdout + done.stderr).splitlines()
    # Its one remark: quantiles of a gauge, which are no summary, for they are of a window.
    known = ' non-summary metrics should not have "quantile" label'
    left = [remark for remark in remarks if not remark.endswith(known)]
    assert not left, left
