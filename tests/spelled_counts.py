"""What XLA counts for both passes of several spellings of one function, and which of them are beyond 1.5 times of the best.

The counts are those of the program as it is handed over. What is beyond the limit there is compiled, together with the best: sums that are
written out term by term are one loop then, and count as what they read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

import jaxte as te
from harness.sides import with_gradients
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Tensor
from tests.xla_counts import Fused

LIMIT = 1.5
SLACK = (2000.0, 16384.0)  # flops and bytes that no limit is about


def lowered(fn: Any, shapes: Sequence[jax.ShapeDtypeStruct]) -> Any:
    """``fn``, of float arrays, with the gradients of all, as XLA is given it."""
    both = with_gradients(fn, tuple(range(len(shapes))))
    return jax.jit(both).lower([jax.eval_shape(fn, *shapes)], *shapes)


def lowered_tensor(inputs: Sequence[Placeholder], tensor: Tensor) -> Any:
    """The same of a definition."""
    structs = [jax.ShapeDtypeStruct(t.shape, "float32") for t in inputs]
    return lowered(te.function(list(inputs), tensor), structs)


def counts(program: Any) -> tuple[float, float]:
    """Flops, and bytes accessed."""
    cost = program.cost_analysis()
    return cost.get("flops", 0.0), cost["bytes accessed"]


def beyond(
    programs: Mapping[str, Any], slack: Sequence[float] = SLACK, limit: float = LIMIT
) -> dict[str, str]:
    """The names of ``programs`` whose flops or bytes are not within the limit of the best, compiled too, with what they are."""
    if not _beyond({name: counts(program) for name, program in programs.items()}, slack, limit):
        return {}
    compiled = {name: Fused(p) for name, p in programs.items()}
    return _beyond({name: counts(program) for name, program in compiled.items()}, slack, limit)


def _beyond(found: Mapping[str, tuple[float, float]], slack: Sequence[float], limit: float) -> dict[str, str]:
    least = [min(own[n] for own in found.values()) for n in range(2)]
    return {
        name: f"{own} beside {least}"
        for name, own in found.items()
        if any(c > limit * m + s for c, m, s in zip(own, least, slack, strict=True))
    }
