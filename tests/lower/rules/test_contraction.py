"""Reductions: einsum, masks, unrolled windows, jnp's own reductions and custom combiners."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import TRUE, Reduce, call
from jaxte.lang.operators import SELECT
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.tensor import Compute
from tests.lowered import arrays_for, check, check_view, one, program_of, run, text_of

A = te.placeholder((4, 6), name="A")
W = te.placeholder((5, 6), name="W")
S = te.placeholder((6, 6), name="S")
b = te.placeholder((6,), name="b")
c = te.placeholder((4,), name="c")
V = te.placeholder((12,), name="V")


def k(extent: int = 6, name: str = "k", start: int = 0) -> te.Axis:
    return te.reduce_axis((start, start + extent), name)


K, L, Z = k(), k(4, "l"), k(3, "z")
FORMS = [
    (one((4, 5), lambda i, j: te.sum(A[i, K] * W[j, K], axis=K)), 'jnp.einsum("ik,jk->ij", A, W)'),
    (one((5, 4), lambda j, i: te.sum(A[i, K] * W[j, K], axis=K)), 'jnp.einsum("ik,jk->ji", A, W)'),
    (one((4,), lambda i: te.sum(A[i, K] * b[K], axis=K)), 'jnp.einsum("ik,k->i", A, b)'),
    (one((4,), lambda i: te.sum(A[i, K], axis=K)), "jnp.sum(A, axis=1)"),
    (one((), lambda: te.sum(A[L, K], axis=[L, K])), "jnp.sum(A)"),
    (one((), lambda: te.sum(S[K, K], axis=K)), "jnp.sum(S.reshape(36)[::7])"),
    (one((4,), lambda i: te.sum(te.exp(A[i, K]) * b[K], axis=K)), 'jnp.einsum("ik,k->i", jnp.exp(A), b)'),
    (one((4, 5), lambda i, j: te.sum(0.5 * A[i, K] * W[j, K], axis=K)), '0.5 * jnp.einsum("ik,jk->ij", A, W)'),
    (
        one((4, 5), lambda i, j: te.sum(c[i] * A[i, K] * W[j, K], axis=K)),
        'c[:, None] * jnp.einsum("ik,jk->ij", A, W)',
    ),
    (
        one((4, 5), lambda i, j: te.sum(A[i, K] * W[j, K] / c[i], axis=K)),
        'jnp.einsum("ik,jk->ij", A, W) / c[:, None]',
    ),
    (
        one((4, 5), lambda i, j: te.sum(A[i, K] * W[j, K] + A[i, K] * b[K], axis=K)),
        'jnp.einsum("ik,jk->ij", A, W) + jnp.einsum("ik,k->i", A, b)[:, None]',
    ),
    (one((4, 5), lambda i, j: te.sum(A[i, Z] * W[j, Z + 2], axis=Z)), 'jnp.einsum("iz,jz->ij", A[:, :3], W[:, 2:5])'),
    (one((4,), lambda i: te.sum(A[i, K], axis=K, where=K < 3)), "jnp.sum(A[:, :3], axis=1)"),
    (one((4,), lambda i: te.sum(A[i, K], axis=K, where=te.mod(K, 2) == 1)), "jnp.sum(A[:, 1::2], axis=1)"),
    (one((4,), lambda i: te.max(A[i, K], axis=K)), "jnp.max(A, axis=1)"),
    (one((6,), lambda j: te.min(A[L, j], axis=L)), "jnp.min(A, axis=0)"),
    (one((4,), lambda i: te.any(A[i, K] > 0, axis=K)), "jnp.any(A > 0, axis=1)"),
    (one((4,), lambda i: te.prod(A[i, K], axis=K)), "jnp.prod(A, axis=1)"),
    (one((4,), lambda i: te.argmax(A[i, K], axis=K)), "lax.argmax(A, axis=1, index_dtype=jnp.int32)"),
    (one((), lambda: te.argmin(A[L, K], axis=[L, K])), "lax.argmin(A.reshape(-1), axis=0, index_dtype=jnp.int32)"),
    (one((4,), lambda i: te.sum(c[i], axis=K)), "c * 6"),
    (one((4,), lambda i: te.max(c[i], axis=K) * 1.0), None),
    (one((10,), lambda i: te.max(V[i + Z], axis=Z)), None),
    (
        one((4, 9), lambda i, y: te.sum(A[i, K] * te.select(y < 9, W[y // 3, K], 0.0), axis=K)),
        None,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("tensor", "source"), FORMS)
def test_form(tensor: te.Tensor, source: str | None) -> None:
    found = check_view(tensor)
    assert source is None or found[-1] == source


def test_letters_are_the_axes_own_where_they_can_be() -> None:
    long, also = te.reduce_axis((0, 6), "channel"), te.reduce_axis((0, 6), "k")
    T = te.placeholder((6, 6, 3), name="T")
    Y = te.compute((3, 4), lambda batch, i: te.sum(A[i, long] * T[long, also, batch], axis=[long, also]), "Y")
    (source,) = check_view(Y)
    assert source == 'jnp.einsum("ic,ckb->bi", A, T)'


def test_letters_of_what_is_summed_stand_in_the_alphabet_as_in_memory() -> None:
    """jnp.einsum contracts dimensions in the order of the alphabet, and XLA transposes what lies otherwise."""
    x, y = (te.placeholder((6, n, 4), name=name) for n, name in ((5, "x"), (3, "y")))
    r, q = k(6, "r"), k(4, "q")
    tensor = one((5, 3), lambda i, j: te.sum(x[r, i, q] * y[r, j, q], axis=[r, q]))
    assert check_view(tensor)[-1] == 'jnp.einsum("ris,rjs->ij", x, y)'
    jaxpr = jax.make_jaxpr(lambda x, y: jnp.einsum("ris,rjs->ij", x, y))(
        np.ones((6, 5, 4)), np.ones((6, 3, 4))
    )
    assert {((0, 2), (0, 2))} == {
        e.params["dimension_numbers"][0] for e in jaxpr.eqns if "dimension_numbers" in e.params
    }


def test_triangular_sums_mask_one_operand() -> None:
    j = k()
    Y = te.compute((6, 4), lambda i, o: te.sum(S[i, j] * A[o, j], axis=j, where=j <= i), "Y")
    (source,) = check_view(Y)
    assert source.startswith("jnp.einsum(") and source.count("jnp.where") == 1


def test_overlapping_windows_are_slices() -> None:
    Y = te.compute(
        (12,), lambda i: te.sum(te.select((i + Z >= 1) & (i + Z < 13), V[i + Z - 1], 0.0) * b[Z], axis=Z), "Y"
    )
    text = "\n".join(check_view(Y))
    assert "jnp.tile" not in text and "V_padded[" in text


def test_strided_adjoint_is_an_einsum_over_the_digits() -> None:
    """The adjoint of a convolution whose stride is its kernel's size: one matrix product, reshaped."""
    H = te.placeholder((2, 3, 5), name="H")  # batch, position, feature
    F = te.placeholder((3, 4, 5), name="F")  # tap, channel, feature
    f = k(5, "f")
    dX = te.compute(
        (2, 10, 4),
        lambda n, a, o: te.select(a < 9, te.sum(H[n, a // 3, f] * F[a % 3, o, f], axis=f), 0.0),
        "dX",
    )
    text = "\n".join(check_view(dX))
    assert text.count("jnp.einsum") == 1 and "jnp.pad" in text and "jnp.repeat" not in text


def test_empty_reductions_give_the_identity() -> None:
    none = te.reduce_axis((0, 0), "k")
    total = te.compute((3,), lambda i: te.sum(A[i, none], axis=none), "Y")
    assert check(total) == ["jnp.zeros((3,), jnp.float32)"]
    check(te.compute((3,), lambda i: te.max(A[i, none], axis=none), "Y"))
    check(te.compute((3,), lambda i: te.sum(A[i, K], axis=K, where=K > 7), "Y"))
    empty = te.placeholder((0, 3), name="E")
    rows = te.reduce_axis((0, 0), "r")
    check(te.compute((3,), lambda j: te.sum(empty[rows, j], axis=rows), "Y"))
    check(te.compute((0, 3), lambda i, j: empty[i, j] * 2, "Y"))


def test_reductions_that_may_be_empty_have_an_initial_value() -> None:
    n = te.var("n")
    T = te.placeholder((n, 4), name="T")
    r = te.reduce_axis((0, n - 1), "r")
    Y = te.compute((4,), lambda j: te.max(T[r + 1, j], axis=r), "Y")
    assert "initial=-jnp.inf" in check(Y)[-1]
    (value,) = run(program_of(Y), [np.ones((1, 4), "float32")])
    assert (np.asarray(value) == -np.inf).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint8", "int32", "bool"])
@pytest.mark.parametrize("reduction", [te.sum, te.max, te.prod])
def test_dtypes(dtype: str, reduction) -> None:
    if dtype == "bool" and reduction is te.max:
        pytest.skip("a maximum of conditions is te.any")
    T = te.placeholder((3, 4), dtype, "T")
    axis = k(4)
    check(te.compute((3,), lambda i: reduction(T[i, axis], axis=axis), "Y"), tolerance=2e-2)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["int8", "int32", "float32", "float64"])
def test_dtypes_under_x64(dtype: str) -> None:
    T = te.placeholder((3, 4), dtype, "T")
    axis = k(4)
    check(te.compute((3,), lambda i: te.sum(T[i, axis], axis=axis), "Y"))
    check(te.compute((3,), lambda i: te.sum(T[i, axis] * T[i, axis] * axis, axis=axis), "Y"))
    check(te.compute((3,), lambda i: te.argmax(T[i, axis], axis=axis), "Y"))
    check(te.compute((3, 4), lambda i, j: te.select(i <= j, T[i, j], 1) / 2 + i * j, "Y"))
    check(te.compute((3,), lambda i: te.select(te.sum(T[i, axis], axis=axis) > 0, 1.0, 0.5), "Y"))


def test_custom_combiner_of_two_values() -> None:
    largest = te.comm_reducer(
        lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.maximum(x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.const(float("-inf"), t1)),
        name="largest",
    )
    at, value = te.compute((4,), lambda i: largest((K, A[i, K]), axis=K), "M")
    found = check(at, value)
    assert sum("lax.reduce(" in source for source in found) == 2  # that of the position has no tangents
    masked, _ = te.compute((4,), lambda i: largest((K, A[i, K]), axis=K, where=K > i), "M")
    check(masked)


def test_argmax_under_a_condition() -> None:
    check(te.compute((4,), lambda i: te.argmax(A[i, K], axis=K, where=K <= i), "Y"))
    check(te.compute((4,), lambda i: te.argmax(A[i, K], axis=K, where=K < i), "Y"))


def test_nan_is_kept_by_maxima() -> None:
    Y = te.compute((4,), lambda i: te.max(A[i, K], axis=K), "Y")
    (a,) = arrays_for(program_of(Y))
    a[1, 2] = np.nan
    (value,) = run(program_of(Y), [a])
    assert list(np.isnan(value)) == [False, True, False, False]


def test_what_a_guard_excludes_contributes_nothing() -> None:
    """An infinity next to the window does not turn into NaN."""
    Y = te.compute(
        (12,),
        lambda i: te.sum(te.select(i + Z < 12, V[i + Z], 0.0) * te.exp(b[Z]), axis=Z, where=i + Z < 12),
        "Y",
    )
    program = program_of(Y)
    arrays = {t.name: a for (_, t), a in zip(program.params, arrays_for(program), strict=True)}
    arrays["V"][0] = np.inf
    (value,) = run(program, [arrays[t.name] for _, t in program.params])
    assert np.isinf(value[0]) and np.isfinite(value[1:]).all()


def test_scatter_and_gather_are_reported() -> None:
    rows = te.placeholder((6,), "int32", "I")
    H = te.placeholder((6, 4), name="H")
    r = k(6, "r")
    dX = te.compute((5, 4), lambda a, j: te.sum(H[r, j], axis=r, where=rows[r] == a), "dX")
    (source,) = check(dX)
    assert source == 'jnp.zeros((5, 4), jnp.float32).at[I].add(H, mode="drop", wrap_negative_indices=False)'
    (choice,) = program_of(dX).choices
    assert choice.form == "scatter" and "I[r]" in choice.reason
    X = te.placeholder((5, 4), name="X")
    Y = te.compute((6, 4), lambda i, j: X[rows[i], j], "Y")
    (source,) = check(Y)
    assert source == 'X.at[I].get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)'
    assert program_of(Y).choices[0].form == "gather"
    J = te.placeholder((4,), "int32", "J")
    check(te.compute((4,), lambda i: X[J[i], i], "Y"))
    check(te.compute((6, 4), lambda i, j: X[rows[i], J[j]] * 2, "Y"))
    check(te.compute((4, 6), lambda j, i: X[rows[i], j] + X[rows[i], J[j]], "Y"))
    check(te.compute((6,), lambda i: te.sum(X[rows[i], Z] * b[Z], axis=Z), "Y"))
    check(te.compute((6,), lambda i: te.select(rows[i] > 2, X[rows[i] - 1, 0], 0.0), "Y"))
    N = te.placeholder((5,), "int32", "N")
    check(te.compute((6,), lambda i: N[rows[i]], "Y"))


def test_masks_on_data() -> None:
    M = te.placeholder((6,), "bool", "M")
    check_view(te.compute((4,), lambda i: te.sum(A[i, K], axis=K, where=M[K]), "Y"))
    check_view(te.compute((4, 5), lambda i, j: te.sum(A[i, K] * W[j, K], axis=K, where=M[K]), "Y"))
    check_view(te.compute((4,), lambda i: te.max(A[i, K], axis=K, where=M[K]), "Y"))


def test_nested_sums_in_one_body() -> None:
    """Adjoints hold sums anywhere in a body, behind guards and next to each other."""
    H = te.placeholder((4,), name="H")
    p, q = k(3, "p"), k(2, "q")
    axis = te.compute((6,), lambda a: 0.0, "Y").axes[0]
    inner = builtin_reducer("sum", "float32")
    guarded = call(SELECT, axis < 4, Reduce(inner, [A[axis, p] * b[p]], [p], TRUE), 0.0)
    check_view(Compute("Y", [axis], guarded + Reduce(inner, [S[axis, q]], [q], TRUE) * H[1]))


@pytest.mark.parametrize("start", [-1e30, lambda t: -1e30, lambda t: te.const(-1e30, t)])
def test_identities_that_are_plain_numbers(start, rng: np.random.Generator) -> None:
    log_sum_exp = te.comm_reducer(lambda a, b: te.log(te.exp(a) + te.exp(b)), start, name="lse")
    x, k = te.placeholder((4, 5), name="X"), te.reduce_axis((0, 5), "k")
    y = te.compute((4,), lambda i: log_sum_exp(x[i, k], axis=k), "Y")
    value = rng.standard_normal((4, 5)).astype("float32")
    expected = np.log(np.exp(value).sum(1))
    np.testing.assert_allclose(te.evaluate(y, {x: value}), expected, rtol=1e-5)
    np.testing.assert_allclose(te.interpret(y, {x: value}), expected, rtol=1e-5)


@pytest.mark.parametrize("summed", [3, 16])
def test_the_smaller_operand_comes_first_where_the_result_is_transposed(summed: int) -> None:
    """The copy that brings the product into order moves rows of the larger operand then. Short sums keep the order that they are written in."""
    D, B = te.placeholder((4, summed, 6), name="D"), te.placeholder((summed, 5), name="B")
    i = k(summed, "i")
    between = te.compute((4, 5, 6), lambda r, a, p: te.sum(D[r, i, p] * B[i, a], axis=i), "Y")
    behind = te.compute((4, 6, 5), lambda r, p, a: te.sum(D[r, i, p] * B[i, a], axis=i), "Y")
    assert (" B, D)" in text_of(between)) == (summed == 16)
    assert " D, B)" in text_of(behind)


def test_sums_of_differences_are_taken_for_one_coordinate_after_the_other() -> None:
    """What is computed over both sides and all coordinates would be written to memory for a product of matrices that it is not."""
    w, x, y = (te.placeholder(s, name=n) for s, n in (((6, 40), "w"), ((6, 3), "x"), ((40, 3), "y")))
    j = k(40, "j")
    differences = te.compute((6, 3), lambda i, c: te.sum(w[i, j] * (x[i, c] - y[j, c]), axis=j), "D")
    (line,) = check(differences)
    assert "einsum" not in line and "jnp.stack([jnp.sum(" in line and "for k in range(3)]" in line


def test_gates_of_one_matrix_are_one_product() -> None:
    """A short dimension beside another one that is reduced is part of the product: slices of the matrix would be copies of it."""
    g, w = te.placeholder((3, 64), name="g"), te.placeholder((3, 64, 32), name="w")
    a, i = te.reduce_axis((0, 3), "a"), te.reduce_axis((0, 64), "i")
    y = te.compute((32,), lambda k: te.sum(g[a, i] * w[a, i, k], axis=(a, i)), "y")
    assert 'y = jnp.einsum("ai,aik->k", g, w)' in te.source(y)
