"""The page of ``import streamer``: signatures and docstrings of its public names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import streamer
from streamer.library.events_read import EventsRead, RejectedEvent, RejectedEvents
from streamer.library.history import ChangeSplit, MetricHistory
from streamer.library.planning import ExperimentPlan
from streamer.library.reader import MetricReader

_FUNCTIONS = ("read", "connect", "evaluate", "plan")
_RETURNED: tuple[type, ...] = (
    *(MetricHistory, ChangeSplit, EventsRead, RejectedEvents, RejectedEvent),
    ExperimentPlan,
)
"""What methods return, besides public names."""
_LONGEST = 90
"""Characters of a call in one line."""
_HEAD = """# From Python

{note}
`import streamer` gives the numbers of the commands as tables, charts and scorecards, in a notebook
or a program. [Use it from Python](how-to/use-it-from-python.md) shows how. Nothing is imported
before it is used.
"""


def api_page(note: str) -> str:
    """The text of the page. ``note``: that it is generated."""
    parts = [_HEAD.format(note=note)]
    parts += (_of_function(name, getattr(streamer, name)) for name in _FUNCTIONS)
    parts.append(
        "## What counts, and what is read\n\n`Counter` and `LiveMetrics` are both read so:\n"
    )
    parts += _members(MetricReader)
    classes = (n for n in streamer.__all__ if inspect.isclass(getattr(streamer, n)))
    parts += (_of_class(n, getattr(streamer, n)) for n in classes if not n.endswith("Error"))
    parts += (_of_class(of.__name__, of) for of in _RETURNED)
    errors = [n for n in streamer.__all__ if n.endswith("Error")]
    parts.append("## Errors\n")
    parts.append("\n".join(f"- `{n}`: {_first(getattr(streamer, n))}" for n in errors) + "\n")
    return "\n".join(parts)


def _of_function(name: str, function: Callable[..., Any]) -> str:
    return f"## `{name}`\n\n{_signature(name, function)}\n{_text(function)}"


def _of_class(name: str, of: type) -> str:
    members = _members(of) if of is not MetricReader else ()
    return "\n".join([f"## `{name}`\n\n{_constructor(name, of)}{_text(of)}", *members])


def _constructor(name: str, of: type) -> str:
    """How a class is called, where callers do that."""
    return f"{_signature(name, of)}\n" if name in ("Counter", "Table") else ""


def _members(of: type) -> Iterator[str]:
    """Public methods and properties that the class itself has, in their order."""
    for name, member in vars(of).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"### `.{name}`\n\n{_text(member)}"
            continue
        function = member.__func__ if isinstance(member, classmethod) else member
        if inspect.isfunction(function) and not _is_internal(function):
            yield f"### `.{name}()`\n\n{_signature(name, function)}\n{_text(function)}"


def _is_internal(function: Callable[..., Any]) -> bool:
    """Whether only this package calls it."""
    return function.__name__ in ("as_metrics", "require_state", "stored_experiment", "add_dead")


def _signature(name: str, of: Callable[..., Any]) -> str:
    """The call as code; a line for each parameter where it is long."""
    signature = inspect.signature(of)
    given = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    shown = list(map(_parameter, given))
    keyword = next((i for i, p in enumerate(given) if p.kind is p.KEYWORD_ONLY), None)
    if keyword is not None and not any(p.kind is p.VAR_POSITIONAL for p in given):
        shown.insert(keyword, "*")
    returned = signature.return_annotation
    back = "" if returned is signature.empty else f" -> {returned}"
    line = f"{name}({', '.join(shown)}){back}"
    if len(line) > _LONGEST:
        line = f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){back}"
    return f"```python\n{line}\n```\n"


def _parameter(of: inspect.Parameter) -> str:
    """A parameter as the code has it."""
    stars = "*" if of.kind is of.VAR_POSITIONAL else "**" if of.kind is of.VAR_KEYWORD else ""
    default = "" if of.default is of.empty else f" = {of.default!r}"
    return f"{stars}{of.name}: {of.annotation}{default}"


def _text(of: Any) -> str:
    """The docstring as Markdown: examples are blocks of code."""
    lines, found, is_example = (inspect.getdoc(of) or "").splitlines(), list[str](), False
    for line in lines:
        if line.startswith(">>>") and not is_example:
            is_example = True
            found.append("```pycon")
        elif is_example and not line.strip():
            is_example = False
            found.append("```")
        found.append(line if is_example else line.replace("``", "`"))
    if is_example:
        found.append("```")
    return "\n".join(found) + "\n"


def _first(of: Any) -> str:
    """The first sentence of a docstring."""
    text = " ".join((inspect.getdoc(of) or "").split())
    return text.partition(". ")[0].rstrip(".") + "."
