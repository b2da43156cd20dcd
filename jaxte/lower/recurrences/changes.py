"""Other definitions for some tensors of a program that has recurrences, and all that reads them made anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.lang.expr import Expr, Read
from jaxte.lang.walk import reads_of, substitute
from jaxte.tensors.recurrences.node import Kept, Recurrence, Recurrent
from jaxte.tensors.tensor import Compute, Extern, Tensor

Changed = dict[Tensor, Tensor]
"""What stands for tensors of a program."""


def changes(
    order: Sequence[Tensor],
    body: Callable[[Compute, Changed], Expr],
    groups: Mapping[Recurrence, Recurrence],
) -> Changed:
    """What stands for each tensor of ``order`` that is another one where some definitions are.

    Args:
        order: the tensors that are computed, each after what it reads.
        body: that of a definition, over tensors of ``order`` and over what stands for those before it.
        groups: recurrences, and what is in place of them, the same tensors first.
    """
    known: Changed = {}
    for tensor in order:
        if tensor in known:
            continue
        if isinstance(tensor, Compute):
            new = body(tensor, known)
            table: dict[Expr, Expr] = {
                r: Read(known[r.tensor], r.indices) for r in reads_of(new) if r.tensor in known
            }
            new = substitute(new, table)
            if new is not tensor.body:
                known[tensor] = tensor.renewed(new)
            continue
        together: Sequence[Tensor] = (tensor,)
        if isinstance(tensor, Recurrent):
            together = tensor.group.tensors
        elif isinstance(tensor, Extern):
            together = [t for t in order if isinstance(t, Extern) and t.group is tensor.group]
        own = (
            groups[tensor.group].tensors
            if isinstance(tensor, Recurrent) and tensor.group in groups
            else together
        )
        if own is together and not any(t in known for t in tensor.inputs):
            continue
        made = Rebuilt(known).parts(own)
        known.update(zip(together, made, strict=False))
        if isinstance(tensor, Recurrent):
            known.update(_beside(tensor.group, made[0], order))
    return known


def _beside(group: Recurrence, first: Tensor, order: Sequence[Tensor]) -> Changed:
    """What stands for the last values of the tensors of ``group``, and for what is kept of them, where ``first`` stands for its first tensor."""
    assert isinstance(first, Recurrent)
    own = first.group
    found: Changed = dict(zip(group.finals, own.finals, strict=False))
    for tensor in order:
        if isinstance(tensor, Kept) and tensor.group is group:
            found[tensor] = Kept(own, tensor.position, tensor.slots)
    return found


def renewed(first: Changed, second: Changed) -> Changed:
    """What stands for tensors after two changes, one after the other."""
    return {**second, **{old: second.get(new, new) for old, new in first.items()}}
