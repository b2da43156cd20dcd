"""The interpreter on definitions small enough to be computed by hand, and the errors on feeds."""

import importlib
import math
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxte.lang import functions as te
from jaxte.lang.errors import FeedError
from jaxte.lang.expr import TRUE, Axis, Reduce
from jaxte.meaning.interpret import interpret
from jaxte.tensors import reducers, reductions
from jaxte.tensors.compute import compute
from jaxte.tensors.custom_reductions import comm_reducer
from jaxte.tensors.inputs import Placeholder, placeholder, var
from jaxte.tensors.reductions import argmax, argmin, reduce_axis
from jaxte.tensors.tensor import Compute, Extern, Tensor

total = reductions.sum
interpreter = importlib.import_module(
    "jaxte.meaning.interpret"
)  # the module: jaxte.interpret is the function
F = np.float32


def vector(n: Any = 4, dtype: str = "float32", name: str = "X") -> Placeholder:
    return placeholder((n,), dtype, name)


def check(tensor: Tensor, feeds: dict[Placeholder, Any], expected: Any, dtype: str = "float32") -> None:
    result = interpret(tensor, feeds)
    assert isinstance(result, np.ndarray) and result.dtype == dtype
    if dtype == "bfloat16":  # NumPy's comparison takes its NaNs for different
        result = result.astype("float32")
    np.testing.assert_array_equal(result, np.asarray(expected).astype(result.dtype))


# --- sums and reads


def test_matmul() -> None:
    A, B = placeholder((2, 3), name="A"), placeholder((3, 2), name="B")
    k = reduce_axis((0, 3), "k")
    C = compute((2, 2), lambda i, j: total(A[i, k] * B[k, j], axis=k))
    check(C, {A: F([[1, 2, 3], [4, 5, 6]]), B: F([[1, 0], [0, 1], [2, 2]])}, [[7, 8], [16, 17]])


def test_strided_convolution_with_padding() -> None:
    X, W = vector(5), vector(3, name="W")
    k = reduce_axis((0, 3), "k")
    inside = lambda p: te.logical_and(p >= 0, p < 5)  # noqa: E731
    Y = compute(
        (3,), lambda y: total(te.select(inside(2 * y + k - 1), X[2 * y + k - 1] * W[k], 0.0), axis=k), "Y"
    )
    check(Y, {X: F([1, 2, 3, 4, 5]), W: F([1, 10, 100])}, [210, 432, 54])


