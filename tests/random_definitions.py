"""Whole random definitions: random bodies, and the patterns that networks are made of, in chains."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.expr import Axis, Expr
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor
from tests.choices import Choices, Drawn, extents
from tests.random_expressions import MOST_POINTS, Writer
from tests.random_patterns import LINEAR, PATTERNS


@dataclass(frozen=True)
class Definition:
    """A drawn graph with the seed of its numbers; it prints itself as formulas."""

    output: Compute
    seed: int

    @property
    def inputs(self) -> list[Placeholder]:
        return [t for t in topological_order([self.output]) if isinstance(t, Placeholder)]

    @property
    def variables(self) -> list[Placeholder]:
        return [t for t in self.inputs if t.dtype not in ("int32", "bool")]

    def feeds(self) -> dict[Tensor, np.ndarray]:
        """Numbers in general position: no two are equal, so that only the definition itself makes ties."""
        rng = np.random.default_rng(self.seed)
        return {t: draw_numbers(rng, t) for t in self.inputs}

    def __repr__(self) -> str:
        lines = [f"{t!r}, axes {[str(e) for e in t.shape]}" for t in topological_order([self.output])]
        return "\n".join(["", *lines, f"seed {self.seed}"])


class AtZeros(Definition):
    """Of numbers among which many are zero or equal: heads of second derivatives vanish, extrema have ties, and factors of products are zero."""

    def feeds(self) -> dict[Tensor, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        return {
            t: draw_numbers(rng, t) if t.dtype == "int32" else rng.choice([-0.5, 0.0, 0.0, 0.75], t.shape)
            for t in self.inputs
        }


def draw_numbers(rng: np.random.Generator, tensor: Tensor) -> np.ndarray:
    if tensor.dtype == "int32":
        return rng.integers(-1, 6, tensor.shape).astype(np.int32)  # out of range at times
    values = rng.standard_normal(tensor.shape)
    if tensor.dtype.startswith("complex"):
        values = values + 1j * rng.standard_normal(tensor.shape)
    return np.asarray(values).astype(np.dtype(tensor.dtype))


def definition(
    choices: Choices,
    dtype: str = "float64",
    stages: tuple[int, int] = (1, 3),
    kinds: str = "any",
    writes: type[Writer] = Writer,
) -> Definition:
    """A chain of tensors over one to three inputs.

    Args:
        dtype: of the inputs; complex ones are read by linear patterns only.
        stages: least and greatest number of tensors in the chain.
        kinds: "bodies" for random bodies only, "any" for patterns too.
        writes: what writes the bodies.
    """
    size = {"least": 1, "longest": 6} if choices.number(0, 19) else {"least": 0, "longest": 2}
    sources: list[Tensor] = []
    for name in "XYZ"[: choices.number(1, 3)]:
        shape = extents(choices, 3 if sources else 4, 150, **size)
        sources.append(te.placeholder(shape, dtype, name))
    tables = [te.placeholder((choices.number(1, 5),), "int32", "I")] if choices.number(0, 3) == 3 else []
    inputs = tuple(sources)
    last: Compute | None = None
    for number in range(choices.number(*stages)):
        writer = writes(choices, sources, tables)
        label = f"T{number}"
        last = general(writer, label) if kinds == "bodies" else draw_stage(writer, label, last)
        # Later tensors read the last one mostly, an input at times.
        sources = [last, last, *inputs]
    assert last is not None
    return Definition(last, choices.number(0, 2**16))


@st.composite
def definitions(
    draw: st.DrawFn, dtype: str = "float64", stages: tuple[int, int] = (1, 3), kinds: str = "any"
) -> Definition:
    """:func:`definition`, drawn by hypothesis."""
    return definition(Drawn(draw), dtype, stages, kinds)


def draw_stage(w: Writer, name: str, last: Tensor | None) -> Compute:
    """A random body half of the time, else a pattern that fits the shape of its operand."""
    source = last if last is not None else w.choices.among(list(w.sources))
    fitting = [p for p in PATTERNS if p.fits(source)]
    if source.dtype.startswith("complex"):
        fitting = [p for p in fitting if p.make in LINEAR]
        if not fitting:
            return te.compute(source.shape, lambda *i: source[i] * 2j, name)
    if fitting and (w.often(2) or source.dtype.startswith("complex")):
        return w.choices.among(fitting).make(w, name, source)
    return general(w, name)


def general(w: Writer, name: str) -> Compute:
    """A random body over up to four axes."""
    shape = extents(w.choices, 4, MOST_POINTS // 4, longest=5)
    points = max(1, math.prod(shape))

    def body(*axes: Axis) -> Expr:
        if w.often(2):
            return w.reduction(axes, w.number(0, 2), points)
        return w.scalar(axes, w.among(1, 2, 2, 3, 0), points)  # type: ignore[arg-type]

    return te.compute(shape, body, name)
