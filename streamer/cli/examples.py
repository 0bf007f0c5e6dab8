"""Examples of each command, for its help and for docs/commands.md."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "demo": ("streamer demo", "streamer demo --seconds 60 --port 9000"),
    "init": (
        "streamer init events.ndjson.gz -o streamer.toml",
        "streamer init --brokers localhost:9092 --topic clicks",
    ),
    "view": ("streamer view events.ndjson", "streamer view week.ndjson.zst -c streamer.toml"),
    "replay": (
        "streamer replay events.ndjson -c streamer.toml",
        "streamer replay events.csv --json > readings.json",
        "zcat events.gz | streamer replay -",
    ),
    "check": ("streamer check -c streamer.toml", "streamer check -c streamer.toml --strict"),
    "run": ("streamer run -c streamer.toml", "streamer run -c streamer.toml --workers 4"),
    "apply": ("streamer apply new.toml", "streamer apply new.toml --accept-drop device"),
    "export": ("streamer export -c streamer.toml", "streamer export --host 0.0.0.0 --port 8000"),
    "act": ("streamer act -c streamer.toml", "streamer act --failed"),
    "produce": (
        "streamer produce --create 8 -c streamer.toml",
        "streamer produce events.ndjson -c streamer.toml --speed 10",
        "streamer produce --synthetic 300",
    ),
    "rekey": ("streamer rekey -c streamer.toml", "streamer rekey -c streamer.toml --until-end"),
    "metrics": ("streamer metrics", "streamer metrics ctr_ratio", "streamer metrics ndcg --json"),
    "inspect": ("streamer inspect -c streamer.toml", "streamer inspect 3 --verify"),
    "why": (
        "streamer why ctr -c streamer.toml",
        "streamer why ctr -c streamer.toml --from 2026-11-02T14:00 --to 2026-11-02T15:00",
        "streamer why ctr events.ndjson -c streamer.toml --field app_version",
    ),
    "history": (
        "streamer history --parquet history.parquet -c streamer.toml",
        "streamer history events.ndjson.zst --openmetrics history.om -c streamer.toml",
    ),
    "readout": (
        "streamer readout -c streamer.toml",
        "streamer readout ranker -c streamer.toml",
        "streamer readout ranker --by country --file events.ndjson",
    ),
    "report": ("streamer report ranker --html ranker.html -c streamer.toml",),
    "export-sums": ("streamer export-sums ranker --parquet sums.parquet -c streamer.toml",),
    "plan": (
        "streamer plan ctr_ratio --lift 2% --file events.ndjson",
        "streamer plan cvr_ratio --lift 0.05 --experiment ranker -c streamer.toml",
    ),
    "backup": ("streamer backup shop.backup -c streamer.toml",),
    "erase": ("streamer erase --person u-1842 -c streamer.toml",),
    "restore": ("streamer restore shop.backup -c streamer.toml",),
    "dashboards": ("streamer dashboards grafana -c streamer.toml",),
    "rules": (
        "streamer rules prometheus -c streamer.toml --page https://streamer.example",
        "streamer rules prometheus -c streamer.toml --check",
    ),
    "completion": (
        "streamer completion bash > ~/.local/share/bash-completion/completions/streamer",
    ),
}
"""Command → calls of it."""
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Try it": ("demo", "init", "view", "replay"),
    "Run it": ("check", "run", "apply", "export", "act", "produce", "rekey"),
    "Read experiments": ("readout", "report", "export-sums", "plan"),
    "Look things up": ("why", "history", "metrics", "inspect"),
    "Keep state": ("backup", "restore", "erase"),
    "Set up other programs": ("dashboards", "rules", "completion"),
}
"""Title → commands, as `streamer --help` lists them."""
