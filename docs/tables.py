"""A hook of mkdocs: cells that hold numbers alone, as ``2.2 / 1.8 s``, stay on one line."""

from __future__ import annotations

import re
from typing import Any

_NUMBER = r"(?:&lt;|[-+])?\d[\d.,]*(?:e[-+]?\d+)?"
_CELL = re.compile(
    rf"<td([^>]*)>((?:<strong>)?{_NUMBER}(?: (?:/|to|x) {_NUMBER})*(?: ?[a-zA-Z%]+){{0,2}}(?:</strong>)?)</td>"
)


def on_page_content(html: str, **_: Any) -> str:
    """Called with the content of each page."""
    return _CELL.sub(r'<td class="numbers"\1>\2</td>', html)
