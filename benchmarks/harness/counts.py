"""What XLA says of a compiled program: its own counts, and the operations of the program that it was given."""

from __future__ import annotations

import re
from typing import Any

# Operations that tell one form from another. `while` is how loops appear, `sort` how sorted segments do.
TELLING = (
    "scatter",
    "select_and_scatter",
    "gather",
    "while",
    "sort",
    "convolution",
    "reduce_window",
    "dot_general",
)


def operations(stablehlo: str) -> dict[str, int]:
    """How often each of TELLING stands in a program."""
    counts = {name: len(re.findall(rf"stablehlo\.{name}\"?[ (]", stablehlo)) for name in TELLING}
    return {name: n for name, n in counts.items() if n}


def counts(lowered: Any, compiled: Any) -> dict[str, Any]:
    """flops, bytes, temporaries and operations; None for what the platform does not tell.

    XLA counts the body of a loop once, whatever the number of rounds: ``looped`` marks such flops and bytes.
    """
    cost = compiled.cost_analysis() or {}
    memory = compiled.memory_analysis()
    found = operations(lowered.as_text())
    return {
        "flops": cost.get("flops"),
        "bytes": cost.get("bytes accessed"),
        "temporaries": getattr(memory, "temp_size_in_bytes", None),
        "operations": found,
        "looped": "while" in found,
    }