def test_reads_through_floor_division_and_remainder() -> None:
    X = placeholder((2, 3), name="X")
    Y = compute((6,), lambda i: X[i // 3, i % 3])
    check(Y, {X: F([[1, 2, 3], [4, 5, 6]])}, [1, 2, 3, 4, 5, 6])
    Z = compute((2, 2), lambda i, j: X[(i - j) % 2, 2 - j])
    check(Z, {X: F([[1, 2, 3], [4, 5, 6]])}, [[3, 5], [6, 2]])


def test_reductions_inside_expressions_and_inside_each_other() -> None:
    X = placeholder((2, 3), name="X")
    i, j, k = reduce_axis((0, 2), "i"), reduce_axis((0, 3), "j"), reduce_axis((0, 3), "k")
    x = F([[1, 2, 3], [4, 5, 6]])
    check(compute((2,), lambda r: X[r, 0] / total(X[r, k], axis=k)), {X: x}, F([1 / 6, 4 / 15]))
    largest = reductions.max(total(X[i, j], axis=j), axis=i)
    check(compute((), lambda: 2 * largest + total(X[i, j], axis=[i, j])), {X: x}, 51)
    # as a body before reductions are made tensors of their own; k is used by two sums beside each other
    r = Axis("r", 0, 2)
    body = total(X[r, k] * total(X[i, k], axis=i), axis=k) + total(X[r, k], axis=k)
    check(Compute("T", (r,), body), {X: x}, [5 + 14 + 27 + 6, 20 + 35 + 54 + 15])


def test_triangular_sum() -> None:
    X = vector()
    j = reduce_axis((0, 4), "j")
    x = F([1, 2, 3, 4])
    check(compute((4,), lambda i: total(X[j], axis=j, where=j <= i)), {X: x}, [1, 3, 6, 10])

    def suffix(i: Axis) -> Any:
        own = reduce_axis((i, 4), "own")
        return total(X[own], axis=own)

    check(compute((4,), suffix), {X: x}, [10, 9, 7, 4])


def test_axes_that_do_not_start_at_zero() -> None:
    X = vector()
    k = reduce_axis((-1, 3), "k")
    check(compute((), lambda: total(X[k + 1] * k, axis=k)), {X: F([1, 2, 3, 4])}, -1 + 0 + 3 + 8)


def test_a_reduction_over_an_axis_that_is_not_read() -> None:
    X, k = vector(), reduce_axis((0, 3), "k")
    check(compute((4,), lambda i: total(X[i], axis=k)), {X: F([1, 2, 3, 4])}, [3, 6, 9, 12])
    check(compute((), lambda: reductions.prod(te.const(2.0), axis=k)), {}, 8)


def test_scalars_and_whole_tensors() -> None:
    s, X = placeholder((), name="s"), vector()
    check(compute((), lambda: s[()] + 1), {s: F(2)}, 3)
    check(compute((2,), lambda i: s[()] * i), {s: F(2)}, [0, 2])
    check(X * 2 - s, {X: F([1, 2, 3, 4]), s: F(1)}, [1, 3, 5, 7])


def test_axes_as_values() -> None:
    check(compute((3,), lambda i: te.cast(i, "float32") / 2), {}, [0, 0.5, 1])
    check(compute((3,), lambda i: i * i * 1000), {}, [0, 1000, 4000], "int32")


# --- guards


def test_a_branch_that_is_not_taken_may_read_out_of_range() -> None:
    X, N = vector(), vector(4, "int32", "N")
    x, n = F([1, 2, 3, 4]), np.int32([1, 2, 3, 4])
    check(compute((6,), lambda i: te.select((i >= 1) & (i < 5), X[i - 1], 9.0)), {X: x}, [9, 1, 2, 3, 4, 9])
    check(compute((6,), lambda i: te.select(i < 4, N[i], -1)), {N: n}, [1, 2, 3, 4, -1, -1], "int32")
    k = reduce_axis((0, 9), "k")
    check(compute((4,), lambda i: total(X[k - i], axis=k, where=(k >= i) & (k < i + 2))), {X: x}, [3] * 4)
    largest = compute((), lambda: reductions.max(X[k], axis=k, where=k < 4))
    check(largest, {X: x}, 4)


def test_a_branch_that_is_not_taken_may_be_undefined() -> None:
    X, N = vector(), vector(4, "int32", "N")
    x, n = F([-1, 0, 1, 4]), np.int32([0, 1, 2, 4])
    check(compute((4,), lambda i: te.select(X[i] > 0, 1 / te.sqrt(X[i]), 0.0)), {X: x}, [0, 0, 1, 0.5])
    check(compute((4,), lambda i: te.select(N[i] > 0, 8 // N[i], -1)), {N: n}, [-1, 8, 4, 2], "int32")
    k = reduce_axis((0, 4), "k")
    check(compute((), lambda: total(te.log(X[k]), axis=k, where=X[k] == 1)), {X: x}, 0)


# --- indices that hold data


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "complex64", "bfloat16"])
def test_data_dependent_indices_out_of_range(dtype: str) -> None:
    X, I = vector(3, dtype), vector(5, "int32", "I")  # noqa: E741
    x, index = np.array([1, 1, 1], dtype), np.int32([2, 3, -1, 0, -4])
    expected = jnp.take(jnp.asarray(x), jnp.where(index < 0, 99, index), mode="fill", fill_value=None)
    if dtype in ("int32", "bool"):  # there jnp.take fills with the least integer, or True
        expected = jnp.asarray([1, 0, 0, 1, 0], dtype)
    check(compute((5,), lambda i: X[I[i]]), {X: x, I: index}, expected, dtype)


def test_gather_of_rows() -> None:
    X, I = placeholder((3, 2), name="X"), vector(4, "int32", "I")  # noqa: E741
    Y = compute((4, 2), lambda i, j: X[I[i], 1 - j])
    check(Y, {X: F([[1, 2], [3, 4], [5, 6]]), I: np.int32([2, 0, 0, 1])}, [[6, 5], [2, 1], [2, 1], [4, 3]])


# --- other reductions


def test_maxima() -> None:
    X, N, k = vector(), vector(4, "int8", "N"), reduce_axis((0, 4), "k")
    feeds = {X: F([1, 3, 3, -2])}
    check(compute((), lambda: reductions.max(X[k], axis=k)), feeds, 3)
    check(compute((), lambda: reductions.min(X[k], axis=k)), feeds, -2)
    check(compute((), lambda: argmax(X[k], axis=k)), feeds, 1, "int32")
    check(compute((), lambda: argmin(X[k], axis=k)), feeds, 3, "int32")
    check(compute((), lambda: reductions.max(X[k], axis=k)), {X: F([1, np.nan, 3, 2])}, np.nan)
    check(compute((), lambda: reductions.max(X[k], axis=k, where=k != 1)), {X: F([1, np.nan, 3, 2])}, 3)
    check(compute((), lambda: reductions.max(N[k], axis=k)), {N: np.int8([-7, -3, -9, -4])}, -3, "int8")


def test_reductions_of_nothing() -> None:
    X, N, k = vector(0), vector(0, "int8", "N"), reduce_axis((0, 0), "k")
    feeds, ints = {X: F([])}, {N: np.int8([])}
    check(compute((), lambda: total(X[k], axis=k)), feeds, 0)
    check(compute((2,), lambda i: total(X[k], axis=k) + i), feeds, [0, 1])
    check(compute((), lambda: reductions.prod(X[k], axis=k)), feeds, 1)
    check(compute((), lambda: reductions.max(X[k], axis=k)), feeds, -np.inf)
    check(compute((), lambda: reductions.min(X[k], axis=k)), feeds, np.inf)
    check(compute((), lambda: reductions.max(N[k], axis=k)), ints, -128, "int8")
    check(compute((), lambda: reductions.any(X[k] > 0, axis=k)), feeds, False, "bool")
    check(compute((), lambda: reductions.all(X[k] > 0, axis=k)), feeds, True, "bool")
    j = reduce_axis((0, 3), "j")
    check(compute((), lambda: reductions.max(te.const(5.0), axis=j, where=j > 3)), {}, -np.inf)


def test_any_and_all() -> None:
    X, k = placeholder((3, 2), "bool", "X"), reduce_axis((0, 2), "k")
    feeds = {X: np.array([[0, 0], [0, 1], [1, 1]], bool)}
    check(compute((3,), lambda i: reductions.any(X[i, k], axis=k)), feeds, [False, True, True], "bool")
    check(compute((3,), lambda i: reductions.all(X[i, k], axis=k)), feeds, [False, False, True], "bool")


def test_custom_reducers() -> None:
    X, k = placeholder((2, 3), name="X"), reduce_axis((0, 3), "k")
    x = F([[3, 7, 7], [5, 2, 1]])
    largest = comm_reducer(
        lambda a, b: (te.select(a[1] >= b[1], a[0], b[0]), te.maximum(a[1], b[1])),
        lambda t0, t1: (te.const(-1, t0), te.const(-math.inf, t1)),
        "largest",
    )
    at, value = compute((2,), lambda i: largest((k, X[i, k]), axis=k))
    check(at, {X: x}, [1, 0], "int32")
    check(value, {X: x}, [7, 5])
    hypot = comm_reducer(lambda a, b: te.sqrt(a * a + b * b), lambda t: te.const(0.0, t), "hypot")
    check(compute((), lambda: hypot(X[0, k], axis=k, where=k < 1)), {X: x}, 3)


def test_custom_reducers_take_the_points_in_order() -> None:
    X, a, b = placeholder((2, 3), name="X"), reduce_axis((0, 2), "a"), reduce_axis((0, 3), "b")
    digits = comm_reducer(lambda x, y: 10 * x + y, lambda t: te.const(0.0, t), "digits")
    x = F([[1, 2, 3], [4, 5, 6]])
    check(compute((), lambda: digits(X[a, b], axis=[a, b])), {X: x}, 123456)
    check(compute((), lambda: digits(X[a, b], axis=[b, a])), {X: x}, 142536)
    check(compute((2,), lambda i: digits(X[i, b], axis=b, where=b != 1)), {X: x}, [13, 46])


# --- dtypes


def test_sums_of_small_floats_accumulate_widely() -> None:
    k = reduce_axis((0, 4096), "k")
    for dtype in ("float16", "bfloat16"):
        X = vector(4096, dtype)
        x = np.ones(4096, dtype)  # added one after the other, float16 stops at 2048 and bfloat16 at 256
        check(compute((), lambda X=X: total(X[k], axis=k)), {X: x}, 4096, dtype)


def test_sums_of_small_integers_widen() -> None:
    X, B, k = vector(4, "int8"), vector(4, "bool", "B"), reduce_axis((0, 4), "k")
    check(compute((), lambda: total(X[k], axis=k)), {X: np.int8([100] * 4)}, 400, "int32")
    check(compute((), lambda: total(B[k], axis=k)), {B: np.array([1, 0, 1, 1], bool)}, 3, "int32")


def test_operations_round_to_the_dtype_of_their_node() -> None:
    X = vector(1, "float16")
    x = np.float16([2048])
    check(compute((1,), lambda i: (X[i] + 1) - X[i]), {X: x}, [0], "float16")
    check(compute((1,), lambda i: (te.cast(X[i], "float32") + 1) - X[i]), {X: x}, [1])
    Y = vector(1, name="Y")
    check(compute((1,), lambda i: te.cast(Y[i], "float16") - Y[i]), {Y: F([2049])}, [-1])
    N = vector(1, "int8", "N")
    check(compute((1,), lambda i: N[i] + 1), {N: np.int8([127])}, [-128], "int8")
    B = vector(1, "bfloat16", "B")
    check(
        compute((1,), lambda i: B[i] / 3),
        {B: np.ones(1, "bfloat16")},
        np.array([1 / 3], ml_dtypes.bfloat16),
        "bfloat16",
    )


def test_numbers_take_the_dtype_of_what_they_meet() -> None:
    X, Y = vector(1, "float64"), vector(1, "float32", "Y")
    check(compute((1,), lambda i: X[i] * 0.1), {X: np.float64([1])}, [0.1], "float64")
    check(compute((1,), lambda i: Y[i] == 0.1), {Y: F([0.1])}, [True], "bool")
    check(compute((1,), lambda i: X[i] == 0.1), {X: np.float64(F([0.1]))}, [False], "bool")
    check(compute((), lambda: te.const(2.5)), {}, 2.5)


def test_float64_and_complex() -> None:
    Z, k = vector(2, "complex128", "Z"), reduce_axis((0, 2), "k")
    z = np.array([1 + 2j, 3 - 1j])
    check(
        compute((), lambda: total(Z[k] * Z[k], axis=k)), {Z: z}, (1 + 2j) ** 2 + (3 - 1j) ** 2, "complex128"
    )
    check(compute((2,), lambda i: te.real(Z[i]) + abs(Z[i] * 0)), {Z: z}, [1, 3], "float64")
    check(compute((2,), lambda i: te.cast(Z[i], "float32")), {Z: z}, [1, 3])


# --- sizes


def test_symbolic_sizes() -> None:
    n, m = var("n"), var("m")
    X, Y = placeholder((n, 2 * m + 1), name="X"), placeholder((m,), name="Y")
    k = reduce_axis((0, 2 * m + 1), "k")
    mean = compute((n,), lambda i: total(X[i, k], axis=k) / (2 * m + 1))
    check(mean, {X: F([[1, 2, 3], [4, 5, 9]])}, [2, 6])
    stretched = compute((n, m), lambda i, j: X[i, 2 * j] + Y[j] + n)
    check(stretched, {X: F([[1, 2, 3], [4, 5, 9]]), Y: F([10])}, [[13], [16]])


def test_zero_sized_axes() -> None:
    X = placeholder((0, 3), name="X")
    check(compute((0, 3), lambda i, j: X[i, j] * 2), {X: np.zeros((0, 3), F)}, np.zeros((0, 3)))
    k = reduce_axis((0, 0), "k")
    check(compute((3,), lambda j: total(X[k, j], axis=k)), {X: np.zeros((0, 3), F)}, [0, 0, 0])


# --- graphs


def test_several_tensors_share_what_they_need() -> None:
    X = vector(2)
    Y = compute((2,), lambda i: X[i] + 1)
    Z = compute((2,), lambda i: Y[i] * Y[1 - i])
    results = interpret([Z, X, Y], {X: F([1, 2])})
    assert isinstance(results, list)
    np.testing.assert_array_equal(results, [[6, 6], [1, 2], [2, 3]])


def test_extern_nodes_are_called_once() -> None:
    X = vector(3)
    calls = []

    def fn(x: np.ndarray) -> tuple[Any, Any]:
        calls.append(x)
        return jnp.sort(x), jnp.argsort(x).astype("int32")

    group = object()
    values = Extern("sorted", (3,), "float32", fn, [X], 0, group)
    order = Extern("order", (3,), "int32", fn, [X], 1, group)
    Y = compute((3,), lambda i: values[i] - X[order[i]])
    check(Y, {X: F([3, 1, 2])}, [0, 0, 0])
    assert len(calls) == 1
    alone = Extern("negative", (3,), "float32", lambda x: -x, [X], 0, object())
    check(alone, {X: F([3, 1, 2])}, [-3, -1, -2])


def test_deep_graphs_and_deep_bodies() -> None:
    X = vector(2)
    tensor: Tensor = X
    for _ in range(2000):
        tensor = compute((2,), lambda i, t=tensor: t[i] + 1)
    check(tensor, {X: F([0, 1])}, [2000, 2001])

    def body(i: Axis) -> Any:
        value = X[i]
        for _ in range(2000):
            value = value + 1
        return value

    check(compute((2,), body), {X: F([0, 1])}, [2000, 2001])


@pytest.mark.parametrize("at_once", [1, 2, 5, 7, 24, 100])
def test_large_grids_are_cut_into_boxes(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, W = placeholder((3, 6), name="X"), placeholder((3, 4), name="W")
    k = reduce_axis((0, 3), "k")
    Y = compute((3, 4), lambda i, j: total(X[i, j + k] * W[k, j] + i * j, axis=k), "Y")
    x, w = np.arange(18, dtype=F).reshape(3, 6), np.arange(12, dtype=F).reshape(3, 4)
    expected = [[sum(x[i, j + k] * w[k, j] + i * j for k in range(3)) for j in range(4)] for i in range(3)]
    monkeypatch.setattr(interpreter, "TABLE", at_once)
    check(Y, {X: x, W: w}, expected)


def test_boxes_partition_the_points() -> None:
    for extents in ((), (0,), (5,), (3, 4), (2, 0, 3), (4, 3, 2)):
        for most in (1, 2, 3, 6, 50):
            boxes = list(interpreter._boxes(extents, most))
            points = [p for box in boxes for p in np.ndindex(*map(len, box))]
            assert len(points) == math.prod(extents)
            assert all(math.prod(map(len, box)) <= most for box in boxes)


def test_evaluated_arrays_are_not_kept() -> None:
    """A body of 300 operations on a grid of 8 MB: held all at once they would be 2.4 GB."""
    X = vector(1000)
    i, k = Axis("i", 0, 1000), reduce_axis((0, 1000), "k")
    value = X[i] * X[k]
    for _ in range(300):
        value = value * 1.0
    body = Reduce(reducers.builtin_reducer("sum", "float32"), [value], [k], TRUE)
    x = np.ones(1000, F)
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check(Compute("T", (i,), body), {X: x}, np.full(1000, 1000))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000


# --- feeds


def test_feeds_may_be_jax_arrays_lists_and_numbers() -> None:
    X, N, s = vector(2), vector(2, "int32", "N"), placeholder((), "float16", "s")
    Y = compute((2,), lambda i: X[i] * N[i] + s[()])
    check(Y, {X: jnp.ones(2), N: [3, 4], s: 0.5}, [3.5, 4.5])
    check(compute((2,), lambda i: X[i]), {X: [1, 2]}, [1, 2])


n = var("n")
X2 = placeholder((2, n), name="X")
Y1 = placeholder((n,), "int32", name="Y")
SUM = compute((2, n), lambda i, j: X2[i, j] + Y1[j], "S")
x, y = np.zeros((2, 3), F), np.zeros(3, np.int32)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({X2: x}, r"no array for Y: int32\(n,\); give feeds an array for each input \(inputs: X, Y\)"),
        ({}, r"no array for X: float32\(2, n\), Y: int32\(n,\)"),
        ({X2: x, Y1: y, vector(3, name="Z"): y}, r"Z: float32\(3,\), which is no input .*leave it out"),
        ({X2: x, Y1: y, SUM: x}, r"which is no input of these tensors \(inputs: X, Y\)"),
        ({X2: x, Y1: y, "Z": y}, r"the key 'Z' of feeds is a str; give \{placeholder: array\}"),
        (
            {X2: x, Y1: y.astype(F)},
            r"Y: int32\(n,\) is fed an array of dtype float32; convert it with \.astype",
        ),
        ({X2: np.zeros((2, 3)), Y1: y}, r"dtype float64; convert it with \.astype\('float32'\), or declare"),
        ({X2: x, Y1: np.zeros(3, "M8[s]")}, r"Y: int32\(n,\) is fed an array of dtype datetime64"),
        ({X2: x, Y1: [0.5, 1, 2]}, r"Y: int32\(n,\) is fed float64 values; convert them to int32"),
        ({X2: x, Y1: ["a"]}, r"Y: int32\(n,\) is fed \['a'\], which is no array of numbers"),
        ({X2: x, Y1: [[1], [2, 3]]}, "which is no array of numbers"),
        (
            {X2: x[0], Y1: y},
            r"X: float32\(2, n\) has 2 axes, but is fed an array of shape \(3,\) with 1; reshape",
        ),
        ({X2: x.T.copy(), Y1: y}, r"axis 0 of X\(2, n\) has 2 elements, but the array fed to it has 3"),
        (
            {X2: x, Y1: y[:2]},
            r"axis 0 of Y\(n,\) has 3 elements \(with n = 3 from the other arrays\), but .* has 2",
        ),
        (
            {X2: x[:, :0], Y1: y[:0]},
            "axis 1 of X.* is fed 0 elements, which makes n = 0; sizes are at least 1",
        ),
    ],
)
def test_feeds_that_do_not_fit(feeds: dict[Any, Any], message: str) -> None:
    with pytest.raises(FeedError, match=message):
        interpret(SUM, feeds)


def test_sizes_that_no_array_determines() -> None:
    m = var("m")
    with pytest.raises(FeedError, match="the size m is in the shape of no input"):
        interpret(compute((m,), lambda i: i * 1.0), {})
    A = placeholder((n + m,), name="A")
    with pytest.raises(FeedError, match=r"axis 0 of A: .*`.*` has several sizes .* add an input"):
        interpret(compute((n + m,), lambda i: A[i]), {A: np.zeros(3, F)})
    B = placeholder((2 * n,), name="B")
    with pytest.raises(FeedError, match=r"axis 0 of B\(.*\) has 2 elements \(with n = 1"):
        interpret(compute((2 * n,), lambda i: B[i]), {B: np.zeros(3, F)})


def test_many_reductions_side_by_side() -> None:
    """NumPy has no more than 64 dimensions; every axis below is one of its own."""
    X, i = placeholder((2, 3), name="X"), Axis("i", 0, 2)
    body = te.const(0.0, "float32")
    for n in range(70):
        k, m = reduce_axis((0, 3), f"k{n}"), reduce_axis((0, 2), f"m{n}")
        body = body + total(X[i, k] * reductions.max(X[m, k], m), k, where=k != n % 3)
    x = np.arange(6, dtype=F).reshape(2, 3)
    check(Compute("T", (i,), body), {X: x}, (x * x[1]) @ (70 - np.bincount(np.arange(70) % 3)))
