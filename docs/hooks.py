"""What MkDocs does not know of these pages: they are read in the repository, too.

Links to files outside docs/ become plain text; a link to a folder leads to a list of its pages; a
pattern in the navigation stands for all pages that match.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_INDEX = "decisions/index.md"


def on_config(config: Any) -> None:
    """Put the pages in the place of a pattern."""
    config.nav = [_expanded(entry, Path(config.docs_dir)) for entry in config.nav]


def _expanded(entry: Any, docs: Path) -> Any:
    if isinstance(entry, dict):
        return {title: _expanded(value, docs) for title, value in entry.items()}
    if isinstance(entry, list):
        return [page for value in entry for page in _pages(value, docs)]
    return _pages(entry, docs) if "*" in entry else entry


def _pages(entry: Any, docs: Path) -> list[Any]:
    if not isinstance(entry, str) or "*" not in entry:
        return [_expanded(entry, docs)]
    found = sorted(path.relative_to(docs).as_posix() for path in docs.glob(entry))
    first = [_INDEX] if entry.startswith("decisions/") else []
    return [*first, *(path for path in found if path != _INDEX)]


def on_files(files: Files, *, config: Any) -> Files:
    """Add the list of decisions, which is the folder itself where the repository is read."""
    folder = Path(config.docs_dir) / PurePosixPath(_INDEX).parent
    titles = {path.name: _title(path) for path in sorted(folder.glob("*.md"))}
    lines = [f"- [{title}]({name})" for name, title in titles.items()]
    text = "\n".join(["# Decisions", "", *lines, ""])
    files.append(File.generated(config, _INDEX, content=text))
    return files


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").strip()


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Rewrite links that lead somewhere only where the repository is read."""
    docs = Path(config.docs_dir).resolve()
    folder = (docs / page.file.src_uri).parent

    def rewritten(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if target.startswith(("http://", "https://", "mailto:")):
            return found[0]
        path = (folder / target).resolve()
        if not path.is_relative_to(docs):
            return text if path.exists() else found[0]
        if path.is_dir():
            return f"[{text}]({target.rstrip('/')}/index.md{anchor})"
        return found[0]

    return _LINK.sub(rewritten, markdown)
