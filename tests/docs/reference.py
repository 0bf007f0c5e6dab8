"""The generated pages of ``docs/``: metrics, settings, commands; the fields of events; and the page
of runbooks that exporters serve.

python -m tests.docs.reference            writes them
python -m tests.docs.reference --check    exits 1 and names those that are not current
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from streamer.cli import arguments, generated
from streamer.cli.examples import EXAMPLES
from streamer.cli.metrics import SOURCES
from streamer.metrics.catalogue import FAMILIES, PREFIX
from streamer.metrics.definition import DIMENSIONS
from streamer.server.runbooks import NAME as RUNBOOKS
from streamer.server.series import Entry, entries
from streamer.settings import (
    alerts,
    clusters,
    experiments,
    limits,
    model,
    own_metrics,
    registry,
    sources,
)
from streamer.settings.durations import date_of
from streamer.settings.event_fields import FIELDS, LINE_TYPES, NAMED_BY_SETTINGS, EventField
from streamer.settings.section import NAME, Section
from tests.docs import runbooks
from tests.docs.api_reference import api_page

ROOT = Path(__file__).parents[2]
DOCS, SERVER = ROOT / "docs", ROOT / "streamer" / "server"
_EVENTS, _OPERATIONS = DOCS / "events.md", DOCS / "operations.md"
_OF_WINDOWS = {family.name for family in FAMILIES}
"""Families whose series have windows, or are totals by dimension."""
_NOTE = "<!-- Written by `python -m tests.docs.reference`; do not edit. -->\n"


def pages() -> dict[str, str]:
    """File name → text of every generated page."""
    return {
        **metrics_pages(),
        "settings.md": settings_page(),
        "commands.md": commands_page(),
        "events.md": events_page(),
        "api.md": api_page(_NOTE),
    }


# Events ----------------------------------------------------------------------------------------


def events_page() -> str:
    """The page on events as it stands, with its table of fields as the core declares them."""
    heading, following = "## Fields\n", "\n### "
    before, _, rest = _EVENTS.read_text(encoding="utf-8").partition(heading)
    _, _, after = rest.partition(following)
    rows = [
        (_shown_name(name), _shown_kinds(field), _shown_values(field), field.about)
        for name, field in (*FIELDS.items(), *NAMED_BY_SETTINGS.items())
    ]
    table = _table(("field", "in", "value", "meaning"), rows)
    return f"{before}{heading}\n{_NOTE}\n{table}{following}{after}"


def _shown_values(field: EventField) -> str:
    """What it may hold: of ids, which have a section, a word."""
    return "an [id](#ids)" if field.holds == "id" else field.expected


def _shown_name(name: str) -> str:
    section, _, key = name.rpartition(".")
    return f"`{key}` of `[[{section}]]`" if section else f"`{name}`"


def _shown_kinds(field: EventField) -> str:
    lines = [line for line, kind in LINE_TYPES.items() if kind in field.kinds]
    shown = "all" if len(lines) == len(LINE_TYPES) else ", ".join(lines)
    return f"{shown}; each item" if field.in_items else shown


# Metrics ---------------------------------------------------------------------------------------

INTERVALS = """\
| users | 10 | 40 | 40, skewed | 300 | 300, skewed |
| --- | --- | --- | --- | --- | --- |
| `ctr_ratio` | 95 % (56 %) | 94 % (100 %) | 89 % (100 %) | 94 % (100 %) | 94 % (100 %) |
| `conversion_value_per_impression` | none | none | none | 94 % (98 %) | 93 % (100 %) |
| `conversion_value_per_click` | none | none | none | 93 % (98 %) | 93 % (100 %) |
| `dwell_mean_seconds` | none | 90 % (22 %) | 93 % (22 %) | 94 % (100 %) | 94 % (100 %) |
| `clicks_per_user` | none | 99 % (22 %) | 93 % (22 %) | 98 % (100 %) | 94 % (100 %) |
| `positive_rate_ratio` | none | 70 % (2 %) | 83 % (2 %) | 94 % (100 %) | 94 % (100 %) |
"""
"""What ``benchmarks.studies.group_coverage`` printed."""


def metrics_pages() -> dict[str, str]:
    """The catalogue: its first page lists the series of each family, which has a page."""
    intro = f"""# Metrics

{_NOTE}
These are all series of `/metrics`, `/api/readings` and `streamer replay`. Only `/metrics` shows
those of the processor. `streamer metrics NAME` explains one metric.

- **Labels.** In the label of a dimension, `all` stands for a rollup, `other` for values beyond the
  bound, and `unknown` for a missing value.
- **No data.** A ratio whose denominator is 0 is absent, never 0. Its support is a series of its
  own.
