"""Reads become slices, pads, reshapes and transposes."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

import jaxte as te
from tests.lowered import arrays_for, check, check_view, one, program_of, run, text_of

X = te.placeholder((4, 6), name="X")
S = te.placeholder((6, 6), name="S")
V = te.placeholder((12,), name="V")
B = te.placeholder((2, 3, 4), name="B")


@pytest.mark.parametrize(
    ("tensor", "source"),
    [
        (one((4, 6), lambda i, j: X[i, j] * 2.0), "X * 2.0"),
        (one((6, 4), lambda i, j: X[j, i]), "X.T"),
        (one((4, 2, 3), lambda i, j, k: B[j, k, i]), "B.transpose(2, 0, 1)"),
        (one((2, 2), lambda i, j: X[i + 2, 3 * j]), "X[2:, ::3]"),
        (one((3, 2), lambda i, j: X[i + 1, 3 * j + 1]), "X[1:, 1::3]"),
        (one((2, 4), lambda i, j: X[i, j + 1]), "X[:2, 1:5]"),
        (one((12,), lambda i: V[11 - i]), "V[::-1]"),
        (one((5,), lambda i: V[10 - 2 * i]), "V[10:1:-2]"),
        (one((6,), lambda i: X[2, i]), "X[2]"),
        (one((4,), lambda i: X[i, 3]), "X[:, 3]"),
        (one((6,), lambda i: S[i, i]), "S.reshape(36)[::7]"),
        (one((4,), lambda i: S[i + 1, 4 - i]), "S[1:5, 4:0:-1].reshape(16)[::5]"),
        (one((24,), lambda i: X[i // 6, i % 6]), "X.reshape(24)"),
        (one((24,), lambda i: B[i // 12, i // 4 % 3, i % 4]), "B.reshape(24)"),
        (one((3, 8), lambda i, j: X[(8 * i + j) // 6, (8 * i + j) % 6]), "X.reshape(3, 8)"),
        (one((3, 4), lambda i, j: V[4 * i + j]), "V.reshape(3, 4)"),
        (one((2, 3, 2), lambda i, j, k: V[6 * i + 2 * j + k]), "V.reshape(2, 3, 2)"),
        (one((3, 2), lambda i, j: V[4 * i + 2 * j]), "V.reshape(3, 4)[:, ::2]"),
        (one((4, 3), lambda j, i: V[4 * i + j]), "V.reshape(3, 4).T"),
        (one((24,), lambda i: V[i // 2]), "jnp.repeat(V, 2, axis=0)"),
        (one((36,), lambda i: V[i % 12]), "jnp.tile(V, 3)"),
        (one((30,), lambda i: V[i % 12]), "jnp.tile(V, 3)[:30]"),
        (one((4, 12), lambda i, j: X[i, j % 6]), "jnp.tile(X, (1, 2))"),
        (one((16,), lambda i: te.select((i >= 2) & (i < 14), V[i - 2], 0.0)), "jnp.pad(V, (2, 2))"),
        (one((14,), lambda i: te.select(i < 12, V[i], 0.0)), "jnp.pad(V, (0, 2))"),
        (
            one((6, 8), lambda i, j: te.select((i >= 1) & (i < 5) & (j < 6), X[i - 1, j], 0.0)),
            "jnp.pad(X, ((1, 1), (0, 2)))",
        ),
        (
            one((36,), lambda i: te.select(te.mod(i, 3) == 0, V[i // 3], 0.0)),
            "lax.pad(V, jnp.float32(0.0), ((0, 2, 2),))",
        ),
        (one((18,), lambda i: te.minimum(V[te.minimum(i, 11)], 9.0)), 'jnp.minimum(jnp.pad(V, (0, 6), mode="edge"), 9.0)'),
        (
            one((16,), lambda i: te.select(i < 12, V[i], X[i - 12, 0])),
            "jnp.concatenate([V, X[:, 0]])",
        ),
        (one((2, 6), lambda i, j: te.select(i == 0, X[0, j], X[3, j])), "jnp.stack([X[0], X[3]], axis=0)"),
        (one((10, 3), lambda i, j: V[i + j]), "jnp.stack([V[:10], V[1:11], V[2:]], axis=1)"),
        (one((4,), lambda i: te.cast(i, "float32") * 2.0), "jnp.arange(4, dtype=jnp.float32) * 2.0"),
        (one((4, 6), lambda i, j: 0.0), "jnp.zeros((4, 6), jnp.float32)"),
        (one((3, 12), lambda i, j: V[j]), "jnp.broadcast_to(V[None, :], (3, 12))"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_form(tensor: te.Tensor, source: str) -> None:
    assert check_view(tensor)[-1] == source


INDICES = {
    "affine": [lambda i, j, a=a, b=b, c=c: a * i + b * j + c for a, b, c in itertools.product((1, 2, 3, -1), (0, 1, 2, 5, -2), (0, 2))],
    "quasi": [
        lambda i, j: (i + 1) // 2,
        lambda i, j: (i + 1) // 2 + (i + 1) % 2,
        lambda i, j: i // 2 + j,
        lambda i, j: (i + j) // 2,
        lambda i, j: (i + j) % 3,
        lambda i, j: (3 * i + j) // 2,
        lambda i, j: 2 * (i // 3) + i % 3,
        lambda i, j: i // 2 // 2 + i % 2,
        lambda i, j: te.minimum(i + j, 4),
        lambda i, j: te.maximum(i, 2) + j,
        lambda i, j: (i + 3) // 2 + i // 2,
    ],
}  # fmt: skip


@pytest.mark.parametrize("index", [*INDICES["affine"], *INDICES["quasi"]])
def test_one_index(index) -> None:
    """Every index is compared with NumPy; the tensor is as large as the index needs, or one smaller under a guard."""
    values = np.array([[int(index(i, j)) for j in range(3)] for i in range(6)])
    low = int(values.min())
    extent = int(values.max()) - low + 1
    T = te.placeholder((extent,), name="T")
    Y = te.compute((6, 3), lambda i, j: T[index(i, j) - low], "Y")
    check_view(Y)
    program = program_of(Y)
    (array,) = arrays_for(program)
    np.testing.assert_array_equal(run(program, [array])[0], array[values - low])
    if extent > 2:
        U = te.placeholder((extent - 2,), name="U")
        inside = te.compute(
            (6, 3),
            lambda i, j: te.select(
                (index(i, j) - low >= 1) & (index(i, j) - low < extent - 1), U[index(i, j) - low - 1], 0.0
            ),
            "Y",
        )
        check(inside)


def test_reads_of_the_same_dimension_twice_with_others_between() -> None:
    T = te.placeholder((5, 3, 5), name="T")
    check_view(te.compute((3, 5), lambda j, i: T[i, j, i], "Y"))
    C = te.placeholder((4, 4, 4), name="C")
    check_view(te.compute((4,), lambda i: C[i, i, 3 - i], "Y"))


@pytest.mark.parametrize("shape", [(4, 1), (2, 3), (1, 4), (1, 1)])
def test_indices_that_divide_and_are_the_same_everywhere(shape: tuple[int, int]) -> None:
    check(one(shape, lambda i, j: V[((i + j) % 2 + 1) // 2 - (i + j) % 2 + 5]))
    check(one(shape, lambda i, j: X[2 - ((i + j) % 2), ((i + j) % 2 + 1) // 2 - (i + j) % 2 + 5]))


def test_untaken_branches_are_not_evaluated() -> None:
    """Zeros that stand for elements out of range never meet a function that is infinite there."""
    Y = te.compute((8,), lambda i: te.select((i >= 2) & (i < 6), te.log(X[i - 2, 0] ** 2 + 1.0), 0.0), "Y")
    assert check_view(Y)[-1] == "jnp.pad(jnp.log(X[:, 0] ** 2 + 1.0), (2, 2))"
    W = te.placeholder((12,), name="W")
    inverse = te.compute((14,), lambda i: te.select(i < 12, 1.0 / W[i], 0.0), "Y")
    assert np.isfinite(np.asarray(run(program_of(inverse), [np.ones(12, "float32")])[0])).all()


def test_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    A, C = te.placeholder((n, 3), name="A"), te.placeholder((m, 3), name="C")
    forms = {
        "A[::-1]": te.compute((n, 3), lambda i, j: A[n - 1 - i, j], "Y"),
        "jnp.pad(A, ((1, 1), (0, 0)))": te.compute(
            (n + 2, 3), lambda i, j: te.select((i >= 1) & (i < n + 1), A[i - 1, j], 0.0), "Y"
        ),
        "jnp.concatenate([A, C])": te.compute(
            (n + m, 3), lambda i, j: te.select(i < n, A[i, j], C[i - n, j]), "Y"
        ),
        "jnp.repeat(A, 2, axis=0)": te.compute((2 * n, 3), lambda i, j: A[i // 2, j], "Y"),
        "A.reshape(3 * n)": te.compute((3 * n,), lambda i: A[i // 3, i % 3], "Y"),
        "A[1:]": te.compute((n - 1, 3), lambda i, j: A[i + 1, j], "Y"),
    }
    for source, tensor in forms.items():
        assert check_view(tensor)[-1] == source
        assert program_of(tensor).sizes[0] == ("n", "A.shape[0]")


def test_a_size_that_no_input_has() -> None:
    n = te.var("n")
    with pytest.raises(te.LoweringError, match="the size n is the extent of no input"):
        program_of(te.compute((n,), lambda i: i, "Y"))


def test_sizes_read_from_extents_that_are_expressions() -> None:
    n = te.var("n")
    A = te.placeholder((2 * n + 1, 3), name="A")
    Y = te.compute((n, 3), lambda i, j: A[2 * i + 1, j] * te.cast(n, "float32"), "Y")
    program = program_of(Y)
    assert program.sizes == (("n", "(A.shape[0] - 1) // 2"),)
    a = np.arange(27, dtype="float32").reshape(9, 3)
    np.testing.assert_array_equal(run(program, [a])[0], 4 * a[1::2][:4])


def test_export_with_symbolic_dimensions() -> None:
    n = te.var("n")
    A, W = te.placeholder((n, 3), name="A"), te.placeholder((3, 4), name="W")
    k = te.reduce_axis((0, 3), "k")
    Y = te.compute((n, 4), lambda i, j: te.sum(A[i, k] * W[k, j], axis=k) / te.cast(n, "float32"), "Y")
    Z = te.compute((n + 1, 4), lambda i, j: te.select(i >= 1, Y[i - 1, j], 0.0) * te.cast(i, "float32"), "Z")
    namespace: dict = {}
    exec(text_of(Z), namespace)
    shapes = jax.export.symbolic_args_specs(
        [np.zeros((7, 3), "float32"), np.zeros((3, 4), "float32")], ["b, 3", "3, 4"]
    )
    exported = jax.export.export(jax.jit(namespace["forward"]))(*shapes)
    a, w = np.ones((7, 3), "float32"), np.arange(12, dtype="float32").reshape(3, 4)
    expected = np.vstack([np.zeros((1, 4)), a @ w / 7]) * np.arange(8)[:, None]
    np.testing.assert_allclose(exported.call(a, w), expected, rtol=1e-6)
