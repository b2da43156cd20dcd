"""The notebooks of examples/ run from top to bottom, and are stored without outputs."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples" / "notebooks").glob("*.ipynb"))


def run(code: str, scope: dict[str, Any], where: str) -> Any:
    """The value of the last expression of a cell, as a kernel has it."""
    *before, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        exec(compile(code, where, "exec"), scope)
        return None
    exec(compile(ast.Module(before, []), where, "exec"), scope)
    return eval(compile(ast.Expression(last.value), where, "eval"), scope)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_run_in_order(path: Path) -> None:
    scope: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            assert not cell["outputs"] and cell["execution_count"] is None
            with contextlib.redirect_stdout(io.StringIO()):
                shown = run("".join(cell["source"]), scope, f"{path.name}, cell {number}")
            for form in ("_repr_latex_", "_repr_html_"):
                assert getattr(shown, form, lambda: "shown")()
    plt.close("all")


def test_there_are_six() -> None:
    assert len(NOTEBOOKS) == 6
