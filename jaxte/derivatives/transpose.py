"""The transpose of what is linear: adjoints that depend on nothing that they are the adjoints of.

Tangents are one, of what an adjoint does to its head: ``a = h J`` is linear in ``h``, and its adjoint for the head ``t`` is ``J t``. So a tangent reads
what the adjoint reads, and maxima, ties, guards, recurrences and derivatives that were given are in it as they are there. :mod:`jaxte.autodiff.rules.tangents`
writes that down tensor by tensor, for tangents that are definitions; here it is asked of whole programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.derivatives.accumulation import accumulate
from jaxte.derivatives.overrides import Override, Overrides
from jaxte.derivatives.reverse import vjp_graph
from jaxte.lang.errors import DifferentiationError
from jaxte.lang.graphs import among
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor


def transposed(
    results: Sequence[Tensor],
    inputs: Sequence[Tensor],
    heads: Sequence[Tensor],
    given: Sequence[Tensor] = (),
    override: Overrides | None = None,
    label: str = "",
    remedy: str = "",
) -> list[Tensor]:
    """The adjoint of each of ``inputs``, in which ``results`` are linear.

    Args:
        heads: of ``results``, all with the same prefix.
        given: tensors behind which nothing is looked for.
        override: as in ``te.differentiate``.
        label, remedy: the begin and the end of the error; by default it begins with the names of ``results``.

    Raises:
        DifferentiationError: an adjoint depends on one of ``inputs``; it names a tensor whose adjoint does.
    """
    found = vjp_graph(results, heads, inputs, override)
    reached = reached_from(found, (*given, *heads))
    for tensor in inputs:
        if tensor in reached and not among(tensor, heads):
            adjoints, _ = accumulate(results, heads, list(inputs), override, None)
            reader = next(t for t, a in adjoints.items() if tensor in reached_from([a], (*given, *heads)))
            what = label or ", ".join(t.name for t in results)
            raise DifferentiationError(
                f"{what} is not linear in {tensor.name}, so that it has no transpose: the adjoint of {reader.name} depends on "
                f"{tensor.name} itself{remedy}"
            )
    return found


def reached_from(
    tensors: Sequence[Tensor],
    given: Sequence[Tensor] = (),
    overrides: Mapping[Tensor, Override] | None = None,
) -> set[Tensor]:
    """``tensors`` and all that they read, or that their ``overrides`` depend on, up to those that are ``given``."""
    known = {} if overrides is None else overrides

    def below(tensor: Tensor) -> Sequence[Tensor]:
        own = known.get(tensor, tensor.override)
        return (*tensor.inputs, *(() if own is None else own.dependencies))

    stop = set(given)
    return set(topological_order(tensors, lambda tensor: () if tensor in stop else below(tensor)))
