"""The transpose of what is linear, and with it tangents: the adjoint of an adjoint.

The adjoint of ``f`` is linear in its head, ``a = h J``; its own derivative with respect to ``h`` for the head ``t`` is ``J t``. So a
tangent reads what the adjoint reads, and maxima, ties, guards, recurrences and derivatives that were given are in it as they are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxte.autodiff.reverse import vjp_graph
from jaxte.lang.errors import DifferentiationError
from jaxte.tensors.tensor import Tensor


def transposed(
    results: Sequence[Tensor],
    inputs: Sequence[Tensor],
    heads: Sequence[Tensor],
    given: Sequence[Tensor] = (),
    why: str = "",
    override: Mapping[Tensor, Any] | None = None,
) -> list[Tensor]:
    """The adjoint of each of ``inputs``, in which ``results`` are linear.

    Args:
        heads: of ``results``.
        given: tensors behind which nothing is looked for.
        why: the end of the error.
        override: as in ``te.differentiate``.

    Raises:
        DifferentiationError: an adjoint depends on one of ``inputs``.
    """
    found = vjp_graph(results, heads, inputs, override)
    reached = reached_from(found, given)
    for tensor in inputs:
        if tensor in reached:
            names = ", ".join(t.name for t in results)
            raise DifferentiationError(f"{names} cannot be transposed: not linear in {tensor.name}{why}")
    return found


def reached_from(
    tensors: Sequence[Tensor], given: Sequence[Tensor] = (), overrides: Mapping[Tensor, Any] | None = None
) -> set[Tensor]:
    """``tensors`` and all that they read, or that their ``overrides`` depend on, up to those that are ``given``."""
    stop = set(given)
    known = {} if overrides is None else overrides
    seen: set[Tensor] = set()
    stack = list(tensors)
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor not in stop:
            stack.extend(tensor.inputs)
            own = known.get(tensor, tensor.override)
            stack.extend(() if own is None else own.dependencies)
    return seen
