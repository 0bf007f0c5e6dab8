"""``streamer report``: an experiment as one HTML file, to be mailed or kept."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from streamer.cli.readout import ReadoutRequest, read_experiment
from streamer.cli.report_chart import ChartRange, Write, extent, history, interval
from streamer.errors import StreamerError
from streamer.query import experiments
from streamer.settings.load import load

Document = Mapping[str, Any]
"""What ``query.experiments.document`` makes, with ``history``."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6670; --line: #d5dade; --back: #fff;
  --box: #f3f5f7; --bar: #7ba7d9; --dot: #1b4f8a; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8eb; --soft: #9aa5ae; --line: #3a434b;
  --back: #14181c; --box: #1e242a; --bar: #35608f; --dot: #a9cdf5; --bad: #ff8a80; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --back: #fff;
  --box: #fff; --bar: #9cbbe0; --dot: #1b4f8a; --bad: #b3261e; }
  section, figure, tr { break-inside: avoid; } .advice { border: 1px solid #000; } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--back);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin-bottom: 0; } h2 { margin-top: 2rem; font-size: 1.1rem; }
p.of, figcaption, small { color: var(--soft); }
.advice { background: var(--box); border-radius: 6px; padding: .8rem 1rem; }
.advice strong { font-size: 1.25rem; } .warning { color: var(--bad); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem .35rem 0; text-align: left;
  vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } table.users { width: auto; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 11px; }
.bar, .band { fill: var(--bar); } .dot { fill: var(--dot); }
.zero { stroke: var(--soft); } .margin { stroke: var(--bad); stroke-dasharray: 3 3; }
"""


def main(args: argparse.Namespace) -> int:
    """Write the file; what it held before is replaced."""
    settings = load(args.config, os.environ)
    stored, readout, code = read_experiment(settings, ReadoutRequest(args.experiment), args.file)
    html = page(experiments.document(stored, readout) | {"history": experiments.history(stored)})
    try:
        Path(args.html).write_text(html, encoding="utf-8")
    except OSError as error:
        raise StreamerError(
            f"cannot write the report: {error.strerror}; at {args.html}; name another file with "
            "--html"
        ) from error
    print(f"Written: {args.html}")
    return code


def page(document: Document) -> str:
    """The page. All that settings and events say is escaped."""
    name = escape(document["name"])
    body = [
        _heading(document),
        _advice(document),
        *(f'<p class="warning">{escape(warning)}</p>' for warning in document["warnings"]),
    ]
    if document["last"] is not None:
        body += [
            _split(document),
            _metrics(document),
            _reasons(document),
            _history(document),
            _method(document),
        ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
        "'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{_STYLE}</style></head>\n<body>"
        + "\n".join(body)
        + "</body></html>\n"
    )


def _heading(document: Document) -> str:
    arms = ", ".join(escape(arm) for arm in document["split"] if arm != document["control"])
    days = f"{document['first']} to {document['last']}" if document["last"] else "not started yet"
    return (
        f"<h1>{escape(document['name'])}</h1>"
        f'<p class="of">{arms} against {escape(document["control"])} '
        f"({escape(document['dimension'])}), {days}</p>"
    )


def _advice(document: Document) -> str:
    advice = document["recommendation"]
    if advice is None:
        return f"<p>Its first day is {escape(document['first'])}.</p>"
    words = advice["words"][:1].upper() + advice["words"][1:]
    return f'<p class="advice"><strong>{escape(words)}.</strong><br>{escape(advice["reason"])}</p>'


def _split(document: Document) -> str:
    """Who was counted, since when."""
    test = document["metrics"][0]["split_test"]
    total = sum(document["users"].values())
    rows = "".join(
        f'<tr><th>{escape(arm)}</th><td class="n">{users:,}</td>'
        f'<td class="n">{users / total if total else 0:.2%}</td>'
        f'<td class="n">{test["expected"][arm]:.2%}</td></tr>'
        for arm, users in document["users"].items()
    )
    verdict = "NOT split as planned" if test["is_wrong"] else "split as planned"
    notes = [f"Users are {verdict} (p = {test['p_value']:.3g} at any time)."]
    notes += [*document["notes"], *document["warnings"]]
    return (
        '<section><h2>Users</h2><table class="users"><tr><th>arm</th><th class="n">users</th>'
        f'<th class="n">share</th><th class="n">planned</th></tr>{rows}</table>'
        f"<p>{escape(' '.join(notes))}</p></section>"
    )


# Metrics ---------------------------------------------------------------------------------------


def _shown(comparison: Document) -> ChartRange:
    """The lift that the verdict is about, and its interval at any time."""
    return _span((comparison["adjusted"] or comparison)[comparison["verdict"]["scale"]])


def _span(estimate: Document) -> ChartRange:
    always = estimate["anytime"] or {"low": None, "high": None}
    return ChartRange(estimate["value"], always["low"], always["high"])


def _writer(scale: str) -> Write:
    return "{:+.2%}".format if scale == "relative" else "{:+.4g}".format


def _margin(metric: Document, scale: str) -> float | None:
    """Where the tolerated harm lies, if it is in that scale."""
    margin = metric["margin"] if scale == "relative" else metric["margin_absolute"]
    sign = -1 if metric["direction"] == "higher" else 1
    return None if margin is None else sign * float(margin)


def _metrics(document: Document) -> str:
    rows = "".join(_rows(metric) for metric in document["metrics"])
    return (
        '<section><h2>Metrics</h2><table><tr><th>metric</th><th>arm</th><th class="n">value</th>'
        '<th class="n">lift</th><th class="n">interval at any time</th><th></th>'
        "<th>verdict</th></tr>"
        f"{rows}</table></section>"
    )


def _rows(metric: Document) -> str:
    spans = {c["arm"]: (c, _shown(c)) for c in metric["comparisons"]}
    rows = []
    for i, arm in enumerate(metric["arms"]):
        name = f"{escape(metric['name'])}<br><small>{escape(metric['role'])}</small>"
        cells = [f"<th>{name if not i else ''}</th><td>{escape(arm['name'])}</td>"]
        cells.append(f'<td class="n">{_value(metric["form"], arm["value"])}</td>')
        if arm["name"] not in spans:
            cells.append('<td></td><td colspan="3">control</td>')
        else:
            comparison, span = spans[arm["name"]]
            scale = comparison["verdict"]["scale"]
            alike = [
                other_span for c, other_span in spans.values() if c["verdict"]["scale"] == scale
            ]
            margin = _margin(metric, scale)
            cells.append(_lift_cells(span, _writer(scale)))
            cells.append(f"<td>{interval(span, extent(alike, margin), margin)}</td>")
            cells.append(f"<td>{escape(comparison['verdict']['outcome'])}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return "".join(rows)


def _lift_cells(span: ChartRange, write: Write) -> str:
    value = "" if span.value is None else write(span.value)
    ends = "not yet"
    if span.low is not None and span.high is not None:
        ends = f"{write(span.low)} to {write(span.high)}"
    return f'<td class="n">{value}</td><td class="n">{ends}</td>'


def _value(form: str, value: float | None) -> str:
    if value is None:
        return "no data"
    if form == "percent":
        return f"{value:.3%}"
    return f"{value:.4g} s" if form == "seconds" else f"{value:.5g}"


def _reasons(document: Document) -> str:
    said = "".join(
        f"<li>{escape(metric['name'])}, {escape(c['arm'])}: {escape(c['verdict']['outcome'])}. "
        f"{escape(c['verdict']['reason'])}</li>"
        for metric in document["metrics"]
        for c in metric["comparisons"]
    )
    return f"<section><h2>Why</h2><ul>{said}</ul></section>"


# History ---------------------------------------------------------------------------------------


def _history(document: Document) -> str:
    """The lifts as they stood at the end of each day."""
    days: Sequence[Document] = document["history"]
    if not days:
        return ""
    charts = [
        _chart(metric, comparison, days)
        for metric in document["metrics"]
        for comparison in metric["comparisons"]
    ]
    return f"<section><h2>By day</h2>{''.join(charts)}</section>"


def _chart(metric: Document, comparison: Document, days: Sequence[Document]) -> str:
    arm, scale = comparison["arm"], comparison["verdict"]["scale"]
    spans = [_span(day["metrics"][metric["name"]][arm]) for day in days]
    title = f"{metric['name']}: lift of {arm} at the end of each day, with its interval"
    drawn = history(
        title, [day["day"] for day in days], spans, _writer(scale), _margin(metric, scale)
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{drawn}</figure>"


def _method(document: Document) -> str:
    before = _before(document["covariate_days"])
    return (
        "<section><h2>Method</h2><p>Users are compared, who were assigned as a whole: an arm's "
        "value is the sum of its users' numerators over that of their denominators, with "
        "variances by the delta method"
        f"{before}. Intervals are confidence sequences of level {1 - document['alpha']:.4g}: they "
        "hold however often one looks; several arms, and the secondary metrics together, share "
        "alpha (Holm). An arm is shipped if the primary metric is better and no guardrail is "
        "harmed beyond its margin.</p></section>"
    )


def _before(days: int) -> str:
    """What CUPED adds to the method, of so many days before the start."""
    if not days:
        return ""
    what = "day" if days == 1 else f"{days} days"
    return f", less what the {what} before the start explain{'s' if days == 1 else ''} (CUPED)"
