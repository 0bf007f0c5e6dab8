"""Means with a band of two standard errors, for the arms of a comparison.

An arm is a value of the first dimension. Grafana fills between two series if it was told the name
of the lower one, and which arms there are is known only when a page is looked at. So hidden
variables take the chosen arms one after the other, and queries number the series accordingly: the
bounds of the first arm are called ``1 high`` and ``1 low`` whatever its name. Arms beyond the last
number have lines without bands.
"""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import timeseries
from grafana_foundation_sdk.models import dashboard as models

from grafana import panels
from grafana.panels import Query, over_exporters

EVERYTHING = 0
"""The number of the rollup."""
COLORS = ("text", "blue", "orange", "green", "purple")
"""Of the rollup, and of the arms from 1."""
ARMS = len(COLORS) - 1
"""So many have a band; more could not be told apart."""
ERRORS = 2
"""Half a band's width in standard errors: 95 % of what chance does."""
_NUMBER = "__arm"
"""A label of the queries only."""
_FILL = 15


def arm_variables(
    dimension: str, chosen: str, named: Sequence[str]
) -> list[builders.QueryVariable]:
    """The first values of ``dimension`` in ``chosen``, a selector with its brace still open; each
    variable's but those of the ones before it. ``named``: values to begin with.

    Where fewer are chosen the last variables are empty, and no series has their numbers.
    """
    found = []
    for number in range(1, ARMS + 1):
        others = "|".join(["all", *(f"${_variable(before)}" for before in range(1, number))])
        where = f'{chosen}, {dimension}!~"{others}"}}'
        begin = named[number - 1] if number <= len(named) else ""
        variable = panels.label_variable(_variable(number), where, begin, label=dimension)
        found.append(variable.hide(models.VariableHide.HIDE_VARIABLE))
    return found


def band(mean: str, error: str, dimensions: Sequence[str], title: str) -> list[Query]:
    """Queries of the mean and of the band's bounds; ``mean``, ``error``: selectors of series."""
    middle, spread = over_exporters(mean, *dimensions), over_exporters(error, *dimensions)
    half = f"{ERRORS} * {spread}"
    number = f"{{{{{_NUMBER}}}}}" if dimensions else str(EVERYTHING)
    names = [f"{{{{{name}}}}}" for name in dimensions] or [title]
    return [
        Query(_numbered(middle, dimensions), " · ".join([number, *names])),
        Query(_numbered(f"{middle} + {half}", dimensions), f"{number} high"),
        Query(_numbered(f"{middle} - {half}", dimensions), f"{number} low"),
    ]


def filled(panel: timeseries.Panel) -> timeseries.Panel:
    """The panel with what makes bands of such queries: colours, and bounds that are no lines.

    Its axis goes where the lines are: from 0 on no band could be seen.
    """
    panel = panel.fill_opacity(0).line_width(2)
    hidden = {"legend": True, "tooltip": True, "viz": False}
    panel = panel.override_by_regexp(
        "/ (high|low)$/", [_set("custom.lineWidth", 0), _set("custom.hideFrom", hidden)]
    )
    for number, color in enumerate(COLORS):
        fixed = {"mode": models.FieldColorModeId.FIXED, "fixedColor": color}
        panel = panel.override_by_regexp(f"/^{number} /", [_set("color", fixed)])
        panel = panel.override_by_name(
            f"{number} high",
            [_set("custom.fillBelowTo", f"{number} low"), _set("custom.fillOpacity", _FILL)],
        )
    return panel


def _variable(number: int) -> str:
    return f"arm_{number}"


def _numbered(expr: str, dimensions: Sequence[str]) -> str:
    """The series with the number of their arm; none where there are no dimensions."""
    if not dimensions:
        return expr
    arms = ["all", *(f"${_variable(number)}" for number in range(1, ARMS + 1))]
    for number, arm in enumerate(arms):
        expr = f'label_replace({expr}, "{_NUMBER}", "{number}", "{dimensions[0]}", "{arm}")'
    return expr


def _set(name: str, value: object) -> models.DynamicConfigValue:
    return models.DynamicConfigValue(name, value)