- **Rollups.** Rollups in `metrics.detailed` (by default the total) show every metric. The other
  rollups of `metrics.rollups` (by default each dimension alone) show only *brief* metrics; a
  condition in brackets says which series. Metrics of slates are brief for single dimensions only.
- **Maturity.** `provisional` counts all panes of the window, `mature` only those whose feedback can
  no longer come.
- **Users.** Exact definitions of metrics of users, sessions and dwell: [engagement](engagement.md).
- **Slates.** In formulas `k` is the cut-off, `h(k)` the number of relevant items among the first k,
  `h(i)` among the first i, and `r` in the whole slate. An item is relevant if its feedback has a
  gain above 0. `over` names the slates of the mean, `convention` the definition
  ([ranking](ranking.md)).

Intervals (`*_lower*`, `*_upper*`) are of 95 % and clustered by user. Intervals of values, such as
money and times, need about 30 users with a value. The table shows how many intervals of simulated
windows held the truth, and in brackets how many windows had an interval
(`python -m benchmarks.studies.group_coverage`):

{INTERVALS}
Without an interval, the value of so few users says little.
"""
    families: dict[str, list[Entry]] = {}
    for entry in entries():
        families.setdefault(entry.family, []).append(entry)
    found = {}
    for family, members in families.items():
        title, page = family.replace("_", "-").capitalize(), f"metrics/{family}.md"
        found[page] = f"# {title}\n\n{_NOTE}" + "".join(map(_block, members))
        links = [f"- [`{x.name.removeprefix(PREFIX)}`]({page}#{x.name})" for x in members]
        intro += f"\n## {title}\n\n" + "\n".join(links) + "\n"
    return {"metrics.md": intro, **found}


def _block(entry: Entry) -> str:
    """One metric: its name, its meaning, and short lines."""
    each = "each dimension"
    kind = entry.kind
    labels = [each if label == DIMENSIONS else f"`{label}`" for label in entry.labels]
    if entry.family in _OF_WINDOWS:
        kind = f"{entry.scope} {entry.kind}"
        labels = [*(["`window`"] if entry.scope == "window" else []), *labels, each]
    if entry.brief:
        kind += f", *brief*{entry.brief.removeprefix('brief')}"
    lines = {
        "Formula": f"`{entry.formula}`",
        "Unit": entry.unit,
        "Kind": kind,
        "Labels": ", ".join(labels),
        "No data": entry.empty,
        "Source": "; ".join(SOURCES[key] for key in entry.source.split()),
    }
    items = "".join(f"- {name}: {text}\n" for name, text in lines.items() if text)
    return f"\n## `{entry.name}`\n\n{entry.doc}\n\n{items}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in escaped)


_EXAMPLES: dict[str, Section] = {
    "clusters": clusters.Connection(brokers=""),
    "experiments": experiments.Experiment(
        name="",
        dimension="",
        control="A",
        split={"A": 1, "B": 1},
        start=date_of(0),
    ),
    "alerts": alerts.Alert(name=""),
    "policies": own_metrics.Policy(name=""),
    "ratios": own_metrics.OwnRatio(name="", numerator=own_metrics.RatioPart(kind="")),
    "sources": sources.Source(topics=(), registry=registry.Registry(url="")),
    "composites": own_metrics.Composite(
        name="", parts=(own_metrics.CompositePart(metric="ctr_ratio"),) * 2
    ),
}
"""Tables of which there are none by default."""


# Settings --------------------------------------------------------------------------------------


def settings_page() -> str:
    """Every setting, its default and its meaning, from the structs of ``model.py``."""
    intro = f"""# Settings

