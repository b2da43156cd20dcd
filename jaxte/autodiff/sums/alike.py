"""What flows alike into two tensors: whatever ``tanh(y[i, j] + b[j])`` passes to ``y[i, j]``, it passes to ``b[j]`` too.

So the adjoint of a bias is the sum of one that exists, ``db[j] = sum over i of dy[i, j]``, and reads it. That takes no operation of the slope a
second time, and stays so in derivatives of any order: tangents of both are added before they meet the slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxte.algebra.simplify import collect
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.autodiff.sums.blocks import contributions_to, target_axes
from jaxte.autodiff.sums.cheap import typed
from jaxte.autodiff.terms.scalar import Contribution
from jaxte.autodiff.terms.zeros import summands
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.operators import NEGATIVE
from jaxte.tensors.tensor import Compute, Tensor


def passed_alike(
    reader: Tensor, tensor: Tensor, head: Tensor, other: Tensor, adjoint: Tensor
) -> Adjoint | None:
    """What ``reader`` passes on to ``tensor`` as a sum of ``adjoint``, all that it passes on to ``other``.

    Args:
        head: the adjoint of ``reader``.
        other: a tensor that ``reader`` reads too, at one place and element by element, and nothing else reads.

    Returns:
        None where they do not receive the same, or where the head itself flows into both.
    """
    if not isinstance(reader, Compute) or tensor.dtype != other.dtype:
        return None
    own = contributions_to(reader, tensor, head, missing_ok=True)
    first = contributions_to(reader, other, head, missing_ok=True)
    if own is None or first is None:
        return None
    (prefix, parts), (_, others) = own, first
    if len(others) != 1 or not _is_elementwise(others[0], reader, other) or _is_plain(others[0].value):
        return None
    if any(p.value is not others[0].value or p.where is not TRUE for p in parts):
        return None
    (known,) = others
    assert isinstance(known.read, Read)
    element = Read(adjoint, (*prefix, *known.read.indices))
    targets = target_axes(reader, tensor, prefix)
    terms = [term for part in parts for term in summands(replace(part, value=element), targets)]
    return Adjoint(f"d{tensor.name}", (*prefix, *targets), typed(collect(terms), tensor.dtype), [adjoint])


def _is_elementwise(part: Contribution, reader: Compute, tensor: Tensor) -> bool:
    """Whether each element of ``reader`` reads one of ``tensor``, and each of these is read once."""
    assert isinstance(part.read, Read)
    indices = part.read.indices
    axes: Sequence[Axis] = [i for i in indices if isinstance(i, Axis)]
    whole = len(axes) == len(indices) == len(reader.axes) and all(among(a, axes) for a in reader.axes)
    return (
        whole
        and part.where is TRUE
        and len(part.axes) == len(reader.axes)
        and all(a.hi is as_expr(e) for a, e in zip(axes, tensor.shape, strict=True))
    )


def _is_plain(value: Expr) -> bool:
    """Whether there is nothing to compute: the head's own element."""
    while isinstance(value, Call) and (value.op is NEGATIVE or value.op.name == "cast"):
        value = value.args[0]
    return isinstance(value, Read)
