"""Axes that are digits of one number are one axis, and an axis of which digits are read is two."""

from __future__ import annotations

import numpy as np

import jaxte as te
from jaxte.lang.expr import Reduce
from jaxte.planning.graph import planned
from jaxte.planning.indices.digits import with_whole_axes
from jaxte.sets.affine import linear, normal
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute

X = te.placeholder((200,), name="X")
W = te.placeholder((12,), name="W")
M = te.placeholder((3, 4), name="M")


def summed(element: object, *axes: te.Axis, where: te.Expr | None = None) -> Reduce:
    given = {} if where is None else {"where": where}
    body = te.compute((9,), lambda i: te.sum(element(i), axis=list(axes), **given), "y").body  # type: ignore[operator]
    assert isinstance(body, Reduce)
    return body


h, low = te.reduce_axis((0, 3), "h"), te.reduce_axis((0, 4), "low")
f = te.reduce_axis((0, 12), "f")


def test_digits_are_joined() -> None:
    node = summed(lambda i: X[5 * i + 4 * h + low + 2] * W[4 * h + low], h, low)
    found = with_whole_axes(node)
    assert [a.extent.value for a in found.axes] == [12]  # type: ignore[attr-defined]
    assert repr(found) == "sum(X[5 * i + low + 2] * W[low] for low in [0, 12))"


def test_conditions_go_along() -> None:
    node = summed(lambda i: X[4 * h + low] * W[4 * h + low], h, low, where=4 * h + low >= 3)
    assert repr(with_whole_axes(node)) == "sum(X[low] * W[low] for low in [0, 12) where low - 3 >= 0)"


def test_axes_that_something_else_depends_on_stay() -> None:
    for node in (
        summed(lambda i: X[4 * h + low] * M[h, low], h, low),
        summed(lambda i: X[5 * h + low], h, low),
        summed(lambda i: X[4 * h + low], h, low, where=low >= 2),
    ):
        assert with_whole_axes(node) is node


def test_digits_of_one_axis_are_two() -> None:
    node = summed(lambda i: M[f // 4, f % 4] * X[i + f], f)
    assert repr(with_whole_axes(node)) == (
        "sum(M[f_high, f_low] * X[4 * f_high + i + f_low] for f_high in [0, 3), f_low in [0, 4))"
    )


def test_digits_of_digits_are_joined_when_these_are_apart() -> None:
    """``2 * g + b`` in quotients and remainders by four: ``b`` is no part of the quotient."""
    g, b = te.reduce_axis((0, 6), "g"), te.reduce_axis((0, 2), "b")
    node = summed(lambda i: M[(2 * g + b) // 4, (2 * g + b) % 4] * X[i + (2 * g + b) % 4], g, b)
    assert [a.extent.value for a in with_whole_axes(node).axes] == [3, 4]  # type: ignore[attr-defined]


def test_digits_that_do_not_divide_the_axis_stay() -> None:
    g = te.reduce_axis((0, 11), "g")
    node = summed(lambda i: M[g // 4, g % 4] * X[i + g], g)
    assert with_whole_axes(node) is node


def test_what_a_choice_of_products_leaves_out_may_be_nan() -> None:
    """As the documentation promises of a te.select around a whole product, also where its axes are joined to one."""
    W, x = te.placeholder((12, 12), name="W"), te.placeholder((12,), name="x")
    k = 4 * h + low
    y = te.compute((12,), lambda i: te.sum(te.select(k <= i, W[i, k] * x[k], 0.0), axis=[h, low]), "y")
    values = np.ones(12, "float32")
    values[10:] = np.nan
    feeds = {W: np.ones((12, 12), "float32"), x: values}
    np.testing.assert_array_equal(te.evaluate(y, feeds), [*range(1, 11), np.nan, np.nan])


def test_a_sum_that_reads_at_a_distance_runs_over_the_position() -> None:
    x, k = te.placeholder((64,), name="x"), te.reduce_axis((0, 64), "k")
    backwards = te.compute((64,), lambda i: te.sum(x[i - k], axis=k, where=i - k >= 0), "y")
    node = backwards.body
    assert isinstance(node, Reduce)
    assert str(with_whole_axes(node)) == "sum(x[k] for k in [0, 64) where i - k >= 0)"
    window = te.compute((58,), lambda i: te.sum(x[i + k], axis=k, where=k < 7), "w").body
    assert isinstance(window, Reduce) and with_whole_axes(window) is window


def test_an_index_less_its_remainder_is_a_multiple_of_its_quotient() -> None:
    i = te.reduce_axis((0, 64), "i")
    for written, meant in (
        (i - i % 4, 4 * (i // 4)),
        (2 * (i + 1) - 2 * ((i + 1) % 4), 8 * ((i + 1) // 4)),
        ((i - i % 4) // 4, i // 4),
        (i // 2 * 2 - i, -(i % 2)),
    ):
        assert linear(written).terms == linear(meant).terms and normal(written) is normal(meant)


def test_a_planned_sum_inside_of_a_sum_is_read_through() -> None:
    a, x = te.placeholder((6, 8), name="a"), te.placeholder((4, 40), name="x")
    p, q = te.reduce_axis((0, 8), "p"), te.reduce_axis((0, 5), "q")
    b = te.placeholder((5, 5), name="b")
    y = te.compute(
        (4, 30),
        lambda r, i: te.sum(b[i % 5, q] * te.sum(x[r, 5 * p + q] * a[i // 5, p], axis=p), axis=q),
        "y",
    )
    (made,) = planned([y])
    computed = [t for t in topological_order([made]) if isinstance(t, Compute)]
    # the inner sum, with the axes of its factors one after the other as a product of matrices has them, and the outer one over digits
    assert [t.shape for t in computed if t is not made] == [(4, 5, 6), (4, 6, 5)]
    feeds = {t: np.random.default_rng(0).standard_normal(t.shape).astype("float32") for t in (a, b, x)}
    np.testing.assert_allclose(te.interpret(made, feeds), te.interpret(y, feeds), rtol=1e-5, atol=1e-5)
