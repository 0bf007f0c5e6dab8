"""Arguments of the command line: a parser for each command."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Callable, Sequence
from typing import NoReturn

from streamer import __version__
from streamer.cli.argument_types import (
    count,
    date,
    hash_key,
    label,
    moment,
    partition,
    port,
    positive,
    share,
)
from streamer.cli.examples import EXAMPLES, GROUPS
from streamer.errors import UsageError
from streamer.ingest.hash_key import FIXED_KEY
from streamer.settings.names import nearest

_FILES = "JSON, logs, .csv or .tsv (also .gz, .zst), or .parquet; - is standard input (JSON, logs)"
SHELLS = ("bash", "zsh", "fish")
_EXAMPLES_HEADING = "Examples:"


_Add = Callable[[str, str], argparse.ArgumentParser]


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps what a command does, and leaves its examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(_EXAMPLES_HEADING):
            return text
        return super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Raises a ``UsageError`` instead of exiting, so that usage errors print one line, too."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of exiting."""
        raise UsageError(f"{message}; see `{self.prog} --help`")


class _TopParser(Parser):
    """The parser of ``streamer`` itself, whose help lists the commands by what they are for."""

    def format_help(self) -> str:
        """The commands in groups, then the options."""
        does = {name: command.description or "" for name, command in commands(self).items()}
        widest = max(map(len, does))
        room = max(40, shutil.get_terminal_size().columns) - widest - 6
        lines = ["usage: streamer COMMAND [OPTION …]", "", str(self.description)]
        for title, names in GROUPS.items():
            lines += ["", f"{title}:"]
            for name in names:
                first, *rest = textwrap.wrap(does[name], room)
                lines.append(f"  {name:<{widest}}  {first}")
                lines += [f"{'':{widest + 4}}{line}" for line in rest]
        lines += ["", "Options:", "  -h, --help  of a command: its arguments and examples"]
        lines += ["  --version   print the version", "  --debug     show the traceback of an error"]
        first_steps = (EXAMPLES["demo"][0], EXAMPLES["view"][0], EXAMPLES["init"][0])
        lines += ["", _EXAMPLES_HEADING, *(f"  {each}" for each in first_steps)]
        return "\n".join(lines) + "\n"


