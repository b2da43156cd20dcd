"""Convolutions of three dimensions and more as convolutions of two: windows laid out among batch and features."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.bridge.primitive.module import load
from jaxte.lower.code.lines import sources_of
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.forms.conv.candidates import FOLDED, PER_GROUP
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from tests.agreement import compiled_run
from tests.lowered import arrays_for, inputs_of
from tests.xla_counts import Fused

GROUPED = f"{FOLDED} per group"


def forms_of(*tensors: te.Tensor, platform: str = "cpu") -> list[str]:
    return [c.form for c in lower("forward", inputs_of(*tensors), tensors, Policy(platform)).choices]


def conv3d(n: int = 2, c: int = 16, size: int = 24, o: int = 16, **options: Any) -> list[te.Tensor]:
    """A convolution and its gradients."""
    x = te.placeholder((n, c, size, size, size), name="x")
    w = te.placeholder((o, c // options.get("groups", 1), 3, 3, 3), name="w")
    y = te.ops.conv3d(x, w, padding=1, **options)
    return [y, *te.differentiate(y, [x, w], head=te.placeholder(y.shape, name="h"))]


@pytest.mark.parametrize("options", [{}, {"strides": 2}, {"dilation": 2}])
def test_convolutions_of_volumes_are_folded_on_the_cpu(options: dict[str, int]) -> None:
    tensors = conv3d(**options)
    assert [form for form in forms_of(*tensors) if "convolution" in form] == [FOLDED] * 3


def test_elsewhere_they_are_not() -> None:
    assert FOLDED not in "".join(forms_of(*conv3d(), platform="gpu"))


def test_groups_are_folded_and_apart() -> None:
    assert forms_of(conv3d(groups=4)[0]) == [GROUPED]


def test_the_convolution_that_is_left_has_two_dimensions() -> None:
    x, w = np.zeros((2, 16, 24, 24, 24), np.float32), np.zeros((16, 16, 3, 3, 3), np.float32)
    fn = te.function(lambda x, w: te.ops.conv3d(x, w, padding=1))
    both = jax.jit(lambda x, w, h: jax.vjp(fn, x, w)[1](h)).lower(x, w, x).as_text()
    assert both.count("stablehlo.convolution") == 2
    assert both.count("window = {stride = [1, 1]") == both.count("window = {") == 2
    held = Fused(jax.jit(fn).lower(x, w)).memory_analysis().temp_size_in_bytes
    assert held < 1.4 * 3 * x.nbytes  # the image once for each tap of a dimension, in one order and no other


def test_the_dimension_with_the_fewest_taps_is_folded() -> None:
    x, w = te.placeholder((2, 3, 8, 8, 8), name="x"), te.placeholder((4, 3, 3, 3, 1), name="w")
    program = lower("forward", [x, w], [te.ops.conv3d(x, w)], Policy(forms={ANY: FOLDED}))
    first, *_ = sources_of(program)
    assert first == "x[:, :, :, :, :8].transpose(0, 4, 1, 2, 3).reshape(16, 3, 8, 8)"


def test_symbolic_batches_are_folded_and_symbolic_images_are_not() -> None:
    n, m = te.var("n"), te.var("m")
    w = te.placeholder((4, 3, 3, 3, 3), name="w")
    batch = te.ops.conv3d(te.placeholder((n, 3, 8, 8, 8), name="x"), w)
    image = te.ops.conv3d(te.placeholder((2, 3, m, m, m), name="x"), w)
    for y, folded in ((batch, True), (image, False)):
        (choice,) = lower("forward", inputs_of(y), [y], Policy(forms={ANY: FOLDED})).choices
        assert (choice.form == FOLDED) == folded
        assert ((FOLDED, "extents depend on sizes") in choice.refused) != folded


@st.composite
def convolutions(draw: st.DrawFn) -> list[te.Tensor]:
    """A convolution of three or four dimensions with everything that one may have, and its gradients."""
    rank = draw(st.sampled_from([3, 3, 3, 4]))
    n, c, o, groups = (draw(st.integers(1, 2)) for _ in range(4))
    dims = [dict(zip("kxsdab", draw(dimension()), strict=True)) for _ in range(rank)]
    x = te.placeholder((n, groups * c, *(d["x"] for d in dims)), "float64", "x")
    w = te.placeholder((groups * o, c, *(d["k"] for d in dims)), "float64", "w")
    axes = [te.reduce_axis((0, d["k"]), f"k{n}") for n, d in enumerate(dims)]
    channel = te.reduce_axis((0, c), "c")

    def element(b: Any, f: Any, *t: Any) -> Any:
        places = [d["s"] * i + d["d"] * k - d["a"] for d, i, k in zip(dims, t, axes, strict=True)]
        inside = te.const(True)
        for place, d in zip(places, dims, strict=True):
            inside = inside & (place >= 0) & (place < d["x"])
        read = x[(b, f // o * c + channel, *places)]
        return te.sum(read * w[(f, channel, *axes)], axis=[channel, *axes], where=inside)

    lengths = [(d["x"] + d["a"] + d["b"] - d["d"] * (d["k"] - 1) - 1) // d["s"] + 1 for d in dims]
    y = te.compute((n, groups * o, *lengths), element, "y")
    return [y, *te.differentiate(y, [x, w], head=te.placeholder(y.shape, "float64", "h"))]


@st.composite
def dimension(draw: st.DrawFn) -> tuple[int, ...]:
    """Taps, extent of the image, stride, dilation, padding before and behind."""
    taps, stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    before, behind = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    least = max(1, (taps - 1) * dilation + 1 - before - behind)
    return taps, draw(st.integers(least, least + 3)), stride, dilation, before, behind


@pytest.mark.usefixtures("x64")
@settings(max_examples=300 if settings.default.max_examples >= 1000 else 15)
@given(convolutions())
def test_random_convolutions(tensors: list[te.Tensor]) -> None:
    inputs = inputs_of(*tensors)
    feeds = None
    for form in (FOLDED, GROUPED, PER_GROUP):
        program = lower("forward", inputs, tensors, Policy(forms={ANY: form}))
        if form not in {e.form for choice in program.choices for e in choice.estimates}:
            continue
        feeds = feeds or dict(zip(inputs, arrays_for(program), strict=True))
        text = module_text([program], "", "forced")
        found = compiled_run(load(text, "forced", {})["forward"], list(feeds.values()), optimised=False)
        for value, meaning in zip(found, te.interpret(tensors, feeds), strict=True):
            assert (value.shape, value.dtype) == (meaning.shape, meaning.dtype), text
            np.testing.assert_allclose(value, meaning, 1e-9, 1e-9, err_msg=text)
