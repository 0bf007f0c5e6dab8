"""One worker of streamer; ``--only`` with the job's own metrics, and an hour beside its window, so
that the windows of a whole log can be looked at; else with all that is counted by default."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import redis

from benchmarks.peers import job
from streamer.cli.run import worker_command, worker_environment
from streamer.state.worker_report import SUPERVISOR

ONLY = """
[metrics]
families = ["traffic"]
rollups = [["variant", "surface"]]
[windows]
lengths = ["5m", "1h"]
"""
DEFAULT = """
[metrics]
rollups = [["variant"], ["surface"], ["variant", "surface"]]
"""
SETTINGS = """
[kafka]
brokers = "{brokers}"
group = "{prefix}"
[kafka.topics]
{topics}
[redis]
url = "{redis}"
prefix = "{prefix}"
"""


def main() -> None:
    """Become the worker; ``{prefix}:benchmark`` says how what it counts is read."""
    parser = job.parser()
    parser.add_argument("--only", action="store_true")
    arguments = parser.parse_args()
    names = (*job.TOPICS, "dead_letters")
    topics = "\n".join(f'{name} = "{name}{arguments.suffix}"' for name in names)
    settings = SETTINGS.format(**vars(arguments), topics=topics)
    settings += ONLY if arguments.only else DEFAULT
    path = Path(tempfile.mkdtemp(prefix="streamer-peers-")) / "streamer.toml"
    path.write_text(settings, encoding="utf-8")
    redis.Redis.from_url(arguments.redis).set(f"{arguments.prefix}:benchmark", settings)
    command = worker_command()
    environment = worker_environment(str(path)) | {SUPERVISOR: str(os.getppid())}
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main()
