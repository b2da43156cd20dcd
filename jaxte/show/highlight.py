"""Emitted code with its words in colours, as notebooks show it, with a button that copies it."""

from __future__ import annotations

import html
import io
import keyword
import token
import tokenize

# The colours of the page that the code stands on, a site of mkdocs or JupyterLab, of which each has a light and a dark scheme; elsewhere
# colours of middle lightness, which read on white and on black.
_COLOURS = {"keyword": "#8250df", "string": "#2f8f4e", "number": "#b35900", "comment": "#7a828e"}
_STYLES = {
    kind: f"color:var(--md-code-hl-{kind}-color, var(--jp-mirror-editor-{kind}-color, {colour}))"
    for kind, colour in _COLOURS.items()
}
_COPY = "navigator.clipboard.writeText(this.parentNode.querySelector('code').innerText)"


class Code(str):
    """The text of a module; a notebook shows it highlighted."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        button = f'<button style="position:absolute; top:0; right:0" onclick="{_COPY}">copy</button>'
        return f'<div class="jaxte" style="position:relative">{button}<pre style="overflow-x:auto"><code>{highlighted(self)}</code></pre></div>'


def highlighted(text: str) -> str:
    """``text``, a Python module, as HTML."""
    lines = text.splitlines(keepends=True)
    pieces: list[str] = []
    at = (1, 0)
    for found in tokenize.generate_tokens(io.StringIO(text).readline):
        if found.type in (token.INDENT, token.DEDENT, token.ENDMARKER):
            continue
        pieces.append(html.escape(_between(lines, at, found.start)))
        kind = _kind(found)
        shown = html.escape(found.string)
        pieces.append(f'<span style="{_STYLES[kind]}">{shown}</span>' if kind else shown)
        at = found.end
    return "".join(pieces)


def _kind(found: tokenize.TokenInfo) -> str | None:
    if found.type == token.NAME:
        return "keyword" if keyword.iskeyword(found.string) else None
    return {token.STRING: "string", token.NUMBER: "number", token.COMMENT: "comment"}.get(found.type)


def _between(lines: list[str], start: tuple[int, int], stop: tuple[int, int]) -> str:
    """The characters between two places, which are spaces."""
    if start[0] > len(lines):
        return ""
    if start[0] == stop[0]:
        return lines[start[0] - 1][start[1] : stop[1]]
    first = lines[start[0] - 1][start[1] :]
    return first + "".join(lines[start[0] : stop[0] - 1]) + lines[stop[0] - 1][: stop[1]]
