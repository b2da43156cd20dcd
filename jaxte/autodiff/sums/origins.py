"""The derivatives of adjoints for the heads that they were derived with: known, since a transpose's transpose is the map itself.

An adjoint is a sum of heads times Jacobians of readers. Its own derivative for one of these heads is the tangent of the reader, which
needs no equation to be solved: that of a convolution's adjoint is the convolution. What an adjoint is computed in, sums at multiples of a
stride, sums of some of its axes, factors that several reads share, are *parts* of it: what they pass on to the head is in the tangent of the
reader already, and is counted once. A part is told by where it stands, between the adjoint and the head, whatever kind it is of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jaxte.algebra.simplify import collect
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.autodiff.rules.tangents import push_forward
from jaxte.lang.expr import cast
from jaxte.lang.graphs import among
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


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


def known_transposes(order: Sequence[Tensor], outputs: Sequence[Tensor]) -> KnownTransposes:
    """The derivatives that are known among the tensors of ``order``, into some of which, the ``outputs``, something flows from outside."""
    adjoints = [t for t in order if isinstance(t, Adjoint) and t.origins]
    if not adjoints:
        return KnownTransposes()
    reach = _Reach(order, adjoints)
    heads: dict[Tensor, list[Tensor]] = {t: found for t in adjoints if (found := _heads_alone(t, reach))}
    readers: dict[Tensor, list[Tensor | None]] = {t: [None] for t in outputs}
    for reader in order:
        for tensor in reader.inputs:
            readers.setdefault(tensor, []).append(reader)
    while True:
        owners = _owners(heads, reach)
        mixed = dict.fromkeys(_mixed(heads, owners, readers, reach))
        if not mixed:
            break
        for adjoint, head in mixed:  # left to the general rule
            heads[adjoint] = [h for h in heads[adjoint] if h is not head]
        heads = {t: own for t, own in heads.items() if own}
    parts = {p: [h for h in p.inputs if any(among(h, heads[t]) for t in own)] for p, own in owners.items()}
    return KnownTransposes(heads, parts)


class _Reach:
    """Which of the heads that adjoints were derived with each tensor depends on, as bits."""

    def __init__(self, order: Sequence[Tensor], adjoints: Sequence[Adjoint]) -> None:
        origins = [o for t in adjoints for o in t.origins]
        self._number = {head: n for n, head in enumerate(dict.fromkeys(o.head for o in origins))}
        self._of: dict[Tensor, int] = {}
        # a head of which nothing is left in ``order``, its body standing where it was read, is walked by itself
        for tensor in topological_order([*order, *(o.reader for o in origins), *self._number]):
            own = 1 << self._number[tensor] if tensor in self._number else 0
            for source in tensor.inputs:
                own |= self._of[source]
            self._of[tensor] = own

    def reaches(self, tensor: Tensor, heads: Sequence[Tensor]) -> bool:
        """Whether ``tensor`` is one of ``heads`` or depends on one."""
        return any(self._of[tensor] >> self._number[h] & 1 for h in heads)

    def between(self, adjoint: Adjoint, heads: Sequence[Tensor]) -> list[Tensor]:
        """The tensors through which ``adjoint`` depends on ``heads``, no head that it was derived with among them."""
        own = {o.head for o in adjoint.origins}
        found: dict[Tensor, None] = {}
        stack: list[Tensor] = [adjoint]
        while stack:
            for tensor in stack.pop().inputs:
                if tensor not in own and tensor not in found and self.reaches(tensor, heads):
                    found[tensor] = None
                    stack.append(tensor)
        return list(found)


def _heads_alone(adjoint: Adjoint, reach: _Reach) -> list[Tensor]:
    """The heads that ``adjoint`` reads as heads only: not as a factor, and not in the place of another head."""
    every = list(dict.fromkeys(o.head for o in adjoint.origins))
    found: list[Tensor] = []
    for head in every:
        factor = any(reach.reaches(o.reader, [head]) for o in adjoint.origins)
        placed = any(_stands_for(other, head, adjoint, reach) for other in every if other is not head)
        if (
            not factor
            and not placed
            and any(among(head, t.inputs) for t in (adjoint, *reach.between(adjoint, [head])))
        ):
            found.append(head)
    return found


def _stands_for(head: Tensor, inner: Tensor, adjoint: Adjoint, reach: _Reach) -> bool:
    """Whether the body of ``head``, which may stand in the place of its elements, reads ``inner`` itself or through what it is computed in."""
    if among(inner, head.inputs):
        return True
    # its body stands there, and what that reads is no part of the adjoint
    if not among(head, adjoint.inputs):
        return any(reach.reaches(t, [inner]) for t in head.inputs)
    return isinstance(head, Adjoint) and any(among(inner, t.inputs) for t in reach.between(head, [inner]))


def _owners(heads: Mapping[Tensor, Sequence[Tensor]], reach: _Reach) -> dict[Tensor, list[Tensor]]:
    """For each part the adjoints that it is a part of."""
    owners: dict[Tensor, list[Tensor]] = {}
    for adjoint, known in heads.items():
        assert isinstance(adjoint, Adjoint)
        for part in reach.between(adjoint, known):
            owners.setdefault(part, []).append(adjoint)
    return owners


def _mixed(
    heads: Mapping[Tensor, Sequence[Tensor]],
    owners: Mapping[Tensor, Sequence[Tensor]],
    readers: Mapping[Tensor, Sequence[Tensor | None]],
    reach: _Reach,
) -> Iterator[tuple[Tensor, Tensor]]:
    """The adjoints with a head that a part of them passes something on to for what does not know it."""
    for part, own in owners.items():
        for head in dict.fromkeys(h for t in own for h in heads[t] if reach.reaches(part, [h])):

            def knows(reader: Tensor | None, head: Tensor = head) -> bool:
                whose = [] if reader is None else owners.get(reader, [reader])
                return bool(whose) and all(among(head, heads.get(t, ())) for t in whose)

            if part in heads or not all(map(knows, readers[part])):
                yield from ((t, head) for t in own if among(head, heads[t]))


def of_adjoint(adjoint: Tensor, head: Tensor, tangent: Tensor) -> Compute:
    """``tangent`` times the derivative of ``adjoint`` with respect to ``head``, which is known."""
    assert isinstance(adjoint, Adjoint)
    parts = [
        push_forward(o.reader, {o.tensor: tangent}, tangent.shape[: tangent.ndim - o.tensor.ndim])
        for o in adjoint.origins
        if o.head is head
    ]
    axes = parts[0].axes
    body = collect([t.element(axes) for t in parts])
    return Compute(f"d{head.name}", axes, body if not body.weak else cast(body, head.dtype))
