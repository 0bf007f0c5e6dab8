"""The scorecard of an experiment as HTML without a script: a page of the exporter, a report that is
one file, and a table of comma-separated values."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Sequence

import jinja2

from streamer import __version__
from streamer.formatting import no_formula, printable
from streamer.query.lift_scale import LiftScale, course, spark
from streamer.query.scorecard import ForestPlot, Scorecard
from streamer.server.web import TEMPLATE, contents, source_of

_STYLES = ("style.css", "scorecard.css")


def page(card: Scorecard, explore: Sequence[str] = (), busy: str = "") -> str:
    """The page below ``/experiments/``. ``explore``: dimensions that it can be explored by;
    ``busy``: why it is not now."""
    return _template().render(**_shown(card), explore=explore, busy=busy, is_frozen=False)


def report(card: Scorecard, written: str) -> str:
    """One file that needs nothing else. ``written``: when, in words."""
    style = "\n".join(contents()[name].decode() for name in _STYLES)
    own = {"style": style, "style_source": source_of(style), "written": written}
    return _template().render(
        **_shown(card), **own, explore=(), is_frozen=True, version=__version__
    )


def table(card: Scorecard) -> str:
    """Every comparison, a line each, with a heading."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    control = no_formula(card.readout.control)
    changes = ("change", "range", "verdict", "unadjusted")
    rows.writerow(("metric", "role", "arm", control, "treatment", *changes))
    for row in card.rows:
        lift, arm = row.comparison.lift, no_formula(row.comparison.arm)
        unadjusted = "" if lift.unadjusted is None else lift.unadjusted.text
        named = (row.metric.title, row.metric.role, arm, *row.values)
        rows.writerow((*named, lift.text, lift.range, row.comparison.pill.words, unadjusted))
    return text.getvalue()


def _shown(card: Scorecard) -> dict[str, object]:
    whole = [row.comparison.lift for row in card.rows if row.metric.role == "primary"]
    return {
        "card": card,
        "units": card.units,
        "primary": card.primary,
        "scale": LiftScale.of([row.comparison.lift for row in card.rows], whole),
        "scale_of": _scale_of,
        "spark": spark,
        "course": course(card.course, card.form),
    }


def _scale_of(forest: ForestPlot) -> LiftScale:
    lifts = [row.lift for row in forest.rows]
    return LiftScale.of(lifts)


@functools.cache
def _template() -> jinja2.Template:
    texts = {TEMPLATE: contents()[TEMPLATE].decode()}
    made = jinja2.Environment(
        loader=jinja2.DictLoader(texts), autoescape=True, undefined=jinja2.StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    return made.get_template(TEMPLATE)
