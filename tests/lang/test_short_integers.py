"""Data of 8 and 16 bits that meet positions: exact in the interpreter, in emitted code and in adjoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor

ROWS = 300
VALUES = np.array([0, 44, 7, 200, 255])
SHORT = ("int8", "uint8", "int16", "uint16")
K = te.reduce_axis((0, 5), "k")
X = te.placeholder((5,), name="x")
T = te.placeholder((ROWS,), name="T")


def wide(values: np.ndarray) -> Any:
    return values.astype("int32")


def taken(positions: Any) -> Callable[[Any], Any]:
    """What NumPy's elements at ``positions`` are, 0 out of range."""
    at = wide(np.asarray(positions))
    inside = (at >= 0) & (at < ROWS)
    return lambda table: jnp.where(inside, table[np.where(inside, at, 0)], 0.0)


ROW = np.arange(ROWS)[:, None]
CONDITIONS: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], np.ndarray]]] = {
    "equal": (lambda i, s: i == s, lambda i: wide(i) == ROW),
    "not equal": (lambda i, s: i != s, lambda i: wide(i) != ROW),
    "less": (lambda i, s: i < s, lambda i: wide(i) < ROW),
    "sum, at least": (lambda i, s: i + 2 >= s, lambda i: wide(i + i.dtype.type(2)) >= ROW),
    "doubled": (lambda i, s: i == 2 * s, lambda i: wide(i) == 2 * ROW),
    "shifted": (lambda i, s: i == s + 100, lambda i: wide(i) == ROW + 100),
    "beyond": (lambda i, s: (i < 300) & (i >= -1) & (s > 3), lambda i: (wide(i) < 300) & (ROW > 3)),
}

GATHERS: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], Any]]] = {
    "as it is": (lambda i, n: i, lambda i: i),
    "with an axis": (lambda i, n: i + n, lambda i: wide(i) + np.arange(5)),
    "from an axis": (lambda i, n: n - i + 250, lambda i: np.arange(5) - wide(i) + 250),
    "times": (lambda i, n: 100 * i, lambda i: i.dtype.type(100) * i),
    "halved": (lambda i, n: (i + 100) // 2, lambda i: (i + i.dtype.type(100)) // 2),
    "clipped": (
        lambda i, n: te.clip(te.cast(i, "int32") + 100, 0, 299),
        lambda i: np.clip(wide(i) + 100, 0, 299),
    ),
}


def arrays_for(tensor: Tensor, feeds: dict[Tensor, Any]) -> dict[Tensor, Any]:
    return {t: feeds[t] for t in topological_order([tensor]) if t in feeds}


def placed(dtype: str) -> tuple[Tensor, np.ndarray]:
    """The index data as a placeholder, and as numbers."""
    return te.placeholder((5,), dtype, "I"), VALUES.astype(dtype)


def check(y: Tensor, variable: Tensor, feeds: dict[Tensor, Any], linear: Callable[[Any], Any]) -> None:
    """``y``, which is ``linear`` of ``variable``, and its adjoint: interpreted and emitted, beside plain JAX."""
    head = te.placeholder(y.shape, name="H")
    h = np.random.default_rng(1).integers(1, 9, y.shape).astype("float32")
    value, pullback = jax.vjp(linear, feeds[variable])
    expected = {y: value, te.differentiate(y, [variable], head=head)[0]: pullback(h)[0]}
    for tensor, wanted in expected.items():
        given = arrays_for(tensor, {**feeds, head: h})
        for found in (te.interpret(tensor, given), te.evaluate(tensor, given)):
            np.testing.assert_array_equal(np.nan_to_num(np.asarray(found)), np.asarray(wanted))


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_on_positions_beyond_the_dtype(name: str, dtype: str) -> None:
    condition, mask = CONDITIONS[name]
    data, values = placed(dtype)
    if name == "beyond":
        values = np.abs(values)
    y = te.compute((ROWS,), lambda s: te.sum(X[K], axis=K, where=condition(data[K], s)), "y")
    where = mask(values)
    feeds: dict[Tensor, Any] = {X: np.arange(1, 6, dtype="float32"), data: values}
    check(y, X, feeds, lambda x: jnp.where(where, x, 0.0).sum(1))


def check_read(dtype: str, body: Callable[..., Any], positions: Callable[[np.ndarray], Any]) -> None:
    """A body that reads ``T`` at ``positions`` of the data."""
    data, values = placed(dtype)
    y = te.compute((5,), lambda n: body(data[n], n), "y")
    feeds: dict[Tensor, Any] = {T: np.arange(1, ROWS + 1, dtype="float32"), data: values}
    check(y, T, feeds, taken(positions(values)))


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("name", GATHERS)
def test_positions_made_of_data(name: str, dtype: str) -> None:
    """Data and numbers meet as JAX's arrays do, data and axes in int32."""
    index, positions = GATHERS[name]
    check_read(dtype, lambda i, n: T[index(i, n)], positions)


@pytest.mark.parametrize("dtype", SHORT)
def test_guards_keep_their_bounds(dtype: str) -> None:
    check_read(dtype, lambda i, n: te.select((i >= 0) & (i < ROWS), T[i], 0.0), lambda values: values)


def test_dtypes_of_data_with_axes_and_numbers() -> None:
    data = te.placeholder((5,), "int8", "I")
    bodies: list[tuple[Callable[[Any], Any], str]] = [
        (lambda n: data[n] + 100, "int8"),
        (lambda n: data[n] + n, "int32"),
        (lambda n: te.maximum(data[n], 300), "int32"),
        (lambda n: data[n] * data[n], "int8"),
    ]
    for body, dtype in bodies:
        y = te.compute((5,), body, "y")
        values = VALUES.astype("int8")
        assert y.dtype == dtype
        found, expected = te.evaluate(y, {data: values}), te.interpret(y, {data: values})
        assert found.dtype == expected.dtype == dtype
        np.testing.assert_array_equal(found, expected)


def test_short_positions_are_compared_as_they_are() -> None:
    """No array of positions is converted where nothing is computed with it."""
    data = te.placeholder((5,), "int8", "I")
    y = te.compute((100,), lambda s: te.sum(X[K], axis=K, where=te.cast(data[K], "int32") < s), "y")
    assert "astype" not in te.source(y)
