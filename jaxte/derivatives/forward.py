"""Forward mode: the tangents of outputs from those of inputs, tensor by tensor.

The transpose of what is linear: adjoints that depend on nothing that they are the adjoints of.

Tangents are one, of what an adjoint does to its head: ``a = h J`` is linear in ``h``, and its adjoint for the head ``t`` is ``J t``. So a tangent reads
what the adjoint reads, and maxima, ties, guards, recurrences and derivatives that were given are in it as they are there. :mod:`jaxte.autodiff.rules.tangents`
writes that down tensor by tensor, for tangents that are definitions; here it is asked of whole programs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jaxte.algebra.centred_sums import passes_nothing_on
from jaxte.algebra.product import is_zero
from jaxte.algebra.without_effect import without_effect
from jaxte.autodiff.rules.tangents import push_forward
from jaxte.autodiff.sums.blocks import zeros
from jaxte.derivatives.accumulation import accumulate, accumulation_order, sources_of
from jaxte.derivatives.given_overrides import by_fdiff, opaque, overrides_of
from jaxte.derivatives.overrides import Fdiff, Override, Overrides, check_fdiff
from jaxte.derivatives.recurrent import Recursion, recursions, tangents_of
from jaxte.derivatives.reverse import vjp_graph
from jaxte.lang import dtypes
from jaxte.lang.budget import bounded
from jaxte.lang.errors import DifferentiationError
from jaxte.lang.expr import Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.tensors.inputs import placeholder
from jaxte.tensors.shapes import Extent
from jaxte.tensors.structure import axis_names_of, topological_order
from jaxte.tensors.tensor import Compute, Extern, Tensor, new_axes


def jvp_graph(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    tangents: Sequence[Tensor | None],
    override: Mapping[Tensor, Any] | None = None,
    fdiff: Fdiff | None = None,
    prefix: Sequence[Extent] = (),
) -> list[Tensor]:
    """The tangent of each of ``outputs``: the sum over ``inputs`` of its Jacobian times their ``tangents``.

    ``tangents[n]`` has the shape ``prefix + inputs[n].shape`` and the dtype of ``inputs[n]``; None is zero. The results are linear in the
    tangents: the only condition about them is the guard that keeps an infinite slope from one that is zero. Where a tensor is reached from none of the
    inputs that move, its tangent is a tensor of zeros.
    """
    check_fdiff(fdiff)
    overrides = overrides_of(outputs, override)
    given = {t: d for t, d in zip(inputs, tangents, strict=True) if d is not None}
    order = accumulation_order(outputs, overrides)
    overrides |= recursions(order, overrides, accumulate)
    idle = without_effect(order, outputs, opaque(overrides)) if fdiff is None else set()
    found: dict[Tensor, Tensor] = {}
    by_override: dict[Override, dict[Tensor, Tensor]] = {}
    with bounded(len(order)):
        for tensor in order:
            if not dtypes.is_inexact(tensor.dtype) or (tensor in idle and tensor not in given):
                continue
            moving = {t: found[t] for t in sources_of(tensor, overrides) if t in found}
            own, rule = given.get(tensor), overrides.get(tensor)
            if rule is not None and moving and rule not in by_override:
                by_override[rule] = _of_override(rule, moving, prefix)
            derived: Tensor | None = None
            if moving:
                derived = (
                    by_override[rule][tensor]
                    if rule is not None
                    else _tangent(tensor, moving, given, fdiff, prefix)
                )
            total = own if derived is None else derived if own is None else _sum(tensor, own, derived)
            if total is not None:
                found[tensor] = total
    return [found[t] if t in found else zeros(f"{t.name}_dot", (*prefix, *t.shape), t.dtype) for t in outputs]


def _tangent(
    tensor: Tensor,
    moving: Mapping[Tensor, Tensor],
    given: Collection[Tensor],
    fdiff: Fdiff | None,
    prefix: Sequence[Extent],
) -> Tensor | None:
    """The tangent of ``tensor`` from those of what it reads, of which ``given`` do not follow from their definitions alone; None if it is zero."""
    if fdiff is not None:
        return _of_override(by_fdiff(tensor, fdiff), moving, prefix)[tensor]
    if isinstance(tensor, Extern):
        return tensor.group.tangent(tensor, moving, len(prefix))  # type: ignore[attr-defined, no-any-return]
    assert isinstance(tensor, Compute)
    moving = {t: move for t, move in moving.items() if t in given or not passes_nothing_on(tensor, t)}
    if not moving:
        return None
    found = push_forward(tensor, moving, prefix)
    return None if is_zero(found.body) else found


def _of_override(
    own: Override, moving: Mapping[Tensor, Tensor], prefix: Sequence[Extent]
) -> dict[Tensor, Tensor]:
    """The tangents of tensors whose derivative was given: by its tangent rule, or the transpose of what it does to heads."""
    if isinstance(own, Recursion):
        return tangents_of(own, moving, prefix, jvp_graph)
    if own.tangent is not None:
        moves = [
            moving[t] if t in moving else zeros(f"{t.name}_dot", (*prefix, *t.shape), t.dtype)
            for t in own.dependencies
        ]
        return dict(zip(own.outputs, own.tangents(moves, prefix), strict=True))
    heads = [placeholder(t.shape, t.dtype, f"H_{t.name}") for t in own.outputs]
    adjoints = {s: a for s, a in own.adjoints(heads, ()) if s in moving}
    if not adjoints:
        return {t: zeros(f"{t.name}_dot", (*prefix, *t.shape), t.dtype) for t in own.outputs}
    moves = [moving[s] for s in adjoints]
    remedy = "; give the tangent too, by defjvp (te.custom_gradient) or jvp= (te.array_gradient)"
    label = f"the override of {own.label}"
    found = transposed(list(adjoints.values()), heads, moves, label=label, remedy=remedy)
    return dict(zip(own.outputs, found, strict=True))


def _sum(tensor: Tensor, given: Tensor, derived: Tensor) -> Compute:
    """Both parts of the tangent of a tensor that moves by itself and with what it is computed from."""
    axes = new_axes(given.shape, axis_names_of(derived))
    body: Expr = Read(derived, axes)
    if isinstance(derived, Compute) and not isinstance(derived.body, Reduce):
        body = derived.element(axes)
    return Compute(f"{tensor.name}_dot", axes, Read(given, axes) + body)


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
