"""The derivatives of adjoints for the heads that they were derived with: known, since a transpose's transpose is the map itself.

An adjoint is a sum of heads times Jacobians of readers. Its own derivative for one of these heads is the tangent of the reader, which
needs no equation to be solved: that of a convolution's adjoint is the convolution. A sum that an adjoint keeps at multiples of a
stride (see ``lattice``) is a part of it, so what it passes on to the head is in the tangent of the reader already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxte.autodiff.lattice import LatticeSum
from jaxte.autodiff.seeds import Adjoint
from jaxte.autodiff.simplify import collect
from jaxte.autodiff.tangents import push_forward
from jaxte.lang.expr import cast
from jaxte.lang.identity import among
from jaxte.lang.walk import substitute
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class KnownTransposes:
    """Which derivatives are known from origins.

    Attributes:
        heads: for an adjoint, the heads that its derivative for is known.
        parts: for a sum at multiples, the heads that it passes nothing on to by itself.
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
    sums = [t for t in order if isinstance(t, LatticeSum)]
    readers = {s: [t for t in order if among(s, t.inputs)] for s in sums}
    mixed = True
    while mixed:  # a head that one sum reads for a tensor of another kind too is left to the general rule
        mixed = False
        for part in sums:
            for head in part.inputs:
                own = [r for r in readers[part] if among(head, heads.get(r, ()))]
                if own and len(own) < len(readers[part]):
                    mixed = True
                    heads |= {r: [h for h in heads[r] if h is not head] for r in own}
    parts: dict[Tensor, list[Tensor]] = {
        s: [h for h in s.inputs if all(among(h, heads.get(r, ())) for r in readers[s])] for s in sums
    }
    return KnownTransposes(heads, parts)


def _heads_alone(adjoint: Adjoint) -> list[Tensor]:
    """The heads that ``adjoint`` reads as heads only: not as a factor, and not in the place of another head."""
    parts = [adjoint, *(t for t in adjoint.inputs if isinstance(t, LatticeSum))]
    found: list[Tensor] = []
    for head in dict.fromkeys(o.head for o in adjoint.origins):
        others = [o.head for o in adjoint.origins if o.head is not head]
        factor = any(among(head, (o.reader, *o.reader.inputs)) for o in adjoint.origins)
        placed = any(among(head, t.inputs) for t in others)
        if not factor and not placed and any(among(head, t.inputs) for t in parts):
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
