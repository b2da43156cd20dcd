"""Stencils with zeros around what they read, and what reads them by way of tensors that are cheap to compute again."""

from __future__ import annotations

from jaxte.lang.expr import Expr
from jaxte.lang.graphs import ordered
from jaxte.lang.limits import MOST_PARTS
from jaxte.lang.walk import reads_of, substitute
from jaxte.lower.program.across.padded_once import by_tensor, is_cheap, paddings
from jaxte.tensors.tensor import Compute, Tensor


def leads_to_stencils(reader: Compute, known: dict[Tensor, bool]) -> bool:
    """Whether stencils with zeros around what they read are among what ``reader`` reads, by way of cheap ones too; most programs have none.

    Args:
        known: of tensors that were asked of before, whether they are such stencils or lead to one.
    """

    def below(tensor: Tensor) -> tuple[Tensor, ...]:
        return () if tensor in known or not isinstance(tensor, Compute) else _read_if_cheap(tensor)

    for tensor in ordered(reader.inputs, below):
        if tensor not in known:
            is_stencil = isinstance(tensor, Compute) and _is_stencil(tensor)
            known[tensor] = is_stencil or any(known[t] for t in below(tensor))
    return any(known[t] for t in reader.inputs)


def _read_if_cheap(tensor: Compute) -> tuple[Tensor, ...]:
    return tensor.inputs if is_cheap(tensor.body) else ()


def _is_stencil(tensor: Compute) -> bool:
    """Whether ``tensor`` takes more than a few operations on what is read with zeros around it."""
    return not is_cheap(tensor.body) and bool(paddings(tensor.body))


def stencils_behind_cheap_ones(reader: Compute) -> set[Tensor]:
    """Stencils with zeros around what they read that ``reader`` reads at several places, if what is fused with it is counted.

    As ``a[i + 1] - b[i]`` with ``b[i] = 2 * a[i]`` does: for each place XLA would test again, for each element of each slice, whether it is inside.
    """
    places = {tensor: {read.indices for read in reads} for tensor, reads in by_tensor(reader.body).items()}
    waiting = [(tensor, indices) for tensor, own in places.items() for indices in own]
    for tensor, indices in waiting:
        if isinstance(tensor, Compute) and is_cheap(tensor.body) and len(waiting) < MOST_PARTS:
            at: dict[Expr, Expr] = dict(zip(tensor.axes, indices, strict=True))
            for read in reads_of(tensor.body):
                own = tuple(substitute(i, at) for i in read.indices)
                if own not in places.setdefault(read.tensor, set()):
                    places[read.tensor].add(own)
                    waiting.append((read.tensor, own))
    several = (t for t, own in places.items() if isinstance(t, Compute) and len(own) > 1)
    return {t for t in several if _is_stencil(t)}
