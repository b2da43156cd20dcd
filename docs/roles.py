"""A hook of the site: names in docstrings stand as code, without the roles that help() leaves as they are."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:func|class|meth|mod|attr):(?=<code>|`)")


def on_page_content(html: str, **_: Any) -> str:
    """The page as MkDocs is about to write it."""
    return _ROLE.sub("", html)
