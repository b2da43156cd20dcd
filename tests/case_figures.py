"""What XLA counts for each benchmark case with its gradients, at full size, beside the recorded figures.

``PYTHONPATH=.:benchmarks python -m tests.case_figures`` compiles the cases and renews ``case_figures.json``; read the
difference before it is taken over: a figure that got worse needs a reason.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import jaxlib

from harness.case import JAXTE, names
from tests.case_programs import compiled, lowered

FILE = Path(__file__).with_name("case_figures.json")
MARGIN = {"flops": 1.001, "bytes": 1.001, "temporaries": 1.001, "operations": 1.0}
SLACK = {"flops": 64, "bytes": 4096, "temporaries": 4096, "operations": 0}  # scalars, alignment

Figures = dict[str, int]


def figures(name: str) -> Figures:
    """Flops, bytes that are read and written (both in loops once), bytes of temporaries, operations of the module."""
    program = compiled(name, JAXTE)
    cost = program.cost_analysis()
    return {
        "flops": int(cost.get("flops", 0)),
        "bytes": int(cost["bytes accessed"]),
        "temporaries": int(program.memory_analysis().temp_size_in_bytes),
        "operations": len(
            re.findall(r"= \"?(?:stablehlo|chlo)\.(?!constant)", lowered(name, JAXTE).as_text())
        ),
    }


def recorded() -> dict[str, Figures] | None:
    """The figures of every case; None where another release of XLA counts them."""
    found = json.loads(FILE.read_text())
    return found["cases"] if found["jaxlib"] == jaxlib.__version__ else None


def worse(found: Figures, before: Figures) -> dict[str, str]:
    """The figures that are above what is recorded."""
    return {
        key: f"{found[key]:,} after {before[key]:,}"
        for key in found
        if found[key] > before[key] * MARGIN[key] + SLACK[key]
    }


def main() -> None:
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(figures(name))}" for name in names())
    FILE.write_text(f'{{\n  "jaxlib": "{jaxlib.__version__}",\n  "cases": {{\n{rows}\n  }}\n}}\n')


if __name__ == "__main__":
    main()
