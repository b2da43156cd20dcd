"""The gradients of regions of a program: overrides of the tensors that hold their outputs, made of the statements that give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.derivatives.regions import give
from jaxte.frontends.loops.equations.dataflow import Dataflow
from jaxte.frontends.loops.equations.states import Timed
from jaxte.frontends.loops.program import Equation, Marked
from jaxte.lang.expr import Axis, Expr, Read
from jaxte.lang.functions import select
from jaxte.lang.walk import substitute
from jaxte.tensors.compute import defined
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, eq=False)
class Made:
    """What stands for an equation: an expression of its axes."""

    axes: tuple[Axis, ...]
    value: Expr

    def at(self, indices: Sequence[Expr]) -> Expr:
        return substitute(self.value, dict(zip(self.axes, indices, strict=True)))

    @property
    def tensor(self) -> Tensor:
        """The tensor that is read, of an equation that is one of its own."""
        assert isinstance(self.value, Read)
        return self.value.tensor


@dataclass(frozen=True, eq=False)
class _Place:
    """An equation as a tensor, or as one of the definitions of a recurrence, which is over its clock."""

    equation: Equation
    tensor: Tensor
    timed: Timed | None

    def of_equation(self, given: Tensor) -> Tensor:
        """``given``, a tensor like this one, over the axes of the equation."""
        if self.timed is None:
            return given
        axes = _axes_like(self.equation.axes)
        return defined([given.name], axes, [Read(given, self.timed.place(axes))])[0]

    def of_tensor(self, given: Tensor) -> Tensor:
        """``given``, over the axes of the equation, like this tensor."""
        timed = self.timed
        if timed is None:
            return given
        axes = _axes_like(timed.axes)
        table: dict[Expr, Expr] = dict(zip(timed.axes, axes, strict=True))
        at = [substitute(timed.table[a], table) for a in self.equation.axes]
        value = select(substitute(timed.domain, table), Read(given, at), 0)
        return defined([given.name], axes, [value])[0]


def give_gradient(
    region: Marked,
    flow: Dataflow,
    made: Mapping[Equation, Made],
    definitions: Mapping[Equation, tuple[Compute, Timed]],
) -> None:
    """Makes the statements that are the gradient of ``region`` that of the tensors of its outputs.

    Raises:
        DefinitionError: the region is part of a loop whose order no clock of one axis describes.
    """

    def placed(number: int) -> _Place:
        equation = flow.equation(flow.program.statements[number])
        if equation in definitions:
            return _Place(equation, *definitions[equation])
        tensor = made[equation].tensor
        if isinstance(tensor, Recurrent):
            raise region.span.fault(
                "the gradient of a region in a loop that keeps all that it computed, because no clock describes its order; loop over one axis around the region"
            )
        return _Place(equation, tensor, None)

    outputs, inputs = ([placed(n) for n in numbers] for numbers in (region.outputs, region.inputs))
    adjoints = [made[flow.equation(flow.program.statements[n])].tensor for n in region.adjoints]
    for source in inputs:
        within = [t.group for t in topological_order([source.tensor]) if isinstance(t, Recurrent)]
        if any(
            o.timed is not None and o.equation in definitions and _is_of(o, within, made) for o in outputs
        ):
            raise region.span.fault(
                f"the outputs of a region in a loop do not depend on {source.equation.name}, an input that the loop changes; leave it out"
            )

    def rule(heads: Sequence[Tensor]) -> list[Tensor]:
        own = [o.of_equation(h) for o, h in zip(outputs, heads, strict=True)]
        table: dict[Tensor, Tensor] = dict(zip(region.heads, own, strict=True))
        found = Rebuilt(table).parts(adjoints)
        return [i.of_tensor(t) for i, t in zip(inputs, found, strict=True)]

    give([o.tensor for o in outputs], [i.tensor for i in inputs], rule)


def _is_of(output: _Place, groups: Sequence[object], made: Mapping[Equation, Made]) -> bool:
    tensor = made[output.equation].tensor
    return isinstance(tensor, Recurrent) and any(g is tensor.group for g in groups)


def _axes_like(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    return tuple(Axis(a.name, 0, a.extent) for a in axes)
