"""The figures of docs/exactness.json, and the column that the other pages have of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parents[2] / "docs" / "exactness.json"
HEADER = "exact"
PAGES = {
    "suite": ("performance.md",),
    "corpus": ("corpus.md",),
    "raised": ("results/raising.md",),
    "operators": ("operators.md", "results/operators-further.md"),
}
GROUPS = ("suite", "corpus", "raised", "operators", "sums")
Known = dict[str, dict[str, dict[str, Any]]]  # by group, function and dtype


def known_figures() -> Known:
    found = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    return {group: found.get(group, {}) for group in GROUPS}


def breaks(found: Mapping[str, Any]) -> bool:
    """Whether a function is further off than the law allows."""
    return bool(found.get("worst", 0) > 1)


def with_column(text: str, group: str) -> str:
    """``text``, a page with Markdown tables of the functions of ``group``, with the last column "exact" in each table.

    It has the errors of jaxte and of plain JAX in float32, in units in the last place: of the gradients, under a heading "Forward" of the
    values.
    """
    named, known = _names_of_labels(group), known_figures()[group]
    lines = text.split("\n")
    what = "gradients"
    for n, line in enumerate(lines):
        if line.startswith("#"):
            what = "values" if line.strip("# ") == "Forward" else "gradients"
        if _is_rule(line) and n and lines[n - 1].startswith("|") and _is_timed(lines[n - 1]):
            _set_column(lines, n, [named, known], what)
    return "\n".join(lines)


def _names_of_labels(group: str) -> dict[str, str]:
    """The names of functions by what their rows are called."""
    page = {"suite": "performance.json", "corpus": "corpus.json"}.get(group)
    if page is None:
        return {name: name for name in known_figures()[group]}
    cases = json.loads(FIGURES.with_name(page).read_text(encoding="utf-8"))["cases"]
    return {case["title"].replace("|", "/"): case["name"] for case in cases}


def _is_rule(line: str) -> bool:
    return line.startswith("|") and set(line) <= set("|-: ")


def _is_timed(header: str) -> bool:
    """Whether a table is one of times, not of counts or definitions."""
    return "compile" in header or "status" in header


def _set_column(lines: list[str], rule: int, tables: Sequence[Mapping[str, Any]], what: str) -> None:
    named, known = tables
    end = next((n for n in range(rule, len(lines)) if not lines[n].startswith("|")), len(lines))
    rows = {
        n: [cell.strip() for cell in lines[n].strip().strip("|").split("|")] for n in range(rule - 1, end)
    }
    if not any(row[0].strip("`") in named for row in rows.values()):
        return
    has = rows[rule - 1][-1] == HEADER
    for n, row in rows.items():
        if n == rule - 1:
            own = HEADER
        elif n == rule:
            own = "---"
        else:
            own = _shown_pair(known.get(named.get(row[0].strip("`"), ""), {}).get("float32", {}), what)
        kept = lines[n].rstrip()[:-1].rpartition("|")[0] if has else lines[n].rstrip()[:-1]
        lines[n] = f"{kept}| {own} |"


def _shown_pair(found: Mapping[str, Any], what: str) -> str:
    pair = found.get(what) or found.get("values")
    if pair is None:
        return ""
    text = " / ".join(map(shown, pair))
    return f"**{text}**" if breaks(found) else text


def shown(units: float) -> str:
    """An error in units in the last place."""
    return f"{units:.1f}" if units < 9.95 else f"{units:,.0f}" if units < 1e5 else f"{units:.0e}"
