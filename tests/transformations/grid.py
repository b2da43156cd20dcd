"""The grid of functions and transformations: run, compared with plain JAX, and written to docs/transformations.md.

python -m tests.transformations.grid [--write] [--row NAME] [--column NAME]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from tests.transformations.catalogue import COLUMNS, Column
from tests.transformations.functions import ROWS, Row

PAGE = Path(__file__).parents[2] / "docs" / "transformations.md"
_TOLERANCES = {"bfloat16": 0.1, "float16": 0.02, "float64": 1e-9}


def cell(row: Row, column: Column) -> str | None:
    """None where there is nothing to do, "" where jaxte does what plain JAX does, else what is wrong."""
    if column.needs and not getattr(row, column.needs):
        return None
    with jax.enable_x64(True) if column.dtype == "float64" else nullcontext():
        args = row.arguments(jnp.dtype(column.dtype))
        found = _run(column, row.fn, args)
        expected = (
            column.reference(row.reference, args) if column.reference else _run(column, row.reference, args)
        )
        return _difference(found, expected, _TOLERANCES.get(column.dtype, 1e-4))


def _run(column: Column, fn: Any, args: tuple[Any, ...]) -> Any:
    run = lambda *args: column.run(fn, args)  # noqa: E731
    return jax.jit(run)(*args) if column.jit else run(*args)


def _difference(found: Any, expected: Any, tolerance: float) -> str:
    if jax.tree.structure(found) != jax.tree.structure(expected):
        return f"the results are {jax.tree.structure(found)}, not {jax.tree.structure(expected)}"
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{a.dtype}{a.shape} in place of {b.dtype}{b.shape}"
        wide = "complex128" if np.iscomplexobj(a) else "float64"
        a, b = np.asarray(a).astype(wide), np.asarray(b).astype(wide)
        if not np.allclose(a, b, tolerance, tolerance * (1e-3 + np.abs(b).max(initial=0))):
            return f"differs by {np.abs(a - b).max():.1e} of {np.abs(b).max():.1e}"
    return ""


def run(rows: str | None, columns: str | None) -> Iterator[tuple[Row, Column, str | None]]:
    for row in ROWS:
        for column in COLUMNS:
            if rows in (None, row.name) and columns in (None, column.name):
                start = time.perf_counter()
                try:
                    result = cell(row, column)
                except Exception as error:  # a cell that raises is a result of the grid
                    result = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
                shown = "-" if result is None else result or "right"
                print(
                    f"{row.name:12}{column.name:28}{time.perf_counter() - start:6.1f} s  {shown}", flush=True
                )
                yield row, column, result


def page(cells: list[tuple[Row, Column, str | None]]) -> str:
    results = {(row.name, column.name): result for row, column, result in cells}
    names = [row.name for row in ROWS]
    lines = [f"| transformation | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    marks = {None: "", "": "✓"}
    for column in COLUMNS:
        found = [marks.get(results[name, column.name], "✗") for name in names]
        lines.append(f"| {column.name} | {' | '.join(found)} |")
    done = [r for r in results.values() if r is not None]
    wrong = [f"- {row}, {column}: {r}" for (row, column), r in results.items() if r]
    head = f"JAX {jax.__version__}, {jax.default_backend()}: {done.count('')} of {len(done)} cells are as plain JAX's."
    return "\n".join([head, "", *lines, *(["", *wrong] if wrong else [])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew docs/transformations.md")
    parser.add_argument("--row")
    parser.add_argument("--column")
    given = parser.parse_args()
    jax.config.update("jax_disable_most_optimizations", True)
    jax.config.update("jax_num_cpu_devices", 2)
    cells = list(run(given.row, given.column))
    wrong = [c for c in cells if c[2]]
    print(f"jaxte {te.__version__ if hasattr(te, '__version__') else ''}: {len(wrong)} cells are wrong")
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition("<!-- grid -->")
        after = rest.partition("<!-- /grid -->")[2]
        PAGE.write_text(f"{before}<!-- grid -->\n{page(cells)}\n<!-- /grid -->{after}", encoding="utf-8")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
