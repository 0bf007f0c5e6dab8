"""The section *Alerts* of ``docs/operations.md`` as the HTML page that exporters serve."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator

_TITLE = "Runbooks of streamer's alerts"
_STYLE = """\
:root { color-scheme: light dark; }
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }
nav ul { columns: 17rem; padding-left: 1.2rem; }
h2 { margin-top: 2.5rem; overflow-wrap: anywhere; scroll-margin-top: 1rem; }
h2:target { outline: 2px solid; outline-offset: 0.5rem; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: 0.5rem; border: 1px solid; }
"""
_CODE = re.compile(r"(`[^`]+`)")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
_EMPHASIS = re.compile(r"(?<!\w)\*([^*]+)\*(?!\w)")
_SECTION = "### "


def page(operations: str) -> str:
    """The page; ``operations``: the Markdown of ``docs/operations.md``."""
    _, _, text = operations.partition("\n## Alerts\n")
    introduction, *sections = text.split(f"\n{_SECTION}")
    names = [section.partition("\n")[0] for section in sections]
    entries = "".join(f'<li><a href="#{name.lower()}">{name}</a></li>\n' for name in names)
    parts = [_blocks(introduction), f"<nav><ul>\n{entries}</ul></nav>\n"]
    for name, section in zip(names, sections, strict=True):
        parts.append(f'<h2 id="{name.lower()}"><a id="{name}"></a>{name}</h2>\n')
        parts.append(_blocks(section.partition("\n")[2]))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_TITLE}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        '<p><a href="./">streamer</a></p>\n'
        f"<h1>{_TITLE}</h1>\n{''.join(parts)}</body>\n</html>\n"
    )


def _blocks(text: str) -> str:
    """Paragraphs, lists and blocks of code.

    >>> _blocks("One\\nline.\\n\\n- a\\n- b\\n\\n```sh\\nls <x>\\n```\\n").split("\\n")[:2]
    ['<p>One line.</p>', '<ul><li>a</li><li>b</li></ul>']
    """
    return "".join(f"{block}\n" for block in map(_block, re.split(r"\n\s*\n", text.strip())))


def _block(text: str) -> str:
    if text.startswith("```"):
        code = text.partition("\n")[2].removesuffix("```")
        return f"<pre><code>{html.escape(code)}</code></pre>"
    if text.startswith("- "):
        items = (" ".join(item.split()) for item in re.split(r"^- ", text, flags=re.M)[1:])
        return f"<ul>{''.join(f'<li>{inline(item)}</li>' for item in items)}</ul>"
    return f"<p>{inline(' '.join(text.split()))}</p>"


def inline(text: str) -> str:
    """The HTML of a line.

    >>> inline("*a* `b_*c*` [d](how-to/size-it.md#e) [f](https://g) <h>")
    '<em>a</em> <code>b_*c*</code> d (docs/how-to/size-it.md) <a href="https://g">f</a> &lt;h&gt;'
    """
    return "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    for piece in _CODE.split(text):
        if piece.startswith("`"):
            yield f"<code>{html.escape(piece.strip('`'), quote=False)}</code>"
        else:
            marked = _LINK.sub(_linked, html.escape(piece, quote=False))
            yield _EMPHASIS.sub(r"<em>\1</em>", _STRONG.sub(r"<strong>\1</strong>", marked))


def _linked(link: re.Match[str]) -> str:
    """A link, or where it leads to a file of the repository its text and path."""
    text, target = link.groups()
    if target.startswith(("https://", "http://", "#")):
        return f'<a href="{html.escape(target)}">{text}</a>'
    path = posixpath.normpath(posixpath.join("docs", target.partition("#")[0]))
    return f"{text} ({path})"
