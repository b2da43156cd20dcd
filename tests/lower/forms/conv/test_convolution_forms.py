"""Each form of a convolution against the interpreter, and which of them is chosen for what."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import jaxte as te
from jaxte import ops
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from jaxte.meaning.interpret import interpret
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from tests.lowered import arrays_for, program_of
from tests.xla_counts import Fused

FORMS = ("convolution", "convolution per group", "sums in one pass", "general")
BACK = "lax.conv_general_dilated"


def graph(shape, kernel, **options) -> list[te.Tensor]:
    x, w = te.placeholder(shape, name="x"), te.placeholder(kernel, name="w")
    y = ops.conv2d(x, w, **options)
    return [y, *te.differentiate(y, (x, w), head=te.placeholder(y.shape, name="H"))]


def forms_of(tensors: list[te.Tensor]) -> list[str]:

    inputs = [t for t in topological_order(tensors) if isinstance(t, Placeholder)]
    return [choice.form for choice in lower("f", inputs, tensors).choices]


def agree(tensors: list[te.Tensor], form: str) -> str:
    """The text in which ``form`` is taken wherever it is offered, checked against the interpreter."""

    inputs = [t for t in topological_order(tensors) if isinstance(t, Placeholder)]
    program = lower("f", inputs, tensors, Policy(forms={"*": form}))
    arrays = arrays_for(program)
    expected = interpret(tensors, {t: a for (_, t), a in zip(program.params, arrays, strict=True)})
    namespace: dict[str, object] = {}
    text = module_text([program])
    exec(compile(text, "<emitted>", "exec"), namespace)
    for found, wanted in zip(jax.jit(namespace["f"])(*arrays), expected, strict=True):
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
    return text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("options", [{}, {"padding": 1}, {"strides": 2, "padding": 1}, {"dilation": 2}])
def test_every_form_of_grouped_convolutions(form: str, groups: int, options) -> None:
    agree(graph((2, 4, 7, 6), (8, 4 // groups, 3, 2), groups=groups, **options), form)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_random_depthwise_convolutions(data: st.DataObject) -> None:
    channels, size = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    options = {
        "strides": data.draw(st.integers(1, 3)),
        "padding": data.draw(st.sampled_from([0, 1, "SAME", ((0, 2), (1, 0))])),
        "dilation": data.draw(st.integers(1, 2)),
        "groups": channels,
    }
    agree(graph((2, channels, 6, 8), (channels, 1, size, 2), **options), data.draw(st.sampled_from(FORMS)))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_groups_are_convolutions_side_by_side(layout: str) -> None:
    shapes = {"NCHW": ((2, 32, 8, 8), (32, 8, 3, 3)), "NHWC": ((2, 8, 8, 32), (3, 3, 8, 32))}[layout]
    tensors = graph(*shapes, groups=4, padding=1, layout=layout)
    assert forms_of(tensors) == ["convolution per group"] * 3
    text = agree(tensors, "convolution per group")
    assert text.count(BACK) == 3 and "feature_group_count" not in text and "jnp.split(" in text


def one_dimension(x, w):
    return ops.conv1d(x, w, groups=4, padding=2, dilation=2)


def two_dimensions(x, w):
    return ops.conv2d(x, w, groups=4, padding=1, strides=(2, 1))


def for_each_example(x, w):
    """The gradient of a filter for each image: what is grouped is the batch itself."""
    p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")
    c = te.reduce_axis((0, x.shape[1]), "c")
    shape = (x.shape[0], w.shape[1], x.shape[2] - 2, x.shape[3] - 2)
    return te.compute(
        shape,
        lambda n, o, i, j: te.sum(x[n, c, i + p, j + q] * w[n, o, c, p, q], axis=(c, p, q)),
        "y",
    )


def plain(dims: tuple[str, str, str], **options):
    return lambda x, w: lax.conv_general_dilated(x, w, dimension_numbers=dims, **options)


SPATIAL = ("NCHW", "OIHW", "NCHW")
GROUPED_FILTERS = {
    "1": (
        one_dimension,
        plain(("NCW", "OIW", "NCW"), window_strides=(1,), padding=((2, 2),), rhs_dilation=(2,), feature_group_count=4),
        ((3, 8, 40), (12, 2, 3)),
    ),
    "2": (
        two_dimensions,
        plain(SPATIAL, window_strides=(2, 1), padding=((1, 1), (1, 1)), feature_group_count=4),
        ((3, 8, 20, 21), (12, 2, 3, 3)),
    ),
    "examples": (
        for_each_example,
        jax.vmap(lambda x, w: plain(SPATIAL, window_strides=(1, 1), padding="VALID")(x[None], w)[0]),
        ((4, 2, 16, 15), (4, 3, 2, 3, 3)),
    ),
}  # fmt: skip


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("platform", ["gpu", "cpu"])
@pytest.mark.parametrize("name", GROUPED_FILTERS)
def test_filters_in_groups_have_one_convolution_for_a_gradient(name: str, platform: str) -> None:
    ours, by_jax, shapes = GROUPED_FILTERS[name]
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape) for shape in shapes)
    fn = te.function(ours, platform=platform, forms={"*": "convolution in groups of the batch"})
    text = str(te.source(fn, x, w))
    assert text.count("batch_group_count=4") == (platform == "gpu")
    assert platform == "cpu" or ("jnp.concatenate" not in text and "jnp.split" not in text)

    def loss(f):
        return lambda x, w: (f(x, w) ** 2).sum()

    for found, wanted in zip(
        jax.grad(loss(fn), (0, 1))(x, w), jax.grad(loss(by_jax), (0, 1))(x, w), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_which_filters_are_groups_of_a_batch() -> None:
    x, w = (jax.ShapeDtypeStruct(s, "float32") for s in ((8, 64, 32, 32), (64, 16, 3, 3)))
    grouped = te.function(lambda x, w: ops.conv2d(x, w, groups=4, padding=1), platform="gpu")
    assert str(te.source(grouped, x, w)).count("batch_group_count=4") == 1
    x, w = (jax.ShapeDtypeStruct(s, "float32") for s in ((2, 32, 20), (32, 1, 3)))
    text = str(te.source(te.function(lambda x, w: ops.conv1d(x, w, groups=32), platform="gpu"), x, w))
    assert "batch_group_count" not in text


def test_the_weights_of_a_depthwise_convolution_are_sums_in_one_pass() -> None:
    tensors = graph((4, 16, 16, 16), (16, 1, 3, 3), groups=16, padding=1)
    assert forms_of(tensors) == ["shift-and-add", "shift-and-add", "sums in one pass"]

    program = program_of(tensors[2])

    namespace: dict[str, object] = {}
    exec(module_text([program]), namespace)
    compiled = Fused(jax.jit(namespace["forward"]).lower(*arrays_for(program)))
    hlo = compiled.as_text()
    assert (
        "convolution(" not in hlo
        and " while(" not in hlo
        and " scatter(" not in hlo
        and " gather(" not in hlo
    )
    # the padded image and little more: neither slices nor products exist
    assert compiled.memory_analysis().temp_size_in_bytes < 1.5 * 4 * 4 * 16 * 18 * 18


def test_dense_convolutions_are_xla_s() -> None:
    for options in ({"padding": 1}, {"strides": 2, "padding": 1}, {"dilation": 2, "padding": 2}):
        tensors = graph((8, 32, 16, 16), (32, 32, 3, 3), **options)
        assert forms_of(tensors) == ["convolution"] * 3


@pytest.mark.parametrize("channels", [32, 64])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(("taps", "dilation"), [(2, 2), (3, 1)])
def test_what_a_matrix_along_diagonals_transposes_counts(
    channels: int, before: bool, taps: int, dilation: int
) -> None:
    """Causal convolutions of one dimension: laying the operands out takes as long as the products."""
    n, reach = 2048, dilation * (taps - 1)
    x = te.placeholder((4, n if before else n + reach, channels), name="x")
    w = te.placeholder((taps, channels, channels), name="w")
    k, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, channels), "c")

    def element(b, t, o):
        at = t + dilation * k - (reach if before else 0)
        return te.sum(x[b, at, c] * w[k, c, o], axis=[k, c], where=at >= 0 if before else None)

    y = te.compute((4, n, channels), element, "y")
    both = te.differentiate(y, (x, w), head=te.placeholder(y.shape, name="H"))
    assert set(forms_of([y, *both])) == {"convolution"}


def transposed(x: te.Tensor, w: te.Tensor, stride: int) -> te.Tensor:
    """Y[n, o, i] = sum of x[n, c, (i + p - 2) / stride] * w[o, c, p] where that is a whole number inside x."""
    c, p = te.reduce_axis((0, x.shape[1]), "c"), te.reduce_axis((0, w.shape[2]), "p")
    length = x.shape[2]

    def body(n, o, i):
        at = i + p - 2
        here = (at % stride == 0) & (at >= 0) & (at < stride * length)
        return te.sum(x[n, c, at // stride] * w[o, c, p], axis=[c, p], where=here)

    return te.compute((x.shape[0], w.shape[0], stride * length), body, "Y")


@pytest.mark.parametrize(("stride", "taps"), [(2, 4), (2, 3), (3, 4), (3, 2)])
def test_transposed_convolutions_as_they_are_written_down(stride: int, taps: int) -> None:
    x, w = te.placeholder((2, 3, 5), name="x"), te.placeholder((4, 3, taps), name="w")
    y = transposed(x, w, stride)
    tensors = [y, *te.differentiate(y, (x, w), head=te.placeholder(y.shape, name="H"))]
    text = agree(tensors, "convolution")
    assert text.count(BACK) == 3 and f"lhs_dilation=({stride},)" in text
    agree(tensors, "general")


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint16"])
def test_integers_are_multiplied_by_matrix_products(dtype: str) -> None:
    """XLA has a plain loop for convolutions of integers, which takes eight times as long."""
    x, w = te.placeholder((4, 16, 28, 28), dtype, "x"), te.placeholder((16, 16, 3, 3), dtype, "w")
    y = ops.conv2d(x, w, padding=1)
    assert "convolution" not in forms_of([y])[0]
    u, v = te.placeholder((2, 3, 5, 4), dtype, "u"), te.placeholder((2, 3, 3, 2), dtype, "v")
    agree([ops.conv2d(u, v), ops.conv2d(u, v, padding=1)], "general")


def _strands(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A motif is looked for on the strand that runs backwards, in complementary letters."""
    n, (o, taps, letters) = x.shape[1], w.shape
    k, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, letters), "c")
    return te.compute(
        (x.shape[0], o, n - taps + 1),
        lambda b, o, t: te.sum(x[b, t + k, c] * w[o, taps - 1 - k, letters - 1 - c], axis=(k, c)),
        "y",
    )


