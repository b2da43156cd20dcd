"""Kernels of more than a hundred taps in two dimensions: products of rows, and stacks of both operands for their gradients."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jaxte as te
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from jaxte.meaning.interpret import interpret
from jaxte.tensors.tensor import Compute, Tensor
from tests.agreement import inputs_of
from tests.lowered import arrays_for, run

ROWS, STACKS = "products of rows", "product of two stacks"


def axis(extent: int, name: str) -> te.Axis:
    return te.reduce_axis((0, extent), name)


def blur(x: Tensor, w: Tensor) -> Compute:
    """One image, zeros around it."""
    n, m = x.shape
    k, l = axis(11, "k"), axis(12, "l")  # noqa: E741
    inside = lambda i, j: (i + k >= 4) & (i + k < n + 4) & (j + l >= 5) & (j + l < m + 5)  # noqa: E731
    return te.compute(x.shape, lambda i, j: te.sum(x[i + k - 4, j + l - 5] * w[k, l], [k, l], where=inside(i, j)), "y")  # fmt: skip


def features(x: Tensor, w: Tensor) -> Compute:
    """A batch of two channels, windows that move by two and leave out elements, features last."""
    k, l, c = axis(9, "k"), axis(13, "l"), axis(2, "c")  # noqa: E741
    return te.compute((2, 5, 6, 3), lambda b, i, j, o: te.sum(x[b, c, 2 * i + k, j + 2 * l] * w[o, k, l, c], [k, l, c]), "y")  # fmt: skip


def mirrored(x: Tensor, w: Tensor) -> Compute:
    """Both positions read backwards."""
    k, l = axis(10, "k"), axis(11, "l")  # noqa: E741
    return te.compute((12, 13), lambda i, j: te.sum(x[21 - i - k, 23 - j - l] * w[k, 10 - l], [k, l]), "y")


def correlation(x: Tensor, y: Tensor) -> Compute:
    """Two images of a few channels at many shifts."""
    i, j, c = axis(20, "i"), axis(22, "j"), axis(3, "c")
    return te.compute((9, 11), lambda k, q: te.sum(x[i + k, j + q, c] * y[i, j, c], [i, j, c]), "r")


def apart(x: Tensor, h: Tensor) -> Compute:
    """The filters of channels, moved by two along rows, which are read backwards."""
    b, i, j = axis(2, "b"), axis(14, "i"), axis(15, "j")
    return te.compute((3, 8, 10), lambda c, k, q: te.sum(x[b, c, 2 * k + i, 9 - q + j] * h[b, i, j, c], [b, i, j]), "r")  # fmt: skip


def upwards(x: Tensor, h: Tensor) -> Compute:
    """Shifts of rows that are counted from the last one."""
    i, j, c = axis(20, "i"), axis(22, "j"), axis(3, "c")
    return te.compute((9, 11), lambda k, q: te.sum(x[8 - k + i, j + q, c] * h[i, j, c], [i, j, c]), "r")


def volumes(x: Tensor, h: Tensor) -> Compute:
    i, j, m = axis(8, "i"), axis(7, "j"), axis(9, "m")
    return te.compute((5, 4, 6), lambda k, q, n: te.sum(x[i + k, j + q, m + n] * h[i, j, m], [i, j, m]), "r")


CASES: dict[str, tuple[Callable[..., Compute], list[tuple[int, ...]], str]] = {
    f.__name__: (f, shapes, form)
    for f, shapes, form in (
        (blur, [(20, 24), (11, 12)], ROWS),
        (features, [(2, 2, 17, 30), (3, 9, 13, 2)], ROWS),
        (mirrored, [(22, 24), (10, 11)], ROWS),
        (correlation, [(28, 32, 3), (20, 22, 3)], STACKS),
        (apart, [(2, 3, 28, 24), (2, 14, 15, 3)], STACKS),
        (upwards, [(28, 32, 3), (20, 22, 3)], STACKS),
        (volumes, [(12, 10, 14), (8, 7, 9)], STACKS),
    )
}


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_adjoints_are_those_of_the_interpreter(name: str, dtype: str) -> None:
    build, shapes, form = CASES[name]
    sources = [te.placeholder(s, dtype, n) for s, n in zip(shapes, "xw", strict=True)]
    y = build(*sources)
    adjoints = te.differentiate(y, sources, te.placeholder(y.shape, dtype, "H")) if dtype != "int32" else []
    tensors = [y, *adjoints]
    program = lower("forward", inputs_of(tensors), tensors, Policy(forms={"*": form}))
    assert program.choices[0].form == form
    arrays = arrays_for(program)
    expected = interpret(tensors, {t: a for (_, t), a in zip(program.params, arrays, strict=True)})
    for value, meaning in zip(run(program, arrays), expected, strict=True):
        np.testing.assert_allclose(value, meaning, rtol=1e-4, atol=1e-3)


def valid(x: Tensor, w: Tensor) -> Compute:
    """As one writes it; sizes may be symbols."""
    k, l = te.reduce_axis((0, w.shape[0]), "k"), te.reduce_axis((0, w.shape[1]), "l")  # noqa: E741
    shape = (x.shape[0] - w.shape[0] + 1, x.shape[1] - w.shape[1] + 1)
    return te.compute(shape, lambda i, j: te.sum(x[i + k, j + l] * w[k, l], [k, l]), "y")


@pytest.mark.parametrize("taps", [11, 15, 31])
def test_no_windows_of_all_taps_by_itself(taps: int) -> None:
    """Both passes hold a few arrays for each row and column of the kernel, and no convolution of one feature is left."""
    fn, size = te.function(valid), 128
    x, w = (jax.ShapeDtypeStruct((n, n), "float32") for n in (size + taps - 1, taps))
    forms = {c.tensor: c.form for part in fn.explain(x, w).choices.values() for c in part}
    assert (forms["y"], forms["dx"], forms["dw"]) == (ROWS, ROWS, STACKS)
    text = str(fn.source(x, w))
    assert "jnp.tile" not in text and "conv_general_dilated" not in text and len(text.splitlines()) < 60
    compiled = (
        jax.jit(lambda x, w, h: jax.vjp(fn, x, w)[1](h)).lower(x, w, jax.eval_shape(fn, x, w)).compile()
    )
    held = compiled.memory_analysis().temp_size_in_bytes
    assert held < 4 * 4 * taps * (size + 2 * taps) ** 2


def test_fewer_taps_are_slices() -> None:
    x, w = jax.ShapeDtypeStruct((137, 137), "float32"), jax.ShapeDtypeStruct((10, 10), "float32")
    forms = {c.tensor: c.form for part in te.function(valid).explain(x, w).choices.values() for c in part}
    assert (forms["y"], forms["dx"]) == ("shift-and-add", "shift-and-add")


def test_many_features_stay_a_convolution() -> None:
    def layer(x: Tensor, w: Tensor) -> Compute:
        c, k, l = axis(64, "c"), axis(11, "k"), axis(11, "l")  # noqa: E741
        return te.compute((64, 32, 32), lambda o, i, j: te.sum(x[c, i + k, j + l] * w[o, c, k, l], [c, k, l]), "y")  # fmt: skip

    shapes = [jax.ShapeDtypeStruct(s, "float32") for s in ((64, 42, 42), (64, 64, 11, 11))]
    assert "conv_general_dilated" in str(te.function(layer).source(*shapes))


@pytest.mark.parametrize("dtype", ["bfloat16"])
def test_what_is_rounded_in_each_product_is_refused(dtype: str) -> None:
    shapes = [jax.ShapeDtypeStruct(s, dtype) for s in ((60, 60), (15, 15))]
    report = te.function(valid).explain(*shapes)
    assert not {ROWS, STACKS} & {c.form for part in report.choices.values() for c in part}


def test_symbolic_sizes(rng: np.random.Generator) -> None:
    n, m = export.symbolic_shape("n, m", constraints=["n >= 16", "m >= 16"])
    fn = te.function(valid)
    exported = export.export(jax.jit(fn))(
        jax.ShapeDtypeStruct((n, m), "float32"), jax.ShapeDtypeStruct((11, 13), "float32")
    )
    x, w = (jnp.asarray(rng.standard_normal(s), "float32") for s in ((30, 40), (11, 13)))
    np.testing.assert_allclose(exported.call(x, w), fn(x, w), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("inverse", [True, False])
def test_zeros_are_not_multiplied_by_what_may_be_infinite(inverse: bool) -> None:
    """A quotient that is infinite is in the one sum that reads it."""

    def build(x: Tensor, y: Tensor) -> Compute:
        i, j = axis(20, "i"), axis(22, "j")
        inverted = te.compute(x.shape, lambda p, q: 1 / x[p, q], "t") if inverse else x
        return te.compute((9, 11), lambda k, q: te.sum(inverted[i + k, j + q] * y[i, j], [i, j]), "r")

    rng = np.random.default_rng(0)
    x, y = (np.float32(rng.uniform(1, 2, shape)) for shape in ((28, 32), (20, 22)))
    fn = te.function(build)
    assert (STACKS in str(te.explain(fn, x, y)).partition("convolution")[0]) is not inverse
    x[0, 0] = 0
    assert (~np.isfinite(fn(x, y))).sum() == (1 if inverse else 0)
