"""Convolutions of two dimensions as a matrix product for each image: rows laid out as features, sums of columns added."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import jaxte as te
from jaxte.bridge.primitive.module import load
from jaxte.lower.code.lines import lines_of, sources_of
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.forms.conv.candidates import IMAGES
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from tests.agreement import compiled_run
from tests.lowered import arrays_for, inputs_of
from tests.xla_counts import Fused


def conv2d(
    n: Any = 8,
    c: int = 32,
    size: Any = 56,
    o: int = 64,
    taps: int = 3,
    dtype: str = "float32",
    **options: Any,
) -> list[te.Tensor]:
    """A convolution and its gradients."""
    x = te.placeholder((n, c, size, size), dtype, "x")
    w = te.placeholder((o, c // options.get("groups", 1), taps, taps), dtype, "w")
    y = te.ops.conv2d(x, w, padding=taps // 2, **options)
    return [y, *te.differentiate(y, [x, w], head=te.placeholder(y.shape, dtype, "h"))]


def forms_of(*tensors: te.Tensor, platform: str = "cpu") -> list[str]:
    choices = lower("forward", inputs_of(*tensors), tensors, Policy(platform)).choices
    return [c.form for c in choices if c.estimates]


def refused(tensor: te.Tensor, platform: str = "cpu") -> str:
    """Why the form is not among those that ``tensor`` could have."""
    (choice,) = lower("forward", inputs_of(tensor), [tensor], Policy(platform)).choices
    assert IMAGES not in {e.form for e in choice.estimates}
    return dict(choice.refused)[IMAGES]


@pytest.mark.parametrize("options", [{}, {"dilation": 2}, {"c": 64, "o": 32}, {"taps": 5}])
def test_convolutions_of_few_features_are_products_on_the_cpu(options: dict[str, int]) -> None:
    assert forms_of(*conv2d(**options)) == [IMAGES, IMAGES, "convolution"]


def test_convolutions_that_cores_share_are_left() -> None:
    assert forms_of(*conv2d(c=128, o=128, size=28)[:2]) == ["convolution"] * 2


@pytest.mark.parametrize("options", [{"n": 4, "size": 7}, {"strides": 2}])
def test_so_are_those_whose_copies_take_longer(options: dict[str, int]) -> None:
    assert IMAGES not in forms_of(*conv2d(**options))


def test_so_are_those_whose_features_come_last() -> None:
    x, w = te.placeholder((8, 58, 58, 32), name="x"), te.placeholder((3, 3, 32, 64), name="w")
    c, k, m = (te.reduce_axis((0, e), name) for e, name in ((32, "c"), (3, "k"), (3, "m")))
    y = te.compute(
        (8, 56, 56, 64), lambda n, i, j, f: te.sum(x[n, i + k, j + m, c] * w[k, m, c, f], axis=[c, k, m])
    )
    assert refused(y) == "features come last, as in XLA's own convolutions"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"groups": 4}, "there is more than one group"),
        ({"dtype": "bfloat16"}, "sums of bfloat16 would be rounded once more"),
        ({"taps": 17}, "17 slices are more than 16"),
        ({"size": te.var("m")}, "extents depend on sizes"),
        ({"n": 1}, "there is one image only"),
    ],
)
def test_what_is_refused(options: dict[str, Any], reason: str) -> None:
    assert refused(conv2d(**options)[0]) == reason


def test_few_images_are_products_by_name_only() -> None:
    y = conv2d(n=2)[0]
    choice, named = (
        lower("forward", inputs_of(y), [y], Policy(forms=forms)).choices[0] for forms in ({}, {ANY: IMAGES})
    )
    assert (choice.form, named.form) == ("convolution", IMAGES)
    assert dict(choice.refused)[IMAGES].startswith(
        "copies of one image take 3,741,696 bytes, all images 2,408,448: only by name"
    )


def test_images_with_zeros_between_elements_are_refused() -> None:
    assert refused(conv2d(strides=2)[1]) == "there are zeros between the elements of the image"


def test_elsewhere_they_are_convolutions() -> None:
    assert "use all of their cores" in refused(conv2d()[0], "gpu")


def test_the_text_is_a_function_of_one_image() -> None:
    y, dx, _ = conv2d(n=te.var("n"))
    program = lower("forward", inputs_of(y, dx), [y, dx], Policy(forms={ANY: IMAGES}))
    kernel, image, _ = program.statements[:3]
    sources = sources_of(program)
    assert sources[0] == "w.transpose(3, 0, 2, 1).reshape(3, 64, 96)"
    assert lines_of(image, program.printer)[2:-1] == [
        "    image = jnp.pad(image, ((0, 0), (1, 1), (1, 1)))",
        "    rows = jnp.concatenate([image[:, i:i + 56] for i in range(3)])",
        f"    sums = jnp.tensordot({kernel.target}, rows, 1)",
        "    return sum(sums[j, :, :, j:j + 56] for j in range(3))",
    ]
    assert sources[2] == f"lax.map({image.target}, x)"


def idiomatic(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(
        x, w, (1, 1), ((1, 1), (1, 1)), dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def test_one_product_in_a_loop_that_holds_less_than_the_convolution() -> None:
    x, w = np.zeros((8, 32, 56, 56), np.float32), np.zeros((64, 32, 3, 3), np.float32)
    fn = te.function(lambda x, w: te.ops.conv2d(x, w, padding=1))
    ours, theirs = (jax.jit(f).lower(x, w) for f in (fn, idiomatic))
    text = ours.as_text()
    assert (text.count("dot_general"), text.count("stablehlo.while"), "convolution" in text) == (1, 1, False)
    held, allowed = (Fused(own).memory_analysis().temp_size_in_bytes for own in (ours, theirs))
    assert held < 0.7 * allowed


@pytest.mark.usefixtures("programs_by_xla")
def test_values_and_gradients_are_those_of_jax() -> None:
    rng = np.random.default_rng(0)
    x, w, h = (
        jnp.asarray(rng.normal(size=s), "float32") for s in ((5, 32, 40, 44), (32, 32, 3, 3), (5, 32, 40, 44))
    )
    fn = te.function(lambda x, w: te.ops.conv2d(x, w, padding=1), forms={ANY: IMAGES})
    assert "_image(image)" in fn.source(x, w)
    for ours, theirs in zip(*(jax.tree.leaves(jax.vjp(f, x, w)[1](h)) for f in (fn, idiomatic)), strict=True):
        np.testing.assert_allclose(ours, theirs, 2e-5, 2e-4)


# --- everything that a convolution may have


@st.composite
def dimension(draw: st.DrawFn) -> tuple[int, ...]:
    """Taps, extent of the image, stride, dilation, padding before and behind, of which some is negative."""
    taps, stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    before, behind = draw(st.integers(-1, 2)), draw(st.integers(-1, 2))
    least = max(1, (taps - 1) * dilation + 1 - before - behind, -before + 1, -behind + 1)
    return taps, draw(st.integers(least, least + 4)), stride, dilation, before, behind


@st.composite
def convolutions(draw: st.DrawFn) -> list[te.Tensor]:
    """A convolution of two dimensions with features anywhere, and its gradients."""
    n, c, o = draw(st.integers(2, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dims = [dict(zip("kxsdab", draw(dimension()), strict=True)) for _ in range(2)]
    places = draw(st.permutations(range(4))), draw(st.permutations(range(4))), draw(st.permutations(range(4)))

    def ordered(values: Any, which: int) -> Any:
        return tuple(values[p] for p in places[which])

    x = te.placeholder(ordered((n, c, *(d["x"] for d in dims)), 0), "float64", "x")
    w = te.placeholder(ordered((o, c, *(d["k"] for d in dims)), 1), "float64", "w")
    axes = [te.reduce_axis((0, d["k"]), f"k{m}") for m, d in enumerate(dims)]
    channel = te.reduce_axis((0, c), "c")

    def element(*indices: Any) -> Any:
        b, f, *t = (indices[places[2].index(p)] for p in range(4))
        at = [d["s"] * i + d["d"] * k - d["a"] for d, i, k in zip(dims, t, axes, strict=True)]
        inside = te.const(True)
        for place, d in zip(at, dims, strict=True):
            inside = inside & (place >= 0) & (place < d["x"])
        product = x[ordered((b, channel, *at), 0)] * w[ordered((f, channel, *axes), 1)]
        return te.sum(product, axis=[channel, *axes], where=inside)

    lengths = [(d["x"] + d["a"] + d["b"] - d["d"] * (d["k"] - 1) - 1) // d["s"] + 1 for d in dims]
    y = te.compute(ordered((n, o, *lengths), 2), element, "y")
    return [y, *te.differentiate(y, [x, w], head=te.placeholder(y.shape, "float64", "h"))]


@pytest.mark.usefixtures("x64")
@settings(max_examples=300 if settings.default.max_examples >= 1000 else 20)
@given(convolutions())
def test_random_convolutions(tensors: list[te.Tensor]) -> None:
    inputs = inputs_of(*tensors)
    program = lower("forward", inputs, tensors, Policy(forms={ANY: IMAGES}))
    feeds = dict(zip(inputs, arrays_for(program), strict=True))
    text = module_text([program], "", "forced")
    found = compiled_run(load(text, "forced", {})["forward"], list(feeds.values()), optimised=False)
    for value, meaning in zip(found, te.interpret(tensors, feeds), strict=True):
        assert (value.shape, value.dtype) == (meaning.shape, meaning.dtype), text
        np.testing.assert_allclose(value, meaning, 1e-9, 1e-9, err_msg=text)
