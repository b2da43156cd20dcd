"""Reductions between bounds that move are windows, in steps of any size, and nothing is read along a diagonal for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from harness.counts import operations
from jaxte.lang.expr import Reduce
from jaxte.planning.conditions.moving_windows import with_windows
from jaxte.tensors.tensor import Compute
from tests.agreement import check_both_passes
from tests.spelled_counts import counts, lowered_tensor

FRAMES = te.placeholder((30, 8), name="F")
PATCHES = te.placeholder((12, 10, 3, 5), name="P")
SCORES = te.placeholder((64, 30), name="M")
W, X = te.placeholder((8,), name="W"), te.placeholder((30,), name="X")
t = te.reduce_axis((0, 30), "t")


def within(distance: te.Expr, width: int) -> te.Expr:
    return (distance >= 0) & (distance < width)


def steps(element: Callable[[te.Expr], te.Expr], step: int, width: int, shift: int = 0) -> Compute:
    """The sum over t of an element at the distance ``i + shift - step * t``, where that is within ``width``."""

    def body(i: te.Axis) -> te.Expr:
        distance = i + shift - step * t
        return te.sum(element(distance), axis=t, where=within(distance, width))

    found = te.compute((64,), body, "y")
    assert isinstance(found, Compute)
    return found


def patches_added() -> Compute:
    a, b = te.reduce_axis((0, 12), "a"), te.reduce_axis((0, 10), "b")
    found = te.compute(
        (14, 23),
        lambda i, j: te.sum(
            PATCHES[a, b, i - a, j - 2 * b], [a, b], where=within(i - a, 3) & within(j - 2 * b, 5)
        ),
        "y",
    )
    assert isinstance(found, Compute)
    return found


CASES: dict[str, tuple[Callable[[], Compute], str]] = {
    "frames added": (
        lambda: steps(lambda d: FRAMES[t, d], 4, 8),
        "sum(F[i // 4 - t, 4 * t + i % 4] for t in [0, 2) where i // 4 - t >= 0)",
    ),
    "frames that overlap in part": (
        lambda: steps(lambda d: te.sin(FRAMES[t, d]) * W[d], 3, 8, shift=5),
        "sum(sin(F[(i - 1) // 3 - t + 2, 3 * t + (i - 1) % 3]) * W[3 * t + (i - 1) % 3] for t in [0, 3) "
        "where 3 * t + (i - 1) % 3 - 8 < 0)",
    ),
    "taps between samples": (
        lambda: steps(lambda d: X[t] * W[d], 2, 8),
        "sum(X[i // 2 - t] * W[2 * t + i % 2] for t in [0, 4) where i // 2 - t >= 0 and i // 2 - t < 30)",
    ),
    "products at the same distances": (
        lambda: steps(lambda d: X[t] * X[d], 1, 6),
        "sum(X[i + t - 5] * X[5 - t] for t in [0, 6) where i + t - 5 >= 0 and i + t - 5 < 30)",
    ),
    "patches added": (
        patches_added,
        "sum(P[i + a - 2, j // 2 - b, 2 - a, 2 * b + j % 2] for a in [0, 3), b in [0, 3) "
        "where 2 * b + j % 2 - 5 < 0 and i + a - 2 >= 0 and i + a - 14 < 0 and j // 2 - b >= 0 and j // 2 - b < 10)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_windows(name: str) -> None:
    made, expected = CASES[name]
    body = made().body
    assert isinstance(body, Reduce)
    assert str(with_windows(body)) == expected


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, rng: np.random.Generator) -> None:
    check_both_passes(CASES[name][0](), rng)


@pytest.mark.parametrize(("step", "width"), [(1, 8), (4, 8)])
def test_scores_are_not_read_along_diagonals(step: int, width: int) -> None:
    def body(i: te.Axis) -> te.Expr:
        return te.sum(SCORES[i, t] * X[t], axis=t, where=within(i - step * t, width))

    found = te.compute((64,), body, "y").body  # type: ignore[attr-defined]
    assert with_windows(found) is found


def transposed(x: Any, w: Any) -> te.Tensor:
    s, c = te.reduce_axis((0, 40), "s"), te.reduce_axis((0, 6), "c")
    return te.compute(
        (3, 83, 5),
        lambda b, i, o: te.sum(x[b, s, c] * w[i - 2 * s, c, o], axis=[s, c], where=within(i - 2 * s, 5)),
        "y",
    )


def test_transposed_convolutions_by_their_conditions_are_convolutions() -> None:
    inputs = [te.placeholder((3, 40, 6), name="x"), te.placeholder((5, 6, 5), name="w")]
    found = operations(lowered_tensor(inputs, transposed(*inputs)).as_text())
    assert found["convolution"] == 3 and not {"gather", "scatter", "dot_general", "while"} & set(found)


def test_what_is_added_grows_with_what_overlaps_alone() -> None:
    """Twice the frames take twice the operations: none are spent on frames that are elsewhere."""

    def work(frames: int) -> float:
        f, r = te.placeholder((frames, 32), name="f"), te.reduce_axis((0, frames), "r")
        y = te.compute(
            (16 * (frames + 1),),
            lambda i: te.sum(f[r, i - 16 * r], axis=r, where=within(i - 16 * r, 32)),
            "y",
        )
        flops, *_ = counts(lowered_tensor([f], y).compile())
        return flops

    assert work(400) < 2.2 * work(200)
