"""Writes docs/ops.md, the operators with their formulas, from their docstrings: ``python docs/write_ops.py``."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import jaxte as te

PAGE = Path(__file__).parent / "ops.md"
_HEAD = """# Operators

Every operator of `te.ops` takes Tensors, and then it is a definition; or arrays, and then it runs as a JAX function with derived gradients. This page is
written by `make docs` from the docstrings, which also have the arguments, the errors and an example: `help(te.ops.conv2d)`. What was measured
of each operator beside plain JAX is on [a page of its own](operators.md).
"""
_TABLE = "| operator | what it is | formula | after |\n|---|---|---|---|"


def page() -> str:
    """The text of the page: a table for each file of ``jaxte/ops``, in the order of their names."""
    groups: dict[str, list[str]] = {}
    for name in te.ops.__all__:
        operator = getattr(te.ops, name)
        groups.setdefault(inspect.unwrap(operator).__module__.rsplit(".", 1)[1], []).append(
            _row(name, operator)
        )
    tables = [
        f"## {group.capitalize()}\n\n{_TABLE}\n" + "\n".join(rows) for group, rows in sorted(groups.items())
    ]
    return "\n\n".join([_HEAD.rstrip(), *tables]) + "\n"


def _row(name: str, operator: object) -> str:
    text = inspect.getdoc(operator) or ""
    own = inspect.signature(inspect.unwrap(operator))  # type: ignore[arg-type]
    bare = own.replace(
        parameters=[p.replace(annotation=p.empty) for p in own.parameters.values()],
        return_annotation=own.empty,
    )
    what = re.sub(r":\w+:(`[^`]+`)", r"\1", " ".join(text.split("\n\n")[0].split()).replace("``", "`"))
    formula, source = (_part(text, word) for word in ("Formula", "Source"))
    return f"| `{name}{bare}` | {_cell(what)} | {_cell(formula)} | {_cell(source)} |"


def _part(text: str, word: str) -> str:
    """The paragraph that begins with ``word:``."""
    found = re.search(rf"^{word}: (.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return " ".join(found[1].split()).replace("``", "`").rstrip(".") if found else ""


def _cell(text: str) -> str:
    """``text`` in a table. A bar in code, which would end the cell, is a character of HTML, which both GitHub and the site show."""
    code = re.sub(r"`([^`]*\|[^`]*)`", r"<code>\1</code>", text)
    return code.replace("|", "&#124;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