class _ShowVersion(argparse.Action):
    """Prints the version, and that of what is stored: releases with the same one read each other's
    state."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from streamer.state.manifest import VERSION  # not for every command

        print(f"streamer {__version__}, stored state {VERSION}")
        parser.exit()


def parser() -> Parser:
    """The parser of all commands."""
    shared = Parser(add_help=False)
    shared.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the traceback of an error",
    )
    top = _TopParser(
        prog="streamer",
        description="Live, exact metrics of a recommender, from Kafka events.",
        parents=[shared],
        allow_abbrev=False,
    )
    top.add_argument("--version", action=_ShowVersion, nargs=0, help="print the version")
    added = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )

    def command(name: str, text: str) -> argparse.ArgumentParser:
        calls = "\n".join(f"  {each}" for each in EXAMPLES[name])
        return added.add_parser(
            name,
            help=text,
            description=text,
            epilog=f"{_EXAMPLES_HEADING}\n{calls}",
            formatter_class=_HelpFormatter,
            parents=[shared],
            allow_abbrev=False,
        )

    _add_init(command)
    _add_live(command)
    _add_readers(command)
    _add_replay(command)
    _add_produce(command)
    _add_view(command)
    _add_look(command)
    _add_monitoring(command)
    return top


def commands(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Name → parser of every command."""
    found = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments of one command; UsageError where they are wrong."""
    top = parser()
    known = commands(top)
    given = next((word for word in arguments if not word.startswith("-")), None)
    if given is not None and given not in known:
        close = nearest(given, known)
        meant = f"did you mean {close!r}?" if close else f"the commands are {', '.join(known)};"
        raise UsageError(f"no command {given!r}: {meant} see `streamer --help`")
    args, unknown = top.parse_known_args(arguments)
    if unknown:
        raise UsageError(_not_understood(unknown[0], known[args.command]))
    return args


def _not_understood(word: str, command: argparse.ArgumentParser) -> str:
    """What is wrong with a word that a command does not know."""
    see = f"see `{command.prog} --help`"
    options = [name for action in command._actions for name in action.option_strings]
    if not word.startswith("-"):
        hint = "a file is named by --file; " if "--file" in options else ""
        return f"{word!r} is one argument too many; {hint}{see}"
    given = word.partition("=")[0]
    close = nearest(given, [name for name in options if name.startswith("--")])
    return f"no option {given!r}: {f'did you mean {close!r}? ' if close else ''}{see}"


def _settings(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="settings file (TOML); default: built-in values and STREAMER_… environment variables",
    )


def _accept_drop(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--accept-drop",
        action="append",
        default=[],
        metavar="NAME",
        help="delete what was counted of a dimension, window, family, experiment or the like that "
        "the settings do not have any more; without it they are refused (may be repeated)",
    )


def _files(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--file",
        nargs="+",
        metavar="FILE",
        help=f"read these events instead of the state in Redis: {_FILES}",
    )


def _as_is(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--as-is",
        action="store_true",
        help="keep the order of the lines (default: what would be late is sorted by time)",
    )


def _hash_key(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--hash-key",
        type=hash_key,
        default=FIXED_KEY,
        metavar="HEX",
        help="hash ids with this key, from `streamer inspect --hash-key` (default: a fixed key)",
    )


def _times(command: argparse.ArgumentParser, begin: str, end: str) -> None:
    command.add_argument("--from", dest="begin", type=moment, metavar="TIME", help=begin)
    command.add_argument("--to", dest="end", type=moment, metavar="TIME", help=end)


def _strict(command: argparse.ArgumentParser, more: str = "") -> None:
    command.add_argument(
        "--strict",
        action="store_true",
        help=f"exit 1 if any line was late or rejected{more} (default: only if most are no events)",
    )


def _add_init(add: _Add) -> None:
    init = add("init", "propose settings for events of any shape, from files or topics")
    init.add_argument("files", nargs="*", metavar="FILE", help=_FILES)
    init.add_argument("--brokers", metavar="HOST:PORT", help="look at topics of this cluster")
    init.add_argument(
        "--topic", action="append", metavar="NAME", help="look at this topic (default: all topics)"
    )
    init.add_argument(
        "--columns",
        metavar="NAME,…",
        help="names of the columns of .csv and .tsv files without a header row, in order",
    )
    init.add_argument(
        "--registry", metavar="URL", help="schema registry of topics in Avro or Protobuf"
    )
    init.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="settings file whose [kafka] has security and brokers",
    )
    init.add_argument(
        "-o", "--out", metavar="PATH", help="write to this new file (default: standard output)"
    )
    init.add_argument("--strict", action="store_true", help="exit 1 if anything is doubtful")
    init.add_argument(
        "--no-input", action="store_true", help="ask no questions, even in a terminal"
    )


def _add_live(add: _Add) -> None:
    demo = add("demo", "run the whole system on this machine with real traffic, and print its URLs")
    demo.add_argument("--seconds", type=positive, metavar="S", help="stop after S seconds")
    demo.add_argument(
        "--rate", type=positive, default=200, metavar="N", help="events per second (default 200)"
    )
    demo.add_argument("--port", type=port, default=8000, help="port of the exporter (default 8000)")
    demo.add_argument(
        "--kafka",
        metavar="HOST:PORT",
        help="use this Kafka instead of the embedded broker, with topics of its own, which the "
        "demo deletes in the end",
    )

    run = add("run", "consume the topics and keep the metrics in Redis")
    _settings(run)
    run.add_argument(
        "--workers", type=count, default=1, metavar="N", help="worker processes (default 1)"
    )
    run.add_argument(
        "--take-over",
        action="store_true",
        help="where redis.prefix is that of another consumer group, or of other topics, make it "
        "this system's: counts of topics that are read on stay, else all that is stored under it "
        "is deleted (its workers have to be stopped before)",
    )
    _accept_drop(run)

    apply = add("apply", "make settings the newest of a running state, and say what they change")
    apply.add_argument("settings", metavar="FILE", help="the new settings (TOML)")
    apply.add_argument(
        "--fill",
        action="store_true",
        help="count what the topics retain again, beside the running state, so that what is new "
        "has its past; refused where they do not hold all that is counted",
    )
    _accept_drop(apply)

    erase = add("erase", "erase a person from the stored state, while workers run")
    _settings(erase)
    erase.add_argument(
        "--person",
        required=True,
        metavar="ID",
        help="the person's id as events have it: `user_id`, or `join_id`",
    )

    rekey = add("rekey", "write the events of [[sources]] to the four topics, keyed by user")
    _settings(rekey)
    rekey.add_argument(
        "--until-end",
        action="store_true",
        help="end once all events of the sources are written (default: run until stopped)",
    )


def _add_readers(add: _Add) -> None:
    export = add("export", "serve /metrics, /healthz, /readyz and /api from the state in Redis")
    _settings(export)
    export.add_argument("--host", help="address to listen on (default: exporter.host)")
    export.add_argument("--port", type=port, help="port to listen on (default: exporter.port)")

    act = add("act", "tell whom [[actions]] names of what happens to experiments")
    _settings(act)
    act.add_argument("--failed", action="store_true", help="list what could not be delivered")
    act.add_argument(
        "--retry", metavar="KEY", help="let what failed under this key be sent again, or `all`"
    )
    act.add_argument("--json", action="store_true", help="with --failed: print JSON")


def _add_replay(add: _Add) -> None:
    replay = add("replay", "count events of files with the same engine, without Kafka and Redis")
    replay.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
    _as_is(replay)
    _settings(replay)
    shape = replay.add_mutually_exclusive_group()
    shape.add_argument("--prom", action="store_true", help="print the Prometheus text format")
    shape.add_argument("--json", action="store_true", help="print the same JSON as /api/readings")
    replay.add_argument(
        "--dead-letters",
        metavar="FILE",
        help="write the lines that are not counted to this new file, as JSON lines",
    )
    _strict(replay, ", or a mapping looks wrong")
    replay.add_argument(
        "--partitions",
        type=count,
        default=1,
        metavar="N",
        help="count as if topics had N partitions (default 1)",
    )
    _hash_key(replay)


def _add_produce(add: _Add) -> None:
    produce = add("produce", "send events of files to the Kafka topics, keyed by user_id")
    produce.add_argument("files", nargs="*", metavar="FILE", help=_FILES)
    _settings(produce)
    produce.add_argument(
        "--synthetic",
        type=positive,
        metavar="RATE",
        help="send synthetic traffic instead of files, RATE events per second, until stopped",
    )
    produce.add_argument(
        "--speed",
        type=positive,
        metavar="X",
        help="replay X times as fast as real time (default: as fast as possible)",
    )
    _strict(produce)
    produce.add_argument(
        "--create",
        type=count,
        metavar="PARTITIONS",
        help="create missing topics; without FILE and --synthetic, do nothing else",
    )
    produce.add_argument(
        "--retention",
        metavar="DURATION",
        help="how long created topics keep their records, e.g. 7d (default: forever)",
    )


def _add_view(add: _Add) -> None:
    view = add("view", "count events of files, and show them on the page, without Kafka and Redis")
    view.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
    _as_is(view)
    _settings(view)
    view.add_argument("--host", help="address to listen on (default: exporter.host)")
    view.add_argument("--port", type=port, help="port to listen on (default: exporter.port)")


def _add_plan(add: _Add) -> None:
    plan = add("plan", "print how many users and days an experiment takes to find a lift")
    _settings(plan)
    plan.add_argument("metric", metavar="METRIC", help="a metric of experiments, e.g. ctr_ratio")
    plan.add_argument(
        "--lift",
        type=share,
        required=True,
        metavar="SHARE",
        help="relative lift to find, e.g. 2%% or 0.02",
    )
    plan.add_argument(
        "--experiment",
        metavar="NAME",
        help="learn from this experiment: before its start from all users of its covariate days, "
        "afterwards from its control group (default: all users of --file)",
    )
    _files(plan)
    plan.add_argument(
        "--power", type=share, metavar="SHARE", help="probability of finding the lift (default 0.8)"
    )
    plan.add_argument(
        "--alpha", type=share, metavar="SHARE", help="accepted share of false finds (default 0.05)"
    )
    plan.add_argument(
        "--arms",
        type=count,
        default=2,
        metavar="N",
        help="arms of equal size, with the control (default 2)",
    )
    plan.add_argument("--json", action="store_true", help="print it as JSON")


def _add_readouts(add: _Add) -> None:
    readout = add(
        "readout", "print an experiment, or without a name all experiments, most urgent first"
    )
    _settings(readout)
    readout.add_argument(
        "experiment",
        nargs="?",
        metavar="EXPERIMENT",
        help="name of the experiment (default: list all)",
    )
    readout.add_argument(
        "--only",
        choices=("harm", "broken", "ship", "no-effect", "running", "holdout", "not-started"),
        metavar="NEED",
        help="list only experiments with this need: harm, broken, ship, no-effect, running, "
        "holdout or not-started",
    )
    readout.add_argument(
        "--pairs",
        action="store_true",
        help="check pairs of experiments: dependent splits, layers, holdouts",
    )
    readout.add_argument(
        "--across",
        metavar="EXPERIMENT",
        help="test whether the lifts depend on the users' arm in another experiment",
    )
    _files(readout)
    readout.add_argument(
        "--from", dest="first", type=date, metavar="DATE", help="first day (default: the start)"
    )
    readout.add_argument(
        "--to", dest="last", type=date, metavar="DATE", help="last day (default: the latest)"
    )
    readout.add_argument(
        "--by",
        metavar="DIMENSION",
        help="explore: print a readout for each value of a dimension in `explore`",
    )
    readout.add_argument(
        "--json",
        action="store_true",
        help="print the same JSON as /api/experiments/NAME or /api/experiments",
    )


def _add_exports(add: _Add) -> None:
    report = add("report", "write an experiment as one HTML file, to mail or keep")
    _settings(report)
    report.add_argument(
        "experiment", metavar="EXPERIMENT", help="name of the experiment in the settings"
    )
    report.add_argument("--html", required=True, metavar="FILE", help="the file to write")
    report.add_argument("--by", metavar="DIMENSION", help="show its users by a dimension, too")
    _files(report)

    sums = add("export-sums", "write what an experiment's readout is computed from as Parquet")
    _settings(sums)
    sums.add_argument("experiment", metavar="EXPERIMENT", help="name of the experiment")
    sums.add_argument(
        "--parquet",
        required=True,
        metavar="FILE",
        help="the file to write: a row for each day, metric and arm",
    )
    _files(sums)


def _add_history(add: _Add) -> None:
    history = add("history", "write the metrics of windows at each step of the past to a file")
    history.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"read these instead of the state in Redis: {_FILES}",
    )
    _settings(history)
    out = history.add_mutually_exclusive_group(required=True)
    out.add_argument(
        "--openmetrics",
        metavar="OUT",
        help="write OpenMetrics, which promtool puts into Prometheus",
    )
    out.add_argument("--parquet", metavar="OUT", help="write Parquet, a row for each value")
    begin = "the first time, like 2026-11-02T14:00 (UTC; default: all that is kept)"
    _times(history, begin, "end before this time (default: none)")
    history.add_argument(
        "--step", default="5m", metavar="DURATION", help="time between values (default %(default)s)"
    )
    history.add_argument(
        "--metric",
        action="append",
        metavar="NAME",
        help="write this metric only (may be repeated)",
    )
    history.add_argument(
        "--label",
        type=label,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="give all series this label, too, as a scrape does (may be repeated)",
    )
    _hash_key(history)


def _add_why(add: _Add) -> None:
    why = add("why", "find the values in which an alert's metric moved, by reading the log again")
    _settings(why)
    why.add_argument("alert", metavar="ALERT", help="name of the alert")
    why.add_argument(
        "files", nargs="*", metavar="FILE", help=f"read these instead of the topics: {_FILES}"
    )
    begin = "its begin, like 2026-11-02T14:00 (UTC; default: what the alert judges now)"
    _times(why, begin, "its end (default: now)")
    why.add_argument(
        "--field",
        action="append",
        default=[],
        metavar="PATH",
        help="look into this field of events, too (may be repeated)",
    )
    why.add_argument("--json", action="store_true", help="print it as JSON")


def _add_look(add: _Add) -> None:
    _add_why(add)
    _add_history(add)
    backup = add("backup", "write all that is stored under the prefix to a file")
    _settings(backup)
    backup.add_argument("out", metavar="FILE", help="the file to write; it is replaced")

    restore = add("restore", "put a backup back into Redis, unless something newer is there")
    _settings(restore)
    restore.add_argument("backup", metavar="FILE", help="what `streamer backup` wrote")

    check = add("check", "check settings, Kafka and Redis; print each finding with its fix")
    _settings(check)
    check.add_argument(
        "--strict", action="store_true", help="exit 1 at a warning (default: at an error)"
    )

    metrics = add("metrics", "list the metrics with formula, unit and when they are absent")
    metrics.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="list only metrics whose name contains this, e.g. `ctr`",
    )
    metrics.add_argument("--json", action="store_true", help="print it as JSON")

    _add_readouts(add)
    _add_exports(add)
    _add_plan(add)

    inspect = add("inspect", "print the owner, offsets and panes of partitions, as stored in Redis")
    _settings(inspect)
    inspect.add_argument(
        "partition",
        nargs="?",
        type=partition,
        metavar="PARTITION",
        help="number of a partition (default: all)",
    )
    inspect.add_argument("--json", action="store_true", help="print it as JSON")
    what = inspect.add_mutually_exclusive_group()
    what.add_argument(
        "--verify",
        action="store_true",
        help="verify the checksum of every blob; exit 1 if one is damaged or missing",
    )
    what.add_argument(
        "--hash-key",
        action="store_true",
        help="print only the secret key of hashed ids, for `streamer replay`",
    )

    completion = add("completion", "print a shell script that completes commands and options")
    completion.add_argument(
        "shell", choices=SHELLS, metavar="SHELL", help="one of bash, zsh and fish"
    )


def _add_monitoring(add: _Add) -> None:
    boards = add("dashboards", "write dashboards for Grafana from the settings")
    boards.add_argument(
        "directory",
        metavar="DIR",
        help="write dashboards/*.json, and provisioning/ for the data source and the dashboards",
    )
    _settings(boards)
    _page(boards)
    boards.add_argument(
        "--prometheus",
        default="http://localhost:9090",
        metavar="URL",
        help="address of Prometheus for Grafana, in provisioning/ (default %(default)s)",
    )
    boards.add_argument(
        "--path",
        metavar="PATH",
        help="folder of the JSON files for Grafana, in provisioning/ (default: DIR/dashboards)",
    )
    _check(boards)

    rules = add("rules", "write alert rules for Prometheus from the settings, and routes for them")
    rules.add_argument(
        "directory",
        metavar="DIR",
        help="write rules/*.yml for Prometheus, and alertmanager.example.yml",
    )
    _settings(rules)
    _page(rules)
    rules.add_argument(
        "--runbooks",
        metavar="URL",
        help="address of a page with a section for each alert (default: /runbooks of --page)",
    )
    rules.add_argument(
        "--kubernetes",
        action="store_true",
        help="write kubernetes.yaml, too: the rules for the Prometheus Operator, and dashboards",
    )
    _check(rules)


def _page(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--page",
        default="http://localhost:8000",
        metavar="URL",
        help="address of an exporter's page for readers of alerts, used in links (default "
        "%(default)s)",
    )


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--check",
        action="store_true",
        help="write nothing, and exit 1 if a file is not current",
    )
