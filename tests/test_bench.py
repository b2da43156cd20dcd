"""The benchmarks' commands run with small settings, and the counts among their figures hold. Clocks are not asserted on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jaxte as te

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
BUDGETS = {1: (6105, 437), 2: (2273, 599), 3: (1049, 599)}


def run(script: str, figures: Path, *options: str) -> tuple[str, Any]:
    """What a command prints, and the figures that it writes."""
    command = [sys.executable, str(BENCHMARKS / script), *options, "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert not done.stderr.strip(), done.stderr
    return done.stdout, json.loads(figures.read_text())


def test_run_prints_every_figure_beside_its_budget(tmp_path: Path) -> None:
    printed, rows = run("run.py", tmp_path / "figures.json", "--runs", "1", "--sizes", "20", "40")
    assert printed.startswith("| what ") and len(printed.splitlines()) == len(rows) + 2
    assert all(row["figure"] > 0 and row["budget"] > 0 for row in rows)
    assert all(row["ok"] == (row["figure"] <= row["budget"]) for row in rows)
    counts = [row for row in rows if row["unit"] in ("iterations", "elements")]
    assert len(counts) == 6 and all(row["ok"] for row in counts)


def test_emitted_finds_the_scatters_of_jax_grad_and_none_of_jaxte(tmp_path: Path) -> None:
    printed, results = run("emitted.py", tmp_path / "figures.json", "--rounds", "1", "--scale", "7")
    theirs = {op for sides in results.values() for op in sides["jax.grad"]["operations"]}
    assert {"scatter", "gather", "select_and_scatter"} <= theirs
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, sides in results.items():
        assert sides["jaxte"]["operations"] == {}, name
        assert sides["jaxte"]["flops"] <= sides["jax.grad"]["flops"], name
        assert sides["jaxte"]["temporaries"] <= sides["jax.grad"]["temporaries"], name
        assert name in printed and name in readme


def test_cost_of_the_adjoints_of_a_convolution() -> None:
    for stride, (iterations, memory) in BUDGETS.items():
        X, W = te.placeholder((1, 2, 10, 10), name="X"), te.placeholder((2, 2, 3, 3), name="W")
        Y = te.ops.conv2d(X, W, strides=stride)
        found = te.cost(te.differentiate(Y, [X, W], head=te.placeholder(Y.shape, name="H")))
        assert found.iterations <= iterations and found.memory <= memory
