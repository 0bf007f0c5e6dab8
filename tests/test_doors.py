"""Rooms hand each other values with types, faces lay out, and names are kept once."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import streamer

PACKAGE = Path(streamer.__file__).parent
FILES = {p.relative_to(PACKAGE).as_posix(): p for p in sorted(PACKAGE.rglob("*.py"))}
FOREIGN = {
    "settings": "TOML, before it is settings",
    "ingest": "events of others, and the JSON that the core is made from",
    "monitoring": "Grafana's and Prometheus' documents",
    "kafka": "options of the client",
}
"""Rooms that handle documents whose shape is somebody else's, and which."""
DOCUMENTS = {
    **dict.fromkeys(
        ("metrics/item_counts.py", "metrics/slate_metrics.py", "metrics/slates.py"),
        "a part of the JSON that the core is made from",
    ),
    **dict.fromkeys(("metrics/sums.py", "state/counted_since.py"), "likewise"),
    **dict.fromkeys(
        ("state/partition.py", "state/restore.py", "state/topics.py", "state/manifest.py"),
        "what the core says of its state",
    ),
    "state/redis/store.py": "Redis' INFO",
    "cli/check_store.py": "Redis' INFO",
    "cli/metric_page.py": "events of an example",
    "testing/__init__.py": "events and settings of a test",
}
"""Files likewise."""
FACES = (
    *("cli/plan.py", "cli/readout_text.py", "cli/summary.py", "library/events_read.py"),
    *("library/experiment.py", "library/planning.py", "query/scorecard.py"),
    "server/web/scorecards.py",
)
_PARSES = {"partition", "rpartition", "split", "startswith", "endswith", "removeprefix"}
FEW = 4
"""Names that may stand together in two files."""


def untyped_doors(code: str) -> Iterator[str]:
    """Functions for other rooms that take or give a document of anything."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name[0] == "_":
            continue
        given = (*node.args.args, *node.args.kwonlyargs)
        shapes = [each.annotation for each in given if each.annotation] + [node.returns]
        if any(re.search(r"\[str, Any\]", ast.unparse(s)) for s in shapes if s is not None):
            yield node.name


def parsed_texts(code: str) -> Iterator[str]:
    """Where a face parses a sentence, or reads a document by names."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from {node.func.attr} & _PARSES
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            is_read = isinstance(node.ctx, ast.Load) and isinstance(node.slice.value, str)
            yield from [str(node.slice.value)] * is_read


def name_lists(code: str) -> Iterator[frozenset[str]]:
    """The lists of several names, whatever their order."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set) and len(node.elts) >= FEW:
            names = [e.value for e in node.elts if isinstance(e, ast.Constant)]
            texts = frozenset(name for name in names if isinstance(name, str))
            if len(texts) == len(node.elts):
                yield texts


def twice(found: Callable[[str], Iterator[frozenset[str]]], codes: dict[str, str]) -> list[str]:
    """What stands in several files, each with these."""
    files = defaultdict[frozenset[str], set[str]](set)
    for name, code in codes.items():
        for each in found(code):
            files[each].add(name)
    return [f"{sorted(x)}: {sorted(names)}" for x, names in files.items() if len(names) > 1]


def test_rooms_hand_each_other_values_with_types() -> None:
    offences = {
        f"{name}: {function}"
        for name, path in FILES.items()
        if name.partition("/")[0] not in FOREIGN and name not in DOCUMENTS
        for function in untyped_doors(path.read_text(encoding="utf-8"))
    }
    assert offences == set()
    planted = (
        "def read(self, *, of: Mapping[str, Any]) -> int: ...\ndef _own() -> dict[str, Any]: ..."
    )
    assert list(untyped_doors(planted)) == ["read"]


def test_only_files_that_need_it_handle_documents() -> None:
    needless = [
        name for name in DOCUMENTS if not [*untyped_doors(FILES[name].read_text(encoding="utf-8"))]
    ]
    assert needless == []
    assert FOREIGN.keys() <= {name.partition("/")[0] for name in FILES}


def test_a_face_lays_out() -> None:
    offences = {
        face: found
        for face in FACES
        if (found := [*parsed_texts(FILES[face].read_text(encoding="utf-8"))])
    }
    assert offences == {}
    assert [*parsed_texts('name, _, rest = remark.partition(": ")')] == ["partition"]
    assert [*parsed_texts('lift = (comparison["adjusted"] or comparison)[scale]')] == ["adjusted"]


def test_a_list_of_names_is_kept_in_one_file() -> None:
    codes = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
    assert twice(name_lists, codes) == []
    planted = {"a.py": 'x = ("a", "b", "c", "d")', "b.py": 'y = {"d", "c", "b", "a"}'}
    assert twice(name_lists, planted) == ["['a', 'b', 'c', 'd']: ['a.py', 'b.py']"]
