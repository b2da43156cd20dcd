"""The derivatives of adjoints for the heads that they were derived with: known, since a transpose's transpose is the map itself.

An adjoint is a sum of heads times Jacobians of readers. Its own derivative for one of these heads is the tangent of the reader, which
needs no equation to be solved: that of a convolution's adjoint is the convolution. The tensors that an adjoint is computed in, sums at
multiples of a stride and sums of some of its axes, are parts of it: what they pass on to the head is in the tangent of the reader already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxte.autodiff.rules.seeds import Adjoint, HeadSum
from jaxte.autodiff.rules.tangents import push_forward
from jaxte.autodiff.terms.lattice import LatticeSum
from jaxte.autodiff.terms.simplify import collect
from jaxte.lang.expr import cast
from jaxte.lang.identity import among
from jaxte.lang.walk import substitute
from jaxte.planning.orders.contraction import PartialSum
from jaxte.tensors.tensor import Compute, Tensor

_PARTS = (LatticeSum, PartialSum, HeadSum)


@dataclass(frozen=True)
class KnownTransposes:
    """Which derivatives are known from origins.

    Attributes:
        heads: for an adjoint, the heads that its derivative for is known.
        parts: for a tensor that adjoints are computed in, the heads that it passes nothing on to by itself.
    """

    heads: Mapping[Tensor, Sequence[Tensor]] = field(default_factory=dict)
    parts: Mapping[Tensor, Sequence[Tensor]] = field(default_factory=dict)

    def sources_of(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """The tensors that the derivative of ``tensor`` flows to."""
        passed = self.parts.get(tensor, ())
        own = [t for t in tensor.inputs if not among(t, passed)]
        return tuple(dict.fromkeys([*own, *self.heads.get(tensor, ())]))

    def knows(self, adjoint: Tensor, head: Tensor) -> bool:
        return among(head, self.heads.get(adjoint, ()))


def known_transposes(order: Sequence[Tensor]) -> KnownTransposes:
    """The derivatives that are known among the tensors of ``order``."""
    heads: dict[Tensor, list[Tensor]] = {
        t: found for t in order if isinstance(t, Adjoint) and (found := _heads_alone(t))
    }
    if not heads:
        return KnownTransposes()
    owners, others = _owners(order)
    mixed = True
    while (
        mixed
    ):  # a head that one part reads for an adjoint that does not know it is left to the general rule
        mixed = False
        for part, own in owners.items():
            for head in part.inputs:
                knowing = [t for t in own if among(head, heads.get(t, ()))]
                if knowing and (part in others or len(knowing) < len(own)):
                    mixed = True
                    heads |= {t: [h for h in heads[t] if h is not head] for t in knowing}
    parts: dict[Tensor, list[Tensor]] = {
        p: [h for h in p.inputs if own and all(among(h, heads.get(t, ())) for t in own)]
        for p, own in owners.items()
        if p not in others
    }
    return KnownTransposes(heads, parts)


def _owners(order: Sequence[Tensor]) -> tuple[dict[Tensor, set[Tensor]], set[Tensor]]:
    """For each part the adjoints that it is a part of, and the parts that something else reads too."""
    owners: dict[Tensor, set[Tensor]] = {t: set() for t in order if isinstance(t, _PARTS)}
    others: set[Tensor] = set()
    for reader in reversed(order):
        for part in reader.inputs:
            if part not in owners:
                continue
            if reader in owners:
                owners[part] |= owners[reader]
            elif isinstance(reader, Adjoint):
                owners[part].add(reader)
            if reader in others or (reader not in owners and not isinstance(reader, Adjoint)):
                others.add(part)
    return owners, others


def _heads_alone(adjoint: Adjoint) -> list[Tensor]:
    """The heads that ``adjoint`` reads as heads only: not as a factor, and not in the place of another head."""
    read: dict[Tensor, None] = {}
    stack: list[Tensor] = [adjoint]
    while stack:
        for tensor in stack.pop().inputs:
            if tensor not in read:
                read[tensor] = None
                stack.extend([tensor] if isinstance(tensor, _PARTS) else [])
    found: list[Tensor] = []
    for head in dict.fromkeys(o.head for o in adjoint.origins):
        others = [o.head for o in adjoint.origins if o.head is not head]
        factor = any(among(head, (o.reader, *o.reader.inputs)) for o in adjoint.origins)
        placed = any(among(head, t.inputs) for t in others)
        if not factor and not placed and head in read:
            found.append(head)
    return found


def of_adjoint(adjoint: Tensor, head: Tensor, tangent: Tensor) -> Compute:
    """``tangent`` times the derivative of ``adjoint`` with respect to ``head``, which is known."""
    assert isinstance(adjoint, Adjoint)
    parts = [
        push_forward(o.reader, {o.tensor: tangent}, tangent.shape[: tangent.ndim - o.tensor.ndim])
        for o in adjoint.origins
        if o.head is head
    ]
    axes = parts[0].axes
    body = collect([substitute(t.body, dict(zip(t.axes, axes, strict=True))) for t in parts])
    return Compute(f"d{head.name}", axes, body if not body.weak else cast(body, head.dtype))
