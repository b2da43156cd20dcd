"""In which order pieces are written, and that they are put together before a loop over all elements reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.lowered import program_of
from tests.xla_counts import Fused

X, C = te.placeholder((512, 384), name="X"), te.placeholder((), name="C")
P = te.placeholder((3,), name="P")


def diffused(u: te.Tensor, c: Any = 0.1, name: str = "Y") -> te.Tensor:
    n, m = u.shape

    def element(i: Any, j: Any) -> Any:
        rows = te.select(i > 0, u[i - 1, j], 0.0) + te.select(i < n - 1, u[i + 1, j], 0.0)
        columns = te.select(j > 0, u[i, j - 1], 0.0) + te.select(j < m - 1, u[i, j + 1], 0.0)
        return u[i, j] + c * (rows + columns - 4 * u[i, j])

    return te.compute((n, m), element, name)


def of_signs() -> te.Tensor:
    """What flows back through absolute differences times a number that is not known."""
    D = te.compute((511, 384), lambda i, j: X[i + 1, j] - X[i, j], "D")
    S = te.compute((511, 384), lambda i, j: te.select(D[i, j] >= 0, C[()], -C[()]), "S")
    return te.compute(
        (512, 384), lambda i, j: te.select(i > 0, S[i - 1, j], 0.0) - te.select(i < 511, S[i, j], 0.0), "Y"
    )


def of_tanh() -> te.Tensor:
    return diffused(te.compute(X.shape, lambda i, j: te.tanh(X[i, j]) * X[i, j], "T"))


ORDERS: dict[str, tuple[Callable[[], te.Tensor], bool]] = {
    "numbers that are known": (lambda: diffused(X), False),
    "a number that is not": (lambda: diffused(X, C[()]), True),
    "one of several that are not": (lambda: diffused(X, P[1] + P[2]), True),
    "an element of what is read": (lambda: diffused(X, X[0, 0]), True),
    "in what is read": (of_signs, True),
    "a function that branches": (of_tanh, True),
}


@pytest.mark.parametrize(("n", "is_last"), [(2**14, True), (2**16 - 1, True), (2**16, False)])
@pytest.mark.parametrize("wraps", [True, False])
def test_the_interior_of_a_short_line_is_written_last(n: int, is_last: bool, wraps: bool) -> None:
    L = te.placeholder((n,), name="L")

    def element(i: Any) -> Any:
        if wraps:
            return L[(i + 1) % n] - 2 * L[i] + L[(i - 1) % n]
        return te.select(i > 0, L[te.maximum(i - 1, 0)], 0.0) - L[i]

    Y = te.compute((n,), element, "Y")
    assert _written(Y, L)[-1 if is_last else 0] == "Y_interior"


def test_steps_on_a_short_line_are_loops_of_one_core() -> None:
    """XLA divides no loop into which pieces are written, and finds the values and gradients of ``jnp.roll``."""

    def loss(u: Any) -> Any:
        for _ in range(3):
            u = u - 0.1 * (u * (jnp.roll(u, -1) - jnp.roll(u, 1)) + jnp.roll(u, 2) - 2 * u + jnp.roll(u, -2))
        return jnp.sum(u**2)

    u = jnp.asarray(np.random.default_rng(0).normal(size=2**14) * 0.1, "float32")
    code = Fused(jax.jit(te.value_and_grad(loss)).lower(u))
    assert (
        '"outer_dimension_partitions":["' not in code.as_text()
    )  # of which there are three otherwise, on two cores
    for found, expected in zip(code(u), jax.value_and_grad(loss)(u), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ORDERS)
def test_an_interior_that_is_not_computed_for_its_pads_is_written_last(name: str) -> None:
    made, is_last = ORDERS[name]
    assert _written(made())[-1 if is_last else 0] == "Y_interior"


def _written(tensor: te.Tensor, *given: te.Tensor) -> list[str]:
    text = te.source(te.function([t for t in given or (X, C, P) if t in _inputs(tensor)], tensor))
    lines = [
        line for line in text.partition("def backward")[0].splitlines() if "dynamic_update_slice(Y, " in line
    ]
    return [line.split("(Y, ")[1].split(",")[0] for line in lines]


def _inputs(tensor: te.Tensor) -> set[te.Tensor]:
    stack, found = [tensor], set[te.Tensor]()
    while stack:
        own = stack.pop()
        found.add(own)
        stack += own.inputs
    return found


def test_the_adjoint_of_a_loss_knows_what_flows_back() -> None:
    u = jnp.ones((512, 384))

    @te.function
    def loss(x: Any) -> Any:
        y = diffused(x)
        i, j = te.reduce_axis((0, 512)), te.reduce_axis((0, 384))
        return te.compute((), lambda: te.sum(y[i, j] ** 2, axis=[i, j]), "loss")

    text = te.source(loss, u).partition("def backward")[2]
    writes = [line for line in text.splitlines() if "dynamic_update_slice(dx, " in line]
    assert "dx_interior" in writes[0]


def test_pieces_are_put_together_before_a_loop_reads_them() -> None:
    """A sum over all elements; a function of each is computed in the pieces."""
    Y, j = diffused(X), te.reduce_axis((0, 384), "j")
    read = te.compute((512,), lambda i: te.sum(te.exp(Y[i, j]), axis=j), "Z")
    statements = [s for s in program_of(read).statements if s.target == "Y"]
    assert type(statements[-1].source).__name__ == "Kept"
    shifted = te.compute((511, 384), lambda i, j: te.exp(Y[i, j]) - Y[i + 1, j], "Z")
    statements = [s for s in program_of(shifted).statements if s.target == "Y"]
    assert type(statements[-1].source).__name__ == "Updated"


def test_parts_of_a_stack_stay_in_pieces() -> None:
    """The loop of the stack asks each element which part it is in anyway; a row that is read for all others is no part."""
    A, B = (diffused(X, c, name) for c, name in ((0.1, "A"), (0.2, "B")))
    stacked = te.compute((2, 512, 384), lambda n, i, j: 0.5 * te.select(n < 1, A[i, j], B[i, j]), "Z")
    assert _sources(stacked, "A", "B") == ["Updated", "Updated"]
    repeated = te.compute((8, 512, 384), lambda n, i, j: te.select(n < 4, A[i, j], B[i, j]), "Z")
    assert _sources(repeated, "A", "B") == ["Kept", "Kept"]


def _sources(tensor: te.Tensor, *names: str) -> list[str]:
    last = {s.target: s for s in program_of(tensor).statements}
    return [type(last[name].source).__name__ for name in names]


def test_they_hold_the_same_values(rng: np.random.Generator) -> None:
    x, c = rng.normal(size=X.shape).astype("float32"), np.float32(0.3)
    p = np.pad(x, 1)
    expected = x + c * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * x)
    found = jax.jit(te.function([X, C], diffused(X, C[()])))(x, c)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