{_NOTE}
All settings are in one TOML file (`-c streamer.toml`). Keys are optional, except those with the
default `required`; unknown keys are errors. An environment variable overrides a key:
`STREAMER_KAFKA__BROKERS=…` (section, two underscores, key; lists and tables as TOML), or a list of
tables: `STREAMER_EXPERIMENTS=[…]`. A key with one underscore instead of two is an error; other
variables are ignored. A duration is a whole number and one of `ms s m h d`.
"""
    docs = field_docs()
    defaults = model.Settings()
    parts = []
    for title, section in _sections("", model.Settings, defaults):
        kind = type(section)
        meaning = " ".join((kind.__doc__ or "").partition(": ")[2].split())
        rows = [
            (
                f"`{field.encode_name}`",
                f"`{_toml(section, field.name)}`",
                _doc(docs, kind, field.name),
            )
            for field in msgspec.structs.fields(kind)
            if not _is_table(getattr(section, field.name))
        ]
        parts.append(f"\n## {title}\n\n{meaning[:1].upper()}{meaning[1:]}\n\n")
        parts.append(_table(("key", "default", "meaning"), rows))
    return intro + "".join(parts)


def _sections(path: str, kind: type[Section], value: Any) -> Iterator[tuple[str, Section]]:
    """(title, defaults) of every table below ``value``."""
    for field in msgspec.structs.fields(kind):
        name = f"{path}{field.name}"
        inner = getattr(value, field.name)
        if isinstance(inner, Section):
            yield f"[{name}]", inner
            yield from _sections(f"{name}.", type(inner), inner)
        elif isinstance(inner, tuple) and inner and isinstance(inner[0], Section):
            yield f"[[{name}]]", inner[0]
        elif name in _EXAMPLES:
            example = _EXAMPLES[name]
            yield (f"[{name}.{NAME}]" if isinstance(inner, dict) else f"[[{name}]]"), example
            yield from _sections(f"{name}.", type(example), example)


def _doc(docs: dict[tuple[str, str], str], kind: type, name: str) -> str:
    """What is said of a field, where the class or one that it extends declares it."""
    return next(docs[each.__name__, name] for each in kind.__mro__ if (each.__name__, name) in docs)


def _is_table(value: Any) -> bool:
    """Whether a value has tables of its own on the page."""
    first = value[0] if isinstance(value, tuple) and value else value
    return isinstance(first, Section)


def _toml(section: Section, name: str) -> str:
    value = getattr(section, name)
    kinds = {field.name: field for field in msgspec.structs.fields(type(section))}
    if kinds[name].required:
        return "required"
    return "not set" if value is None else _literal(value)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        pairs = ", ".join(f"{key} = {_literal(v)}" for key, v in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return str(value)


def field_docs() -> dict[tuple[str, str], str]:
    """(class, field) → the docstring that follows the field in ``model.py``."""
    docs: dict[tuple[str, str], str] = {}
    tables = (experiments, alerts, own_metrics, sources, registry)
    modules = (model, clusters, limits, *tables)
    for node in (node for module in modules for node in ast.parse(inspect.getsource(module)).body):
        if not isinstance(node, ast.ClassDef):
            continue
        for field, docstring in zip(node.body, node.body[1:], strict=False):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant):
                docs[node.name, field.target.id] = " ".join(str(docstring.value.value).split())
    return docs


# Commands --------------------------------------------------------------------------------------


def subcommands() -> dict[str, argparse.ArgumentParser]:
    """Name → parser of every command."""
    return arguments.commands(arguments.parser())


def commands_page() -> str:
    """Every command and its arguments, from the parser."""
    parts = [
        f"""# Commands

{_NOTE}
An error is one line on stderr (`--debug` shows its traceback). Exit codes: 0 done, 1 failed,
2 usage or settings, 130 interrupted. `streamer` alone prints its help on stderr: usage, so 2.
"""
    ]
    for name, command in subcommands().items():
        parts.append(f"\n## streamer {name}\n\n{_sentence(command.description)}\n\n")
        rows = [
            (f"`{_usage(action)}`", _meaning(action))
            for action in command._actions
            if not isinstance(action, argparse._HelpAction)
        ]
        parts.append(_table(("argument", "meaning"), rows))
        parts.append("\n```sh\n" + "".join(f"{call}\n" for call in EXAMPLES[name]) + "```\n")
    return "".join(parts)


def _sentence(text: str | None) -> str:
    text = text or ""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '…')) else '.'}"


def _meaning(action: argparse.Action) -> str:
    """The help text with its default filled in, and whether an option is required."""
    text = (action.help or "") % vars(action)
    return _sentence(f"{text} (required)" if action.option_strings and action.required else text)


def _usage(action: argparse.Action) -> str:
    value = str(action.metavar or action.dest.upper()) if action.nargs != 0 else ""
    if not action.option_strings:
        forms = {"+": f"{value}…", "*": f"[{value}…]", "?": f"[{value}]"}
        return forms.get(str(action.nargs), value)
    return f"{', '.join(action.option_strings)} {value}".strip()


# -----------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages, or with ``--check`` compare them."""
    program = "tests.docs.reference"
    is_check = generated.parser(program, __doc__ or "").parse_args(argv).check
    files = {DOCS / name: text for name, text in pages().items()}
    served = runbooks.page(_OPERATIONS.read_text(encoding="utf-8"))
    return max(
        generated.keep(files, program, is_check, folder="docs"),
        generated.keep({SERVER / RUNBOOKS: served}, program, is_check, folder="streamer/server"),
    )


if __name__ == "__main__":
    sys.exit(main())
