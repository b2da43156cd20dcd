"""Windows over positions of which the digits are read: the tensor is a flat one, forward and backward, and values stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.planning.indices.shaped import Flat
from jaxte.tensors.structure import topological_order
from tests.agreement import check_both_passes
from tests.lower.mechanism_plans import blocks_of_pixels, hours_of_days, tiled_image


def flat(*outputs: te.Tensor) -> list[te.Tensor]:
    return [t for t in topological_order(planned(outputs)) if isinstance(t, Flat)]


def padded(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Zeros before the first hour."""
    k = te.reduce_axis((0, 5), "k")
    n, h = x.shape
    inside = lambda t: (t + k - 2 >= 0) & (t + k - 2 < n * h)  # noqa: E731
    at = lambda t: x[(t + k - 2) // h, (t + k - 2) % h]  # noqa: E731
    return te.compute((n * h,), lambda t: te.sum(at(t) * w[k], axis=k, where=inside(t)), "y")


def digits_of_three(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 4), "k")
    at = lambda t: x[(t + k) // 6, (t + k) // 2 % 3, (t + k) % 2]  # noqa: E731
    return te.compute((27,), lambda t: te.sum(at(t) * w[k], axis=k), "y")


def placeholders(shapes: tuple[tuple[int, ...], ...]) -> list[te.Tensor]:
    return [te.placeholder(shape, "float32", f"x{n}") for n, shape in enumerate(shapes)]


@pytest.mark.parametrize(
    ("build", "shapes"),
    [
        (hours_of_days, ((4, 3, 6), (5, 3, 2))),
        (blocks_of_pixels, ((2, 3, 4, 8), (3, 3, 2, 3))),
        (tiled_image, ((2, 3, 4, 2),)),
        (padded, ((4, 5), (5,))),
        (digits_of_three, ((5, 3, 2), (4,))),
    ],
)
def test_the_tensor_is_flat_and_values_stay(
    build: Callable[..., te.Tensor], shapes: tuple[tuple[int, ...], ...]
) -> None:
    y = build(*placeholders(shapes))
    assert len(flat(y)) == 1
    check_both_passes(y, np.random.default_rng(0))


def test_both_passes_are_one_convolution() -> None:
    f = te.function(hours_of_days)
    source = te.source(f, np.zeros((20, 8, 24), "float32"), np.zeros((5, 8, 6), "float32"))
    assert source.count("conv_general_dilated") == 3
    assert "arange" not in source


def test_several_windows_read_one_flat_tensor() -> None:
    x, (k, m) = te.placeholder((6, 4), name="x"), [te.reduce_axis((0, n), "k") for n in (3, 7)]
    y = te.compute((22,), lambda t: te.sum(x[(t + k) // 4, (t + k) % 4], axis=k), "y")
    z = te.compute((18,), lambda t: te.sum(x[(t + m) // 4, (t + m) % 4] ** 2, axis=m), "z")
    assert len(flat(y, z)) == 1


@pytest.mark.parametrize(
    "element",
    [
        lambda x, t, k: (
            x[(t + k) // 4 % 6, (t + k) % 4] * t
        ),  # an axis also stands by itself, outside of what is read
        lambda x, t, k: x[(t + k) // 4, t % 4],  # another number
        lambda x, t, k: x[
            (t + k) // 6, (t + k) % 2
        ],  # positions of which some are read twice: more than there are elements
    ],
)
def test_where_it_is_no_layout_of_the_tensor_it_stays(element: Callable[..., te.Expr]) -> None:
    x, k = te.placeholder((6, 4), "float32", "x"), te.reduce_axis((0, 3), "k")
    y = te.compute((22,), lambda t: te.sum(element(x, t, k), axis=k), "y")
    check_both_passes(y, np.random.default_rng(0))
