"""The walk of reverse accumulation: readers before what they read, each passing one summand to every tensor it reads.

What flows alike into two tensors: whatever ``tanh(y[i, j] + b[j])`` passes to ``y[i, j]``, it passes to ``b[j]`` too.

So the adjoint of a bias is the sum of one that exists, ``db[j] = sum over i of dy[i, j]``, and reads it. That takes no operation of the slope a
second time, and stays so in derivatives of any order: tangents of both are added before they meet the slope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxte.algebra.centred_sums import passes_nothing_on
from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import collect
from jaxte.algebra.without_effect import without_effect
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.autodiff.sums.blocks import contributions_to, target_axes, zero_adjoint
from jaxte.autodiff.sums.cheap import merge, typed, zero_of
from jaxte.autodiff.sums.origins import KnownTransposes, known_transposes, of_adjoint
from jaxte.autodiff.sums.quotients import through_quotient
from jaxte.autodiff.sums.repeated_blocks import RepeatedBlocks
from jaxte.autodiff.terms.beside import made_better
from jaxte.autodiff.terms.scalar import Contribution, is_plain, sign_at_same_places
from jaxte.autodiff.terms.shared import one_of_equal_parts
from jaxte.autodiff.terms.zeros import summands
from jaxte.derivatives.given_overrides import opaque, overrides_of
from jaxte.derivatives.known_functions import KnownFunctions
from jaxte.derivatives.linearity import verify_linear
from jaxte.derivatives.overrides import Fdiff, Override, check_fdiff
from jaxte.derivatives.recurrent import recursions
from jaxte.lang import dtypes
from jaxte.lang.budget import bounded
from jaxte.lang.checks import called
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import TRUE, Axis, Read, Reduce, as_expr
from jaxte.lang.graphs import among, identical
from jaxte.lang.rules import VERIFY
from jaxte.lang.walk import reads_of
from jaxte.planning.asked import intermediates
from jaxte.planning.sums import Definition, planned_adjoint, planned_body, renewed
from jaxte.tensors.shapes import Extent, shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


def accumulate(
    outputs: Sequence[Tensor],
    heads: Sequence[Tensor],
    wanted: Sequence[Tensor] | None,
    override: Mapping[Tensor, Any] | None,
    fdiff: Fdiff | None,
) -> tuple[dict[Tensor, Tensor], dict[Tensor, dict[Tensor, Tensor]]]:
    """Adjoints and their summands for every tensor between ``wanted`` and ``outputs``."""
    check_fdiff(fdiff)
    walk = _Accumulation(outputs, heads, wanted, overrides_of(outputs, override), fdiff)
    with bounded(len(walk.visits)), made_better(_planned), one_of_equal_parts():
        for tensor in walk.visits:
            walk.visit(tensor)
    found = walk.adjoints | walk.vanished
    if VERIFY and walk.is_derived:
        verify_linear(found.values(), heads, walk.order)
    order = [t for t in reversed(walk.order) if t in found]
    return {t: found[t] for t in order}, {t: walk.summands[t] for t in order}


def _planned(beside: Compute) -> Compute:
    """A tensor that adjoints need beside one of the graph, planned as these are if it is a sum, as the number of ties is."""
    is_sum = isinstance(beside.body, Reduce) and beside.body.is_sum
    return renewed(beside, planned_body(beside, Definition())) if is_sum else beside


class _Accumulation:
    """What is known while the tensors are visited, the last one of the graph first.

    Attributes:
        is_derived: whether all adjoints follow from definitions, none from a function that was given.
    """

    def __init__(
        self,
        outputs: Sequence[Tensor],
        heads: Sequence[Tensor],
        wanted: Sequence[Tensor] | None,
        overrides: Mapping[Tensor, Override],
        fdiff: Fdiff | None,
    ) -> None:
        self.is_derived = not overrides and fdiff is None
        self.order = accumulation_order(outputs, overrides)
        overrides = {**overrides, **recursions(self.order, overrides, accumulate)}
        self._idle = (
            without_effect(self.order, outputs, opaque(overrides)) if fdiff is None else set[Tensor]()
        )
        self.adjoints: dict[Tensor, Tensor] = {}
        self.vanished: dict[Tensor, Tensor] = {}  # zero, so nothing flows on from them
        self.summands: dict[Tensor, dict[Tensor, Tensor]] = {}
        self._blocks = RepeatedBlocks()
        self._functions = KnownFunctions(self.order)
        self._given = list(zip(outputs, heads, strict=True))
        self._prefix = prefix_of(outputs[0], heads[0])
        self._overrides = overrides
        self._fdiff = fdiff
        self._known = KnownTransposes() if fdiff is not None else known_transposes(self.order, outputs)
        sources = {
            t: overrides[t].dependencies if t in overrides else self._known.sources_of(t) for t in self.order
        }
        # Leaves last: what flows into them may be the sum of what flows into others.
        inner = [t for t in reversed(self.order) if sources[t]]
        self.visits = [*inner, *(t for t in reversed(self.order) if not sources[t])]
        self._sources = sources
        self._needed = _needed(self.order, sources, wanted)
        self._wanted = self.order if wanted is None else wanted
        self._readers: dict[Tensor, list[Tensor]] = {t: [] for t in self.order}
        for tensor in self.order:
            for source in sources[tensor]:
                self._readers[source].append(tensor)
        # A region passes on what flows into it when the first of its tensors is visited, the last of all.
        self._first: dict[Override, Tensor] = {}
        for tensor in self.order:
            if tensor in overrides and tensor in self._needed:
                self._first.setdefault(overrides[tensor], tensor)
        self._from_overrides: dict[tuple[Tensor, Tensor], Tensor] = {}

    def visit(self, tensor: Tensor) -> None:
        if tensor not in self._needed:
            return
        if tensor in self._idle:
            self.summands[tensor] = {}
            self.vanished[tensor] = zero_adjoint(tensor, self._prefix)
            return
        self._add_up(tensor)
        own = self._overrides.get(tensor)
        if own is not None and self._first[own] is tensor:
            self._pass_on(tensor, own)

    def _add_up(self, tensor: Tensor) -> None:
        """The adjoint of ``tensor`` from what its readers pass on, if anything does."""
        parts: dict[Tensor, Tensor] = {}
        for reader in self._readers[tensor]:
            part = self._part(reader, tensor)
            if part is not None:
                parts[reader] = part
        given = [head for output, head in self._given if output is tensor]
        if not given and not parts:
            return
        self.summands[tensor] = parts
        adjoint = merge(tensor, given, list(parts.values()), self._prefix)
        if isinstance(adjoint, Adjoint):
            at = Definition()
            adjoint = adjoint.with_body(self._functions.read_in(adjoint.body))
            adjoint = adjoint.with_body(planned_adjoint(adjoint, at)).as_planned_by(at.fired)
        if not given and isinstance(adjoint, Compute) and is_zero(adjoint.body):
            self.vanished[tensor] = Compute(f"d{tensor.name}", adjoint.axes, zero_of(tensor.dtype))
        else:
            self.adjoints[tensor] = adjoint

    def _part(self, reader: Tensor, tensor: Tensor) -> Tensor | None:
        """What ``reader`` passes on to ``tensor``."""
        if reader in self._overrides:
            return self._from_overrides.get((reader, tensor))
        if reader not in self.adjoints:
            return None
        is_derived = self._fdiff is None and not among(tensor, self._wanted)
        if is_derived and passes_nothing_on(reader, tensor):
            return None
        head = self.adjoints[reader]
        if self._fdiff is not None:
            return _by_fdiff(self._fdiff, reader, tensor, head)
        if self._known.knows(reader, tensor):
            return of_adjoint(reader, tensor, head)
        if not self._sources[tensor]:
            for other in self._alone(reader, tensor):
                alike = passed_alike(reader, tensor, head, other, self.adjoints[other])
                if alike is not None:
                    return alike
        # what a sum divided is not read where sums along rows are one loop with what they are taken of
        quotient = (
            None if intermediates().rows else through_quotient(reader, tensor, head, self._readers[reader])
        )
        return self._blocks.block(reader, tensor, head) if quotient is None else quotient

    def _alone(self, reader: Tensor, tensor: Tensor) -> list[Tensor]:
        """The tensors beside ``tensor`` whose whole adjoint is what ``reader`` passes on to them."""
        outputs = [output for output, _ in self._given]
        return [
            t
            for t in self._sources[reader]
            if t is not tensor
            and t in self.adjoints
            and identical(list(self.summands[t]), [reader])
            and not among(t, outputs)
        ]

    def _pass_on(self, tensor: Tensor, own: Override) -> None:
        """What an override makes of the adjoints of its tensors; zeros for those that nothing flows into."""
        if not any(t in self.adjoints for t in own.outputs):
            return
        heads = [
            self.adjoints[t] if t in self.adjoints else zero_adjoint(t, self._prefix) for t in own.outputs
        ]
        for source, part in own.adjoints(heads, self._prefix):
            self._from_overrides[tensor, source] = part


def prefix_of(output: Tensor, head: Tensor) -> tuple[Extent, ...]:
    """The extents of ``head`` in front of those of ``output``."""
    return head.shape[: head.ndim - output.ndim]


def _by_fdiff(fdiff: Fdiff, reader: Tensor, tensor: Tensor, head: Tensor) -> Tensor:
    part = called(fdiff, (reader, tensor, head), "fdiff")
    expected = (*prefix_of(reader, head), *tensor.shape)
    if not isinstance(part, Tensor) or not identical(
        [as_expr(e) for e in part.shape], [as_expr(e) for e in expected]
    ):
        shown = shape_text(part.shape) if isinstance(part, Tensor) else type(part).__name__
        raise ShapeError(
            f"fdiff({reader.name}, {tensor.name}, head) returned {shown}; the adjoint has shape {shape_text(expected)}"
        )
    return part


def sources_of(tensor: Tensor, overrides: Mapping[Tensor, Override]) -> tuple[Tensor, ...]:
    """The tensors that the derivative of ``tensor`` flows to."""
    return overrides[tensor].dependencies if tensor in overrides else tensor.inputs


def accumulation_order(outputs: Sequence[Tensor], overrides: Mapping[Tensor, Override]) -> list[Tensor]:
    """All tensors, each after those that its derivative flows to."""
    if not overrides:
        return topological_order(outputs)
    return topological_order(outputs, lambda tensor: sources_of(tensor, overrides))


def _needed(
    order: Sequence[Tensor], sources: Mapping[Tensor, Sequence[Tensor]], wanted: Sequence[Tensor] | None
) -> set[Tensor]:
    """The tensors with a derivative that lie on a path from ``wanted``."""
    needed: set[Tensor] = set()
    for tensor in order:
        if not dtypes.is_inexact(tensor.dtype):
            continue
        on_path = wanted is None or any(tensor is w for w in wanted)
        if on_path or any(source in needed for source in sources[tensor]):
            needed.add(tensor)
    return needed


def passed_alike(
    reader: Tensor, tensor: Tensor, head: Tensor, other: Tensor, adjoint: Tensor
) -> Adjoint | None:
    """What ``reader`` passes on to ``tensor`` as a sum of ``adjoint``, all that it passes on to ``other``, or as what is opposite to it.

    Args:
        head: the adjoint of ``reader``.
        other: a tensor that ``reader`` reads too, and nothing else reads: at the same places, or at one place and element by element.

    Returns:
        None where they do not receive the same, or where the head itself flows into both.
    """
    if not isinstance(reader, Compute) or tensor.dtype != other.dtype:
        return None
    first = contributions_to(reader, other, head, missing_ok=True)
    reads = [read for read in reads_of(reader.body) if read.tensor is tensor]
    if first is None or (not reader.body.reduces and 1 != len(first[1]) > len(reads)):
        return None
    own = contributions_to(reader, tensor, head, missing_ok=True)
    if own is None:
        return None
    (prefix, parts), (_, others) = own, first
    targets = target_axes(reader, tensor, prefix)
    if identical(tensor.shape, other.shape) and (sign := sign_at_same_places(parts, others)):
        found = Read(adjoint, (*prefix, *targets))
        body = typed(found if sign > 0 else -found, tensor.dtype)
        return Adjoint(f"d{tensor.name}", (*prefix, *targets), body, [adjoint])
    if len(others) != 1 or not _is_elementwise(others[0], reader, other) or is_plain(others[0].value):
        return None
    if any(p.value is not others[0].value or p.where is not TRUE for p in parts):
        return None
    (known,) = others
    assert isinstance(known.read, Read)
    element = Read(adjoint, (*prefix, *known.read.indices))
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
