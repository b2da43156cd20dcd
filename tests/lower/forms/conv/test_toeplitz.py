"""Convolutions of long sequences: Toeplitz matrices, sums along diagonals, blocks, Fourier transforms; which is taken when."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte.bridge import tuning
from jaxte.bridge.calls import options
from jaxte.lang.graphs import place_of
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from jaxte.meaning.interpret import interpret
from tests.agreement import inputs_of
from tests.lowered import arrays_for, run
from tests.xla_counts import Fused

MATRIX, DIAGONALS, FOURIER = "Toeplitz matrix", "sums along diagonals", "Fourier transform"
BLOCKS = "products of blocks"
SLICES = "slices of a line"
TWO_MATRICES = "two Toeplitz matrices"
FORMS = (MATRIX, DIAGONALS, FOURIER)


def conv1d(
    n=2, c=2, o=3, size=9, taps=4, stride=1, dilation=1, pad=0, mirrored="", last=False, dtype="float32"
):
    """A convolution whose output, kernel or both are read backwards, with channels last if so wanted."""
    x = te.placeholder((n, size, c) if last else (n, c, size), dtype, "x")
    w = te.placeholder((o, c, taps), dtype, "w")
    k, d = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, c), "d")
    out = (size + 2 * pad - dilation * (taps - 1) - 1) // stride + 1

    def body(b, f, i):
        at = stride * (out - 1 - i if "t" in mirrored else i) + dilation * k - pad
        tap = taps - 1 - k if "k" in mirrored else k
        value = x[b, at, d] if last else x[b, d, at]
        return te.sum(value * w[f, d, tap], axis=[d, k], where=(at >= 0) & (at < size))

    return x, w, te.compute((n, o, out), body, "y")


def adjoints(x, w, y) -> list[te.Tensor]:
    return [y, *te.differentiate(y, (x, w), head=te.placeholder(y.shape, y.dtype, "H"))]


def forced(tensors: list[te.Tensor], form: str) -> tuple[list[str], list[np.ndarray], list[np.ndarray]]:
    """The forms taken, what the emitted code gives, and what the interpreter does."""
    program = lower("forward", inputs_of(tensors), tensors, Policy(forms={"*": form}))
    arrays = arrays_for(program)
    expected = interpret(tensors, {t: a for (_, t), a in zip(program.params, arrays, strict=True)})
    return [c.form for c in program.choices], run(program, arrays), expected


CASES = [
    {},
    {"pad": 2, "c": 1},
    {"stride": 2, "pad": 1, "size": 10, "taps": 3},
    {"stride": 2, "dilation": 3, "pad": 2, "size": 11, "taps": 3, "mirrored": "t"},
    {"dilation": 3, "pad": 1, "size": 11, "taps": 3, "mirrored": "k"},
    {"pad": 4, "size": 5, "taps": 5, "mirrored": "tk", "o": 1},
    {"size": 70, "taps": 40, "n": 1, "c": 1, "o": 1},
    {"size": 41, "taps": 34, "pad": 5, "last": True, "mirrored": "k"},
    {"size": 60, "taps": 17, "stride": 3, "dilation": 2, "pad": 20, "c": 1},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", CASES, ids=str)
def test_every_form_is_what_the_interpreter_says(form: str, options) -> None:
    tensors = adjoints(*conv1d(**options))
    forms, found, expected = forced(tensors, form)
    if form != FOURIER or options.get("taps", 4) > 16:
        assert forms == [form] * 3
    for value, meaning in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, meaning, rtol=1e-3, atol=1e-3)


LONG = [
    {"n": 1, "c": 1, "o": 1, "size": 163, "taps": 4},
    {"n": 2, "size": 160, "taps": 5, "pad": 2, "mirrored": "k", "o": 2},
    {"n": 1, "c": 1, "size": 150, "taps": 3, "pad": -1, "mirrored": "t"},
    {"n": 1, "size": 140, "taps": 2, "last": True, "mirrored": "tk", "o": 1},
    {"n": 1, "c": 1, "o": 1, "size": 330, "taps": 40, "pad": 7},
]


@pytest.mark.parametrize("options", LONG, ids=str)
def test_the_gradient_of_a_short_kernel_is_products_of_blocks(options) -> None:
    x, w, y = conv1d(**options)
    dw = adjoints(x, w, y)[2]
    forms, found, expected = forced([dw], BLOCKS)
    assert forms == [BLOCKS]
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-4)


def test_the_gradient_of_a_kernel_along_one_line_takes_blocks_by_itself() -> None:
    """Neither products nor windows are laid out for each tap, and nothing is written for each of them."""
    fn = te.function(lambda x, w: conv1d_of(x, w))
    x, w = jax.ShapeDtypeStruct((16384,), "float32"), jax.ShapeDtypeStruct((31,), "float32")
    forms = {c.tensor: c.form for part in fn.explain(x, w).choices.values() for c in part}
    assert forms["dw"] == BLOCKS
    compiled = Fused(jax.jit(jax.grad(lambda w, x: jnp.sum(fn(x, w)))).lower(w, x))
    assert compiled.memory_analysis().temp_size_in_bytes < 5 * 4 * 16384


LONG_BOTH = [
    {"n": 1, "c": 1, "o": 1, "size": 143, "taps": 80},
    {"n": 2, "size": 140, "taps": 64, "pad": 5, "mirrored": "k"},
    {"n": 3, "c": 1, "size": 139, "taps": 68, "pad": -1, "mirrored": "t"},
    {"size": 90, "taps": 70, "pad": 69, "last": True, "mirrored": "tk", "o": 1},
]


@pytest.mark.parametrize("options", LONG_BOTH, ids=str)
def test_long_kernels_are_two_matrices(options) -> None:
    forms, found, expected = forced(adjoints(*conv1d(**options)), TWO_MATRICES)
    assert forms == [TWO_MATRICES] * 3
    for value, meaning in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, meaning, rtol=1e-3, atol=1e-3)


def long_filters(b: int, n: int, c: int, body):
    """A function of ``x`` and of a filter as long as it is, and how much XLA holds for its value with gradients, beside both."""
    s = te.reduce_axis((0, n), "s")
    fn = te.function(lambda x, h: te.compute((b, n, c), lambda b, t, c: body(x, h, b, t, c, s, n), "y"))
    rng = np.random.default_rng(0)
    x, h, H = (rng.normal(size=shape).astype("float32") for shape in ((b, n, c), (n, c), (b, n, c)))
    both = jax.jit(lambda x, h: jax.vjp(fn, x, h)[1](H))
    held = Fused(both.lower(x, h)).memory_analysis().temp_size_in_bytes
    return fn, both, (x, h, H), held / (x.nbytes + h.nbytes)


@pytest.mark.parametrize(
    ("names", "body", "matrix"),
    [
        (("y", "dx", "dh"), lambda x, h, b, t, c, s, n: te.sum(h[t - s, c] * x[b, s, c], axis=s, where=s <= t), lambda t, s, n: t - s),
        (("dx", "dh"), lambda x, h, b, t, c, s, n: te.sum(h[s, c] * x[b, t + s, c], axis=s, where=t + s < n), lambda t, s, n: s - t),
        (("y", "dx"), lambda x, h, b, t, c, s, n: te.sum(x[b, s, c] * h[te.abs(t - s), c], axis=s), lambda t, s, n: abs(t - s)),
        (("y", "dx", "dh"), lambda x, h, b, t, c, s, n: te.sum(x[b, (t - s) % n, c] * h[s, c], axis=s), lambda t, s, n: (t - s) % n),
    ],
    ids=["causal", "ahead", "symmetric", "around"],
)  # fmt: skip
def test_a_filter_for_each_channel_as_long_as_the_signal_is_two_matrices(names, body, matrix) -> None:
    """A convolution for each channel took 40 ms of 512 positions and 16 channels, and one matrix held sixteen megabytes."""
    b, n, c = 2, 256, 4
    fn, both, (x, h, H), held = long_filters(b, n, c, body)
    forms = {c.tensor: c.form for part in fn.explain(x, h).choices.values() for c in part}
    assert {forms[name] for name in names} == {TWO_MATRICES}
    assert held < 100

    def plain(x, h):
        at = matrix(np.arange(n)[:, None], np.arange(n)[None, :], n)
        return jnp.einsum("tsc,bsc->btc", jnp.where((at >= 0)[:, :, None], h[np.maximum(at, 0)], 0), x)

    y, back = jax.vjp(plain, x, h)
    for found, right in zip((fn(x, h), *both(x, h)), (y, *back(H)), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-3, atol=2e-4)


def correlated(shape_x, shape_w, body, out) -> list[te.Tensor]:
    """A product of each row with a kernel of its own, or one for all rows, and its adjoints."""
    x, w = te.placeholder(shape_x, name="x"), te.placeholder(shape_w, name="w")
    k = te.reduce_axis((0, 33), "k")
    y = te.compute(out, lambda *at: body(x, w, *at, k), "y")
    return adjoints(x, w, y)


@pytest.mark.parametrize(
    ("shape_x", "shape_w", "out", "body"),
    [
        ((2, 50), (2, 33), (2, 18), lambda x, w, b, t, k: te.sum(x[b, t + k] * w[b, k], axis=k)),
        ((2, 70), (33,), (2, 19), lambda x, w, b, t, k: te.sum(x[b, 2 * t + k] * w[32 - k], axis=k)),
        ((90, 3), (33, 3), (3, 20), lambda x, w, c, t, k: te.sum(x[t + 2 * k, c] * w[k, c], axis=k)),
        ((40,), (33, 2), (2, 40), lambda x, w, c, t, k: te.sum(x[39 - t - k + 9] * w[k, c], axis=k, where=(t + k >= 9) & (t + k < 49))),
    ],
)  # fmt: skip
def test_slices_of_a_line(shape_x, shape_w, out, body) -> None:
    tensors = correlated(shape_x, shape_w, body, out)
    forms, found, expected = forced(tensors, SLICES)
    assert SLICES in forms
    for value, meaning in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, meaning, rtol=1e-4, atol=1e-4)


def test_rows_with_a_kernel_of_65_taps_each_are_slices_of_a_line() -> None:
    """Nothing is held for each tap: products of all pairs took 34 MB and twenty times as long."""
    k = te.reduce_axis((0, 65), "k")
    fn = te.function(
        lambda x, w: te.compute((8, 512), lambda b, t: te.sum(x[b, t + k] * w[b, k], axis=k), "y")
    )
    x, w = jax.ShapeDtypeStruct((8, 576), "float32"), jax.ShapeDtypeStruct((8, 65), "float32")
    forms = {c.tensor: c.form for part in fn.explain(x, w).choices.values() for c in part}
    assert forms["y"] == forms["dx"] == SLICES
    both = jax.jit(lambda x, w, h: jax.vjp(lambda x: fn(x, w), x)[1](h))
    compiled = Fused(both.lower(x, w, jax.ShapeDtypeStruct((8, 512), "float32")))
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * 4 * 8 * 576


def conv1d_of(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, w.shape[0]), "k")
    return te.compute((x.shape[0] - w.shape[0] + 1,), lambda i: te.sum(x[i + k] * w[k], axis=k), "y")


@pytest.mark.parametrize("form", [MATRIX, DIAGONALS])
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_integers_are_exact(form: str, dtype: str) -> None:
    _, _, y = conv1d(size=80, taps=45, stride=2, pad=3, dtype=dtype)
    forms, found, expected = forced([y], form)
    assert forms == [form]
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[0].dtype == expected[0].dtype


def test_integers_have_no_transform() -> None:
    _, _, y = conv1d(size=80, taps=45, dtype="int32")
    program = lower("forward", inputs_of([y]), [y], Policy())
    assert all(e.form != FOURIER for e in program.choices[0].estimates)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("stride", "pad", "groups"), [(1, 0, 1), (2, 7, 1), (1, 19, 2), (3, 4, 2)])
def test_gradients_are_those_of_jax(form: str, stride: int, pad: int, groups: int) -> None:
    rng = np.random.default_rng(0)
    x, w = (jnp.asarray(rng.standard_normal(s), jnp.float32) for s in ((2, 4, 90), (4, 4 // groups, 20)))

    def plain(x, w):
        return lax.conv_general_dilated(
            x, w, (stride,), [(pad, pad)], dimension_numbers=("NCW", "OIW", "NCW"), feature_group_count=groups
        )

    run = te.function(
        lambda x, w: te.ops.conv1d(x, w, strides=stride, padding=pad, groups=groups), forms={"*": form}
    )
    value, pullback = jax.vjp(plain, x, w)
    head = jnp.asarray(rng.standard_normal(value.shape), jnp.float32)
    np.testing.assert_allclose(run(x, w), value, rtol=1e-4, atol=1e-4)
    for found, expected in zip(jax.vjp(run, x, w)[1](head), pullback(head), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def product(t: te.Tensor, x: te.Tensor) -> te.Tensor:
    n = x.shape[1]
    j = te.reduce_axis((0, n), "j")
    return te.compute(x.shape, lambda b, i: te.sum(t[i - j + n - 1] * x[b, j], axis=j), "y")


def test_long_products_take_matrices_and_diagonals_by_themselves() -> None:
    n = 512
    t, x = np.ones(2 * n - 1, "float32"), np.ones((32, n), "float32")
    fn = te.function(product)
    told = fn.explain(t, x)
    assert not told.gathers and not told.scatters
    forms = {c.tensor: c.form for part in told.choices.values() for c in part}
    assert forms["dt"] == DIAGONALS and forms["dx"] == MATRIX
    hlo = Fused(jax.jit(lambda t, x, h: jax.vjp(fn, t, x)[1](h)).lower(t, x, x))
    indexed = jax.jit(
        lambda t, x, h: jax.vjp(lambda t, x: x @ t[jnp.arange(n)[:, None] - jnp.arange(n) + n - 1].T, t, x)[
            1
        ](h)
    )
    temporaries = hlo.memory_analysis().temp_size_in_bytes
    assert temporaries < Fused(indexed.lower(t, x, x)).memory_analysis().temp_size_in_bytes
    assert "scatter" not in hlo.as_text() and " gather(" not in hlo.as_text()


def test_a_product_and_its_adjoints_are_three_products_of_matrices() -> None:
    """The product that is summed along diagonals exists once: its operand has zeros around it, not each of its rows."""
    n = 1024
    t, x = jax.ShapeDtypeStruct((2 * n - 1,), "float32"), jax.ShapeDtypeStruct((64, n), "float32")
    fn = te.function(product)
    both = jax.jit(lambda t, x, h: (fn(t, x), jax.vjp(fn, t, x)[1](h))).lower(t, x, x)
    assert both.as_text().count("stablehlo.dot_general") == 3
    assert Fused(both).memory_analysis().temp_size_in_bytes < 1.3 * 4 * n * n
    assert "jnp.pad(dt_1" not in fn.source(t, x)


@pytest.mark.parametrize("budget", [None, 4096, 1 << 30])
def test_a_transform_is_never_taken_by_itself(budget: int | None) -> None:
    t, x = np.ones(8191, "float32"), np.ones((2, 4096), "float32")
    told = te.function(product, max_memory=budget).explain(t, x)
    assert all(c.form != FOURIER for part in told.choices.values() for c in part)
    why = dict(told.refused["y"])[FOURIER]
    assert "rounds" in why and "nan" in why and "by name" in why
    named = te.function(product, forms={"*": FOURIER})
    assert "jnp.fft.irfft" in named.source(t, x) and FOURIER not in dict(named.explain(t, x).refused["y"])


def test_a_transform_is_taken_where_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_measured", {})
    monkeypatch.setattr(
        tuning, "_interleaved", lambda calls, seconds: {f: 1e-3 if f == FOURIER else 2e-3 for f in calls}
    )
    t, x = np.ones(127, "float32"), np.ones((2, 64), "float32")
    report = te.autotune(product, t, x)
    assert set(report.winners.values()) == {FOURIER}
    assert "jnp.fft.rfft" in te.source(product, t, x)


def test_an_infinity_stays_in_its_window() -> None:
    """Matrices of windows and sums along diagonals multiply no zeros of their own with data."""
    _, w, y = conv1d(n=1, c=1, o=1, size=40, taps=3)
    (x,) = (t for t in inputs_of([y]) if t is not w)
    for form in (MATRIX, DIAGONALS):
        program = lower("forward", inputs_of([y]), [y], Policy(forms={"*": form}))
        arrays = arrays_for(program)
        arrays[place_of(x, [t for _, t in program.params])][0, 0, 20] = np.inf
        (found,) = run(program, arrays)
        assert (~np.isfinite(found)).nonzero()[2].tolist() == [18, 19, 20], form


def test_an_infinity_behind_the_blocks_is_read_where_it_counts() -> None:
    x, w, y = conv1d(n=1, c=1, o=1, size=163, taps=4)
    dw = adjoints(x, w, y)[2]
    program = lower("forward", inputs_of([dw]), [dw], Policy(forms={"*": BLOCKS}))
    arrays = arrays_for(program)
    arrays[place_of(x, [t for _, t in program.params])][0, 0, 162] = np.inf
    (found,) = run(program, arrays)
    assert np.isfinite(found).tolist() == [[[True, True, True, False]]]
