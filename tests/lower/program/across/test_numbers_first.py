"""Functions of a number, as the sine of a time, are computed before loops that read them: LLVM leaves those that branch in the loop, once for each element."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te

U, T = te.placeholder((24, 16), name="U"), te.placeholder((), name="T")


def _fed(made: te.Tensor) -> te.Tensor:
    return te.compute(U.shape, lambda i, j: te.select(i < 1, U[i, j] + made[()], U[i, j]), "Y")


def source() -> te.Tensor:
    return _fed(te.compute((), lambda: te.sin(3.0 * T[()]), "S"))


def within() -> te.Tensor:
    return te.compute(U.shape, lambda i, j: U[i, j] * te.lgamma(te.exp(T[()])) + U[(i + 1) % 24, j], "Y")


def nested() -> te.Tensor:
    """Of functions of functions the outermost one is first."""
    return te.compute(U.shape, lambda i, j: U[i, j] * te.cos(te.sin(T[()])), "Y")


def smooth() -> te.Tensor:
    return _fed(te.compute((), lambda: te.exp(-T[()]), "S"))


def known() -> te.Tensor:
    return te.compute(U.shape, lambda i, j: U[i, j] * te.sin(te.cast(3.0, "float32")) + T[()], "Y")


def of_elements() -> te.Tensor:
    return te.compute(U.shape, lambda i, j: te.sin(U[i, j] * T[()]), "Y")


def number_alone() -> te.Tensor:
    return te.compute((), lambda: te.sin(T[()]) * 2 + U[0, 0], "Y")


CASES: dict[str, tuple[Callable[[], te.Tensor], int]] = {
    "a number of its own": (source, 1),
    "within a function of elements": (within, 1),
    "one within another": (nested, 1),
    "LLVM takes it out": (smooth, 0),
    "it is known": (known, 0),
    "a function of elements": (of_elements, 0),
    "no loop reads it": (number_alone, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_numbers_are_first(name: str, rng: np.random.Generator) -> None:
    build, first = CASES[name]
    Y = build()
    assert te.source(Y, platform="cpu").split("def ")[-1].count("_first(") == first
    on_gpu = te.function([U, T], Y, platform="gpu")
    assert "_first(" not in str(on_gpu.source())
    u, t = rng.normal(size=U.shape).astype("float32"), np.float32(0.7)
    found = jax.jit(te.function([U, T], Y))(u, t)
    np.testing.assert_allclose(found, te.interpret(Y, {U: u, T: t}), rtol=1e-5, atol=1e-6)
