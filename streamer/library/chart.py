"""The history of a metric as SVG: the chart of the web page, drawn without a browser.

The rules are those of ``server/web/axis.js`` and ``timeline.js``: round numbers on the axis, the
interval as a band of the first line, and no line where there is no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from pathlib import Path

from streamer.encoding.segments import ALL
from streamer.errors import StreamerError
from streamer.library.selection import time_of
from streamer.query.pane_history import History, Line

_WIDTH, _HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 34, 30
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_TIME_STEPS_MS = (
    *(n * 1000 for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE_MS for n in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(n * _DAY_MS for n in (1, 2, 7, 14, 28)),
)
_LABEL_WIDTH = 84
_STYLES = 6
_NAME_CHARS = 20
_LINE_HEIGHT = 14


class Chart:
    """A picture as SVG. A notebook shows it by itself."""

    def __init__(self, svg: str) -> None:
        self.svg = svg
        """One SVG element, which needs nothing else."""

    def save(self, path: str | Path) -> None:
        """Write it to a file, which it replaces; StreamerError where that cannot be written."""
        try:
            Path(path).write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise StreamerError(f"cannot write the chart: {error.strerror}; at {path}") from error

    def __repr__(self) -> str:
        return f"Chart({len(self.svg):,} characters of SVG; save(path) writes it)"

    def _repr_svg_(self) -> str:
        return self.svg


def chart_of(
    title: str, form: str, by: Sequence[str], history: History, partial: Sequence[bool]
) -> Chart:
    """``form``: how values are written; ``by``: the dimensions that name the lines; ``partial``:
    points within which the log begins or ends, which are dots beside the line."""
    frame = _Frame.of(history, form)
    parts = [*_grid(frame, form), *(_times(frame) if history.starts_ms else ())]
    if not history.lines:
        parts.append(_element("text", "No data", {"x": _LEFT + 8, "y": _TOP + 24}, "tick"))
    for number, line in enumerate(history.lines):
        if number == 0:
            parts += _band(frame, line)
        both = list(zip(line.values, partial, strict=True))
        whole = [None if is_partial else value for value, is_partial in both]
        parts += _curve(frame, whole, number)
        parts += _dots(frame, [value if is_partial else None for value, is_partial in both], number)
    parts += _names(frame, history.lines, by)
    heading = _element("text", title, {"x": 4, "y": 18}, "title")
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return Chart(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="streamer-chart" {size} role="img" '
        f'aria-label="{escape(title)} over time"><style>{_style()}</style>{heading}'
        f"{''.join(parts)}</svg>"
    )


@dataclass(frozen=True)
class _Frame:
    """The axes: values from ``bottom`` to ``top`` with a ``tick``, and points of time."""

    bottom: float
    top: float
    tick: float
    starts_ms: Sequence[int]
    step_ms: int

    @staticmethod
    def of(history: History, form: str) -> _Frame:
        lines = history.lines
        values = [v for line in lines for v in line.values if v is not None]
        ends = [v for line in lines[:1] for v in (*line.lower, *line.upper) if v is not None]
        return _Frame(*axis(values, ends, form), history.starts_ms, history.step_ms)

    def x(self, point: int) -> float:
        """The place of a point."""
        last = len(self.starts_ms) - 1
        share = 0.5 if last == 0 else point / last
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        """The height of a value; of one outside the axis that of its end."""
        within = min(self.top, max(self.bottom, value))
        share = (self.top - within) / (self.top - self.bottom)
        return round(_TOP + share * (_HEIGHT - _TOP - _BOTTOM), 1)


def axis(values: Sequence[float], ends: Sequence[float], form: str) -> tuple[float, float, float]:
    """Bottom, top and tick of an axis that holds all values, and of the ends of bands what does not
    flatten them.

    >>> axis([0.01, 0.05], [], "percent"), axis([], [], "number")
    ((0.0, 0.06, 0.02), (0.0, 1.0, 0.25))
    """
    least_top = 0.01 if form == "percent" else 1.0
    if not values:
        return _rounded(0.0, least_top)
    least, most = min(values), max(values)
    if least == most == 0:
        return _rounded(0.0, max(least_top, 2 * max([0.0, *ends])))
    room = max(most - least, abs(most) * 0.5)
    low = max(min([least, *ends]), least - room)
    high = min(max([most, *ends]), most + room)
    return _rounded(0.0 if 0 <= low < 0.6 * high else low, high)


def _rounded(low: float, high: float) -> tuple[float, float, float]:
    rough = (high - low) / 4 or abs(high) or 1.0
    power = 10.0 ** floor(log10(rough))
    tick = power * next(step for step in _STEPS if step * power >= rough * (1 - 1e-9))
    bottom = floor(low / tick + 1e-9) * tick
    top = max(bottom + tick, ceil(high / tick - 1e-9) * tick)
    return bottom, round(top, 12), tick


def _grid(frame: _Frame, form: str) -> Iterator[str]:
    count = round((frame.top - frame.bottom) / frame.tick)
    for number in range(count + 1):
        value = frame.bottom + number * frame.tick
        y = frame.y(value)
        yield _element("line", "", {"x1": _LEFT, "x2": _WIDTH - _RIGHT, "y1": y, "y2": y}, "grid")
        text = _tick_text(form, value, frame.tick)
        yield _element("text", text, {"x": _LEFT - 8, "y": y + 4}, "tick end")


def _tick_text(form: str, value: float, tick: float) -> str:
    """A round value; those of one axis have the same decimals.

    >>> _tick_text("percent", 0.025, 0.025), _tick_text("number", 2000.0, 500.0)
    ('2.5%', '2,000')
    """
    scale = 100 if form == "percent" else 1
    steps = f"{scale * tick:.6g}"
    decimals = len(steps.partition(".")[2]) if "e" not in steps else 0
    unit = {"percent": "%", "seconds": " s"}.get(form, "")
    return f"{scale * value:,.{decimals}f}{unit}"


def _times(frame: _Frame) -> Iterator[str]:
    first, last = frame.starts_ms[0], frame.starts_ms[-1]
    width = _WIDTH - _LEFT - _RIGHT
    most = max(2, width // _LABEL_WIDTH)
    step = next((s for s in _TIME_STEPS_MS if (last - first) / s <= most), _TIME_STEPS_MS[-1])
    for at_ms in range(-(-first // step) * step, last + 1, step):
        x = _LEFT + (0.5 if first == last else (at_ms - first) / (last - first)) * width
        place = {"x": round(x, 1), "y": _HEIGHT - _BOTTOM + 18}
        yield _element("text", _time_text(at_ms, step), place, "tick middle")


def _time_text(at_ms: int, step_ms: int) -> str:
    at = time_of(at_ms)
    if at_ms % _DAY_MS == 0:
        return f"{at.day} {at:%b}"
    return f"{at:%H:%M:%S}" if step_ms < _MINUTE_MS else f"{at:%H:%M}"


def _runs(values: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """Neighbouring points that have a value.

    >>> list(_runs([1.0, None, 2.0, 3.0]))
    [[(0, 1.0)], [(2, 2.0), (3, 3.0)]]
    """
    run: list[tuple[int, float]] = []
    for place, value in enumerate(values):
        if value is not None:
            run.append((place, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _band(frame: _Frame, line: Line) -> Iterator[str]:
    for run in _runs(line.lower):
        ends = ((i, low, line.upper[i]) for i, low in run)
        above = [f"{frame.x(i)},{frame.y(low if top is None else top)}" for i, low, top in ends]
        below = [f"{frame.x(i)},{frame.y(low)}" for i, low in reversed(run)]
        yield _element("polygon", "", {"points": " ".join([*above, *below])}, "band")


def _curve(frame: _Frame, values: Sequence[float | None], number: int) -> Iterator[str]:
    kind = f"style-{number % _STYLES}"
    for run in _runs(values):
        if len(run) == 1:
            ((i, value),) = run
            place = {"cx": frame.x(i), "cy": frame.y(value), "r": 3}
            yield _element("circle", "", place, f"dot {kind}")
        else:
            points = " ".join(f"{frame.x(i)},{frame.y(value)}" for i, value in run)
            yield _element("polyline", "", {"points": points}, f"line {kind}")


def _dots(frame: _Frame, values: Sequence[float | None], number: int) -> Iterator[str]:
    """Points that stand alone."""
    for i, value in enumerate(values):
        if value is not None:
            place = {"cx": frame.x(i), "cy": frame.y(value), "r": 3}
            yield _element("circle", "", place, f"partial style-{number % _STYLES}")


def _names(frame: _Frame, lines: Sequence[Line], by: Sequence[str]) -> Iterator[str]:
    """The name of each line at its end, none upon another."""
    ends: list[tuple[float, int, str]] = []
    for number, line in enumerate(lines):
        known = [value for value in line.values if value is not None]
        if known:
            ends.append((frame.y(known[-1]), number, _name(line.labels, by)))
    room, lowest = float(_TOP), _HEIGHT - _BOTTOM
    for place, (y, number, name) in enumerate(sorted(ends)):
        left = len(ends) - 1 - place
        at = min(max(y, room), lowest - left * _LINE_HEIGHT)
        room = at + _LINE_HEIGHT
        text = name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS - 1]}…"
        where = {"x": _WIDTH - _RIGHT + 8, "y": round(at + 4, 1)}
        yield _element("text", text, where, f"name style-{number % _STYLES}")


def _name(labels: Mapping[str, str], by: Sequence[str]) -> str:
    """What a line is called.

    >>> _name({"variant": "A", "surface": "all", "k": "10"}, ["variant"]), _name({}, [])
    ('A, k 10', 'all events')
    """
    own = [labels[name] for name in by if name in labels]
    more = [f"{name} {v}" for name, v in labels.items() if name not in by and v != ALL]
    return ", ".join([*own, *more]) or "all events"


def _element(tag: str, text: str, attributes: Mapping[str, object], kind: str) -> str:
    own = "".join(f' {name}="{escape(str(value))}"' for name, value in attributes.items())
    return f'<{tag} class="{kind}"{own}>{escape(text)}</{tag}>'


def _style() -> str:
    """The colours of the page, in both schemes, for this picture alone."""
    from streamer.server.web import contents

    light, dark = _COLOURS.findall(contents()["style.css"].decode())[:2]
    rules = (
        "text{font:12px system-ui,sans-serif;fill:var(--muted)}",
        ".title{font-weight:600;font-size:14px;fill:var(--ink)}",
        ".grid{stroke:var(--line)}.band{fill:var(--band);opacity:.6}",
        ".end{text-anchor:end}.middle{text-anchor:middle}",
        ".line{fill:none;stroke:var(--own);stroke-width:2;stroke-linejoin:round}",
        ".partial{fill:none;stroke:var(--own)}.dot{fill:var(--own)}.name{fill:var(--own);font-weight:600}",
        *(f".style-{n}{{--own:var(--style-{n})}}" for n in range(_STYLES)),
    )
    scoped = "".join(
        f".streamer-chart {rule}" for rule in "".join(rules).replace("}", "}\n").split("\n") if rule
    )
    scheme = f"@media (prefers-color-scheme:dark){{.streamer-chart{{{_variables(dark)}}}}}"
    return f".streamer-chart{{{_variables(light)}}}{scheme}{scoped}"


_COLOURS = re.compile(r":root \{([^}]*)\}")


def _variables(block: str) -> str:
    return "".join(
        f"{name}:{value};" for name, value in re.findall(r"(--[a-z0-9-]+): ([^;]+);", block)
    )
