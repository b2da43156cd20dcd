"""Three ways to one number for each case of the grid: differences, the derived tangents, the derived adjoints. And no scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte import ops
from jaxte.derivatives.reverse import vjp_graph
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import among
from jaxte.meaning.interpret import interpret
from jaxte.tensors.structure import topological_order
from tests.operators_table import SCATTERING
from tests.ops.test_ops import COMPILED
from tests.ops_registry import CASES, Case

# differences across a jump or a kink are no derivatives
KINKED = ("tied", "ties", "bounds")
FLOATS = {
    c.name: c
    for c in CASES.values()
    if any(is_inexact(a.dtype.name) for a in c.arrays(np.random.default_rng(0)))
}


def graph(case: Case, arrays: list[np.ndarray]) -> tuple[list[te.Placeholder], list[te.Tensor]]:
    """The inputs, and the results that have a gradient."""
    inputs = [te.placeholder(a.shape, a.dtype, f"X{n}") for n, a in enumerate(arrays)]
    made = case.run(*inputs)
    results = list(made) if isinstance(made, (tuple, list)) else [made]
    return inputs, [t for t in results if is_inexact(t.dtype)]


def evaluated(tensors: list[te.Tensor], feeds: dict[te.Tensor, np.ndarray]) -> list[np.ndarray]:
    needed = topological_order(tensors)
    return interpret(tensors, {x: a for x, a in feeds.items() if among(x, needed)})


def dot(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    return sum(float(np.sum(a * b)) for a, b in zip(first, second, strict=True))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("case", [c for c in COMPILED if c.name in FLOATS], ids=lambda case: case.name)
def test_differences_tangents_and_adjoints_agree(case: Case, rng: np.random.Generator) -> None:
    if case.name.endswith(KINKED) or case.name == "cast":
        pytest.skip("no derivative there, or numbers too short for differences")
    arrays = [a.astype("float64") if is_inexact(a.dtype.name) else a for a in case.arrays(rng)]
    inputs, outputs = graph(case, arrays)
    moved = [x for x in inputs if is_inexact(x.dtype)]
    if not outputs:
        pytest.skip("integers and booleans have no gradient")
    directions = [rng.normal(size=x.shape) for x in moved]
    heads = [rng.normal(size=t.shape) for t in outputs]
    feeds = dict(zip(inputs, arrays, strict=True))

    def at(step: float) -> list[np.ndarray]:
        own = {x: feeds[x] + step * d for x, d in zip(moved, directions, strict=True)}
        return evaluated(outputs, feeds | own)

    step = 1e-6
    difference = dot(heads, [(a - b) / (2 * step) for a, b in zip(at(step), at(-step), strict=True)])
    H = [te.placeholder(t.shape, t.dtype, f"H{n}") for n, t in enumerate(outputs)]
    adjoint = dot(
        evaluated(vjp_graph(outputs, H, moved), feeds | dict(zip(H, heads, strict=True))), directions
    )
    D = [te.placeholder(x.shape, x.dtype, f"D{n}") for n, x in enumerate(moved)]
    tangents = te.jvp(outputs, moved, D)
    tangent = dot(heads, evaluated(list(tangents), feeds | dict(zip(D, directions, strict=True))))
    scale = max(abs(difference), abs(adjoint), 1.0)
    assert abs(adjoint - tangent) <= 1e-9 * scale
    assert abs(difference - adjoint) <= 1e-5 * scale


@pytest.mark.parametrize("case", FLOATS.values(), ids=FLOATS)
def test_nothing_scatters(case: Case, rng: np.random.Generator) -> None:
    inputs, outputs = graph(case, case.arrays(rng))
    if not outputs:
        pytest.skip("integers and booleans have no gradient")
    heads = [te.placeholder(t.shape, t.dtype, f"H{n}") for n, t in enumerate(outputs)]
    adjoints = vjp_graph(outputs, heads, [x for x in inputs if is_inexact(x.dtype)])
    scatters = te.explain([*outputs, *adjoints]).scatters
    if case.name.partition(".")[0] in SCATTERING:
        assert all("are data" in choice.reason for choice in scatters)
    else:
        assert not scatters


INTEGERS: dict[str, Callable[[te.Tensor], Any]] = {
    "argmax": lambda x: ops.argmax(x, 1),
    "less": lambda x: ops.less(x, 0.0),
    "right_shift": lambda x: ops.right_shift(ops.cast(x, "int32"), 1),
    "isnan": ops.isnan,
    "any": ops.any,
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_within_a_differentiable_graph_have_the_gradient_zero(name: str) -> None:
    """Beside the part that has one, and by itself: a zero that the formula shows."""
    x = te.placeholder((3, 4), name="x")
    found = te.compute(
        (),
        lambda: te.sum(te.cast(ops.sum(INTEGERS[name](x))[()], "float32"), axis=te.reduce_axis((0, 1))),
        "found",
    )
    (alone,) = te.differentiate(found, [x], head=te.placeholder((), name="H"))
    assert te.formula(alone, ranges=False).endswith(("= 0", "= float32(0)", "= 0.0")), te.formula(alone)
    both = ops.multiply(ops.sum(x), found)
    a = np.float32([[1, -2, 3, 4], [0, 1, -5, 6], [7, 7, 7, 7]])
    value = te.evaluate(found, {x: a})
    (gradient,) = te.differentiate(both, [x], head=te.placeholder((), name="H"))
    h = next(t for t in topological_order([gradient]) if t.name == "H")
    np.testing.assert_array_equal(te.evaluate(gradient, {x: a, h: np.float32(1)}), np.full((3, 4), value))


@pytest.mark.parametrize("mode", ["fill", "clip", "wrap"])
def test_positions_out_of_range_in_each_mode_and_in_the_gradient(mode: str) -> None:
    """What is filled has no gradient; what is clipped or wrapped is added to the element that was read."""
    x, at = np.float32([1, 2, 4]), np.int32([-4, -1, 0, 2, 3, 7])
    read = {"fill": [None, 2, 0, 2, None, None], "clip": [0, 0, 0, 2, 2, 2], "wrap": [2, 2, 0, 2, 0, 1]}[mode]
    X, at_x, H = (
        te.placeholder((3,), name="X"),
        te.placeholder((6,), "int32", "I"),
        te.placeholder((6,), name="H"),
    )
    for Y, feed in (
        (ops.take(X, at_x, 0, mode), at),
        (ops.gather_nd(X, te.compute((1, 6), lambda _, i: at_x[i], "J"), mode), at),
    ):
        (dX,) = te.differentiate(Y, [X], head=H)
        value, gradient = te.evaluate([Y, dX], {X: x, at_x: feed, H: np.arange(1.0, 7.0, dtype="float32")})
        np.testing.assert_array_equal(value, [np.nan if k is None else x[k] for k in read])
        expected = [sum(h for h, k in zip(range(1, 7), read, strict=True) if k == n) for n in range(3)]
        np.testing.assert_array_equal(gradient, expected)
