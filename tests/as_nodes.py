"""JAX's own transformations of functions made by jaxte, each program evaluated as the nodes that were emitted mean it: nothing is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxte.bridge.primitive.primitive import jaxte_p
from jaxte.bridge.primitive.program import Program
from tests.lower.evaluation.program import evaluate_program


def _as_nodes(*arrays: Any, program: Program, **_: Any) -> list[Any]:
    found = evaluate_program(program.lowered, [np.asarray(a) for a in arrays])
    return [jnp.asarray(a) for a in found]


@contextmanager
def evaluated_as_nodes() -> Iterator[None]:
    """Within, a call outside of ``jax.jit`` is what :func:`evaluate_program` says."""
    own = jaxte_p.impl
    jaxte_p.def_impl(_as_nodes)
    try:
        yield
    finally:
        jaxte_p.def_impl(own)
