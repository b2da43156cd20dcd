"""The derivative of a program: one program that also returns the residuals, and one that is linear in the tangents.

Both modes read the same residuals, those that the backward pass reads: reverse mode transposes the linear program, and its transpose is the
backward pass, which is there before the tangents are derived. Tangents are derived when forward mode asks for them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from jaxte.autodiff.rules.readers import leaves_out
from jaxte.autodiff.terms.beside import within
from jaxte.bridge.primitive.lazy import lazy
from jaxte.bridge.primitive.program import BACKWARD, SAVING, TANGENT, Program, program
from jaxte.derivatives.accumulation import accumulation_order, sources_of
from jaxte.derivatives.forward import jvp_graph, reached_from, transposed
from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.derivatives.reverse import vjp_graph
from jaxte.derivatives.stand_ins import stand_in
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import among
from jaxte.lower.program.residuals import saved_tensors, sizes_told
from jaxte.planning.asked import planned_with
from jaxte.tensors.inputs import Head, Placeholder, Residual, ResidualHead
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Extern, Tensor


@dataclass(frozen=True)
class Transposed:
    """The program of adjoints; its inputs are those of the transposed program at ``operands``, then the heads."""

    program: Program
    operands: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Linearized:
    """The derivative of ``source``, whose inputs are placeholders, to its inputs at ``perturbed``."""

    source: Program
    perturbed: tuple[int, ...]

    @lazy
    def heads(self) -> tuple[Placeholder, ...]:
        """The adjoint of each result that has a derivative."""
        source = self.source
        excluded = [source.outputs[n] for n in source.excluded]
        return heads_of([source.outputs[n] for n in source.with_head], excluded)

    @lazy
    def adjoints(self) -> tuple[Tensor, ...]:
        """The adjoint of each perturbed input."""
        return self._adjoints(self.perturbed, self.source.with_head)

    def _adjoints(self, wanted: Sequence[int], heads: Sequence[int]) -> tuple[Tensor, ...]:
        source = self.source
        own = [self.heads[source.with_head.index(n)] for n in heads]
        sources = [source.inputs[n] for n in wanted]
        if not sources:
            return ()
        outputs = [source.outputs[n] for n in heads]
        facts = source.policy.facts
        with (
            within(source.policy.max_memory, not facts.reads_windows_again, not facts.loop),
            planned_with(source.policy.facts.intermediates, source.policy.without, source.policy.debug),
        ):
            return tuple(vjp_graph(outputs, own, sources, source.overrides_of(outputs), source.fdiff))

    @lazy
    def saved(self) -> tuple[Tensor, ...]:
        """The residuals: forward tensors that the backward pass reads."""
        source = self.source
        return tuple(saved_tensors(source.inputs, source.outputs, self.adjoints, source.policy, self.made))

    @lazy
    def made(self) -> tuple[Tensor, ...]:
        """What the forward functions of given derivatives keep."""
        reached = topological_order(self.adjoints)
        return tuple(t for t in reached if isinstance(t, Extern) and t.group.in_forward_pass)  # type: ignore[attr-defined]

    @lazy
    def kept(self) -> tuple[Tensor, ...]:
        """The residuals that are neither inputs nor outputs, which the forward pass has to return beside them."""
        at_hand = {*self.source.inputs, *self.source.outputs}
        return tuple(t for t in self.saved if t not in at_hand)

    @lazy
    def saving(self) -> Program:
        """The results of the source, then what is kept."""
        source = self.source
        lasting = source.lasting
        if not self.kept and len(lasting) == len(source.overrides):
            return source
        outputs = (*source.outputs, *self.kept)
        made = program(SAVING, source.label, source.inputs, outputs, source.policy, lasting, source.fdiff)
        return (
            replace(made, excluded=frozenset(range(len(source.outputs), len(outputs))))
            if self._excludes
            else made
        )

    @lazy
    def kept_alone(self) -> Program | None:
        """What is kept of a linear program, from the inputs that it is not linear in; None where it is kept of the results too.

        JAX may know these and not the rest, and what it does with a map (``jax.lax.custom_root`` solves with it) must not make unknown
        what does not depend on what it is applied to.
        """
        source = self.source
        others = [t for n, t in enumerate(source.inputs) if n not in self.perturbed]
        if source.name != TANGENT or not self.kept or len(source.lasting) < len(source.overrides):
            return None
        if any(t in reached_from(self.kept, others) for t in self._perturbed):
            return None
        return program(SAVING, source.label, others, self.kept, source.policy, source.lasting, source.fdiff)

    @lazy
    def operands(self) -> tuple[Tensor, ...]:
        """What both linear programs are given beside tangents or heads: the residuals, and what else tells sizes."""
        source = self.source
        found = dict.fromkeys((*self.saved, *source.inputs) if self._has_rules else self.saved)
        tangents = [source.inputs[n] for n in self.perturbed]
        told = sizes_told([*found, *tangents])
        for tensor in source.inputs:
            more = sizes_told([*found, *tangents, tensor])
            if more - told:
                found[tensor] = None
                told = more
        return tuple(found)

    @lazy
    def places(self) -> tuple[int, ...]:
        """Where each operand stands among the inputs of the source, followed by the results of ``saving``."""
        every = (*self.source.inputs, *self.saving.outputs)
        where = {tensor: n for n, tensor in reversed(list(enumerate(every)))}
        return tuple(where[t] for t in self.operands)

    @lazy
    def reached(self) -> tuple[int, ...]:
        """Positions of the results that depend on a perturbed input."""
        source = self.source
        moved = set(self._perturbed)
        for tensor in accumulation_order(source.outputs, source.overrides):
            if is_inexact(tensor.dtype) and any(t in moved for t in sources_of(tensor, source.overrides)):
                moved.add(tensor)
        return tuple(n for n in source.with_head if source.outputs[n] in moved)

    @lazy
    def tangents(self) -> Program:
        """From the residuals and the tangents of the perturbed inputs to those of the results at ``reached``."""
        source = self.source
        dots = [_tangent_of(t) for t in self._perturbed]
        return Program(
            TANGENT,
            source.label,
            (*self.operands, *dots),
            tuple(source.results[n] for n in self.reached),
            partial(self._tangents, dots),
            tuple(range(len(self.reached))),
            source.policy,
            source.lasting,
            source.fdiff,
            self._transpose,
        )

    @lazy
    def _has_rules(self) -> bool:
        """Whether a tangent was given by a rule of its own, so that forward mode is no transpose of the backward pass."""
        return any(own.tangent is not None for own in self.source.overrides.values())

    @lazy
    def _excludes(self) -> bool:
        """Whether some tensor may leave elements of another out."""
        reached = reached_from(self.source.outputs, self.source.inputs)
        return any(isinstance(t, Compute) and leaves_out(t) for t in reached)

    @property
    def _perturbed(self) -> list[Tensor]:
        return [self.source.inputs[n] for n in self.perturbed]

    def _tangents(self, dots: Sequence[Tensor]) -> list[Tensor]:
        if self._has_rules:
            source = self.source
            facts = source.policy.facts
            with within(source.policy.max_memory, not facts.reads_windows_again, not facts.loop):
                moved = jvp_graph(source.outputs, self._perturbed, dots, source.overrides, source.fdiff)
            return [moved[n] for n in self.reached]
        remedy = (
            f"; its derivative was given by a function that is not linear in the adjoint (an override in {self.source.label}), "
            "so forward mode cannot be derived from it; use reverse mode, or give the tangents with defjvp"
        )
        found = transposed(self.adjoints, self.heads, dots, self.operands, remedy=remedy)
        if not self._reads(found, dots) <= self._reads(self.adjoints, self.heads):
            # the tangent of a reader may read what its adjoint does without; that of the adjoint's copy does not
            copies = Rebuilt({h: stand_in(h) for h in self.heads})
            adjoints = copies.tensors(self.adjoints)
            found = transposed(
                adjoints, [copies.table[h] for h in self.heads], dots, self.operands, remedy=remedy
            )
        return [found[self.source.with_head.index(n)] for n in self.reached]

    def _reads(self, tensors: Sequence[Tensor], linear: Sequence[Tensor]) -> set[Tensor]:
        """The forward tensors that ``tensors`` are computed from beside the operands."""
        forward = reached_from(self.source.outputs) - set(self.operands)
        return reached_from(tensors, (*self.operands, *linear)) & forward

    def _transpose(self, wanted: tuple[int, ...], heads: tuple[int, ...]) -> Transposed | None:
        """The backward pass, where the tangents are what is wanted of the linear program."""
        first = len(self.operands)
        if any(n < first for n in wanted):
            return None
        chosen = tuple(self.perturbed[n - first] for n in wanted)
        made = self.backward(chosen, tuple(self.reached[n] for n in heads))
        return None if made is None else Transposed(made, tuple(range(first)))

    def backward(self, wanted: tuple[int, ...], heads: tuple[int, ...]) -> Program | None:
        """The adjoints of the inputs at ``wanted`` from the residuals and the heads of the results at ``heads``.

        None where fewer heads need other residuals: what is zero in one sum may be computed in another way in the next.
        """
        return self.source.kept(
            ("backward", self.perturbed, wanted, heads), lambda: self._backward(wanted, heads)
        )

    def _backward(self, wanted: tuple[int, ...], heads: tuple[int, ...]) -> Program | None:
        source = self.source
        # the heads of other results are in no adjoint
        whole = wanted == self.perturbed and {*heads} >= {*self.reached}
        adjoints = self.adjoints if whole else self._adjoints(wanted, heads)
        own = [self.heads[source.with_head.index(n)] for n in heads]
        given = (*self.operands, *own)
        missing = {t for t in reached_from(adjoints, given) if isinstance(t, Placeholder)} - set(given)
        if missing:
            return None
        made = program(BACKWARD, source.label, given, adjoints, source.policy, source.lasting, source.fdiff)
        return replace(made, beside=self.saving, flow=(wanted, heads))


def _tangent_of(tensor: Tensor) -> Placeholder:
    """A placeholder for the tangent of ``tensor``, which may be infinite or NaN where that may be."""
    kind = Residual if isinstance(tensor, Residual) else Placeholder
    return kind(f"{tensor.name}_dot", tensor.shape, tensor.dtype)


def heads_of(outputs: Sequence[Tensor], excluded: Collection[Tensor] = ()) -> tuple[Placeholder, ...]:
    """A placeholder for the adjoint of each of ``outputs``; those ``excluded`` are residuals with elements that may be left out."""
    names = ["H"] if len(outputs) == 1 else [f"H_{t.name}" for t in outputs]
    kinds = [ResidualHead if among(t, excluded) else Head for t in outputs]
    return tuple(kind(n, t.shape, t.dtype) for t, n, kind in zip(outputs, names, kinds, strict=True))