def _filter(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A convolution as mathematics has it, to the end of the kernel."""
    k, c = te.reduce_axis((0, w.shape[1]), "k"), te.reduce_axis((0, x.shape[2]), "c")
    n = x.shape[1] - w.shape[1] + 1
    return te.compute(
        (x.shape[0], n, w.shape[0]),
        lambda b, t, o: te.sum(x[b, t + w.shape[1] - 1 - k, c] * w[o, k, c], axis=(k, c)),
        "y",
    )


def _lags(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Signals of several channels at falling lags."""
    k, b = te.reduce_axis((0, w.shape[1]), "k"), te.reduce_axis((0, x.shape[2]), "b")
    n = x.shape[1] - w.shape[1]
    return te.compute(
        (n + 1, x.shape[0], w.shape[0]),
        lambda t, c, o: te.sum(x[c, n - t + k, b] * w[o, k, b], axis=(k, b)),
        "y",
    )


@pytest.mark.parametrize("build", [_strands, _filter])
def test_the_gradient_of_a_mirrored_kernel_has_the_features_of_the_kernel(build) -> None:
    """Not those of few letters, for which a matrix of windows would be laid out: the result is reversed in place of what flows back."""
    x, w = te.placeholder((32, 400, 4), name="x"), te.placeholder((24, 12, 4), name="w")
    y = build(x, w)
    (dw,) = te.differentiate(y, [w], head=te.placeholder(y.shape, name="H"))
    assert forms_of([dw]) == ["convolution"]
    small = te.placeholder((3, 13, 3), name="x"), te.placeholder((4, 5, 3), name="w")
    y = build(*small)
    agree([y, *te.differentiate(y, small, head=te.placeholder(y.shape, name="H"))], "convolution")


def test_signals_at_falling_lags_have_the_features_of_the_more() -> None:
    large = _lags(te.placeholder((4, 400, 32), name="x"), te.placeholder((24, 389, 32), name="w"))
    assert forms_of([large]) == ["convolution"]
    small = te.placeholder((3, 12, 4), name="x"), te.placeholder((5, 9, 4), name="w")
    y = _lags(*small)
    agree([y, *te.differentiate(y, small, head=te.placeholder(y.shape, name="H"))], "convolution")
