"""The programs that a transformation of a program calls, each kept by the program that it comes from."""

from __future__ import annotations

from jaxte.bridge.primitive.linearized import Linearized, Transposed, heads_of
from jaxte.bridge.primitive.program import BACKWARD, Program, program
from jaxte.derivatives.forward import reached_from, transposed
from jaxte.derivatives.rebuilt import Rebuilt, stand_in
from jaxte.lower.program.kept.residuals import add_sizes
from jaxte.tensors.shapes import Extent
from jaxte.tensors.tensor import Tensor

Dims = tuple[int | None, ...]


def linearized(source: Program, perturbed: tuple[int, ...]) -> Linearized:
    """The derivative of ``source`` to its inputs at ``perturbed``."""
    return source.kept(("linearized", perturbed), lambda: Linearized(source.closed.renewed, perturbed))


def adjoint_program(source: Program, wanted: tuple[int, ...], heads: tuple[int, ...]) -> Transposed:
    """The transpose of ``source`` in its inputs at ``wanted``, for its results at ``heads``.

    Raises:
        DifferentiationError: ``source`` is not linear in them.
    """

    def make() -> Transposed:
        known = None if source.transpose is None else source.transpose(wanted, heads)
        return _transposed(source.closed, wanted, heads) if known is None else known

    return source.kept(("transposed", wanted, heads), make)


def _transposed(source: Program, wanted: tuple[int, ...], heads: tuple[int, ...]) -> Transposed:
    outputs = [source.outputs[n] for n in heads]
    linear = [source.inputs[n] for n in wanted]
    own = heads_of(outputs)
    why = f"; jax.linear_transpose takes linear functions, and jax.vjp the derivative of {source.label}"
    adjoints = transposed(outputs, linear, own, source.inputs, source.overrides_of(outputs), remedy=why)
    reached = reached_from(adjoints, (*source.inputs, *own))
    saved: dict[Tensor, None] = {t: None for t in source.inputs if t in reached}
    computed = [t for t in reached if t not in saved]
    others = [t for n, t in enumerate(source.inputs) if n not in wanted]
    add_sizes(saved, computed, others, own)
    operands = tuple(n for n, t in enumerate(source.inputs) if t in saved)
    inputs = (*(source.inputs[n] for n in operands), *own)
    made = program(BACKWARD, source.label, inputs, adjoints, source.policy, source.overrides, source.fdiff)
    return Transposed(made, operands)


def batched(source: Program, at: Dims, extent: Extent) -> tuple[Program, Dims]:
    """The program for each position of the axes ``at`` of the inputs, and where its results have that axis."""

    def make() -> tuple[Program, Dims]:
        closed = source.closed
        pairs = list(zip(closed.inputs, at, strict=True))
        table: dict[Tensor, Tensor] = {t: t if n is None else stand_in(t, n, extent) for t, n in pairs}
        where = {table[t]: n for t, n in pairs if n is not None}
        rebuilt = Rebuilt(table, where, extent, closed.every_override)
        made = closed.rebuilt(rebuilt)
        return made, tuple(rebuilt.at.get(t) for t in made.outputs)

    return source.kept(("batched", at, extent), make)
