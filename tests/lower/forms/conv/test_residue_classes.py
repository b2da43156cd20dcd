"""Transposed and strided convolutions as one convolution for each residue class of the output."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from jaxte.meaning.interpret import interpret
from tests.agreement import inputs_of
from tests.lowered import arrays_for, run

FORM = "residue classes"


def transposed(
    n=2, c=2, o=3, sizes=(5,), taps=(4,), up=2, dilation=1, stride=1, pad=2, dtype="float32", last=False
):
    """``y[t] = sum of x[(stride t + dilation k - pad) / up] w[k]`` where that is a whole number inside of x."""
    x = te.placeholder((n, *sizes, c) if last else (n, c, *sizes), dtype, "x")
    w = te.placeholder((o, c, *taps), dtype, "w")
    own = [te.reduce_axis((0, k), f"k{d}") for d, k in enumerate(taps)]
    channel = te.reduce_axis((0, c), "c")
    out = [
        (up * (h - 1) + 1 + 2 * pad - dilation * (k - 1) - 1) // stride + 1
        for h, k in zip(sizes, taps, strict=True)
    ]

    def body(b, f, *t):
        at = [stride * i + dilation * k - pad for i, k in zip(t, own, strict=True)]
        inside = te.const(True)
        for place, h in zip(at, sizes, strict=True):
            inside = inside & (place % up == 0) & (place >= 0) & (place < up * h)
        places = [place // up for place in at]
        value = x[(b, *places, channel)] if last else x[(b, channel, *places)]
        return te.sum(value * w[(f, channel, *own)], axis=[channel, *own], where=inside)

    return x, w, te.compute((n, o, *out), body, "y")


CASES = [
    {},
    {"taps": (5,), "up": 3, "pad": 1},
    {"taps": (6,), "up": 4, "stride": 2, "pad": 3},
    {"taps": (5,), "up": 2, "stride": 3, "pad": 4},
    {"taps": (4,), "up": 2, "dilation": 3, "pad": 6},
    {"sizes": (4, 5), "taps": (3, 4)},
    {"sizes": (4, 5), "taps": (4, 3), "last": True, "up": 3, "pad": 1},
    {"sizes": (3, 2, 3), "taps": (2, 3, 2), "n": 1, "c": 1, "pad": 1},
]


@pytest.mark.parametrize("options", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_values_and_adjoints_are_those_of_the_interpreter(options, dtype: str) -> None:
    x, w, y = transposed(**options, dtype=dtype)
    tensors = [y]
    if dtype == "float32":
        tensors += te.differentiate(y, (x, w), head=te.placeholder(y.shape, dtype, "H"))
    inputs = inputs_of(tensors)
    for policy in (Policy(forms={"*": FORM}), Policy(without=frozenset([FORM]))):
        program = lower("forward", inputs, tensors, policy)
        assert (program.choices[0].form == FORM) == (not policy.without)
        arrays = arrays_for(program)
        expected = interpret(tensors, {t: a for (_, t), a in zip(program.params, arrays, strict=True)})
        for value, meaning in zip(run(program, arrays), expected, strict=True):
            assert value.dtype == meaning.dtype
            np.testing.assert_allclose(value, meaning, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("stride", "pad", "groups", "dilation"), [(2, 1, 1, 1), (3, 0, 1, 1), (2, 2, 2, 3), ((3, 2), 1, 4, 1)]
)
def test_the_gradient_of_a_strided_convolution_is_that_of_jax(
    stride, pad: int, groups: int, dilation: int
) -> None:
    rng = np.random.default_rng(0)
    x, w = (
        jnp.asarray(rng.standard_normal(s), jnp.float32) for s in ((2, 4, 24, 25), (8, 4 // groups, 4, 5))
    )
    strides = (stride, stride) if isinstance(stride, int) else stride

    def plain(x, w):
        return lax.conv_general_dilated(
            x, w, strides, [(pad, pad)] * 2, rhs_dilation=(dilation,) * 2, feature_group_count=groups
        )

    fn = te.function(
        lambda x, w: te.ops.conv2d(x, w, strides=strides, padding=pad, groups=groups, dilation=dilation),
        forms={"*": FORM},
    )
    value, pullback = jax.vjp(plain, x, w)
    head = jnp.asarray(rng.standard_normal(value.shape), jnp.float32)
    found = jax.vjp(fn, x, w)[1](head)
    for a, b in zip(found, pullback(head), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    forms = {c.tensor: c.form for c in fn.explain(x, w).choices["backward"]}
    assert forms["dx"] == FORM


def test_large_images_of_few_channels_take_them_by_themselves() -> None:
    x, w, y = transposed(n=8, c=16, o=16, sizes=(64, 64), taps=(4, 4))
    told = te.explain([y])
    (choice,) = next(iter(told.choices.values()))
    assert choice.form == FORM
    hlo = jax.jit(te.function([x, w], y)).lower(*arrays_for(lower("f", [x, w], [y], Policy()))).as_text()
    assert hlo.count("stablehlo.convolution") == 4 and "lhs_dilate = [2" not in hlo


def test_classes_without_taps_are_refused() -> None:
    _, _, y = transposed(taps=(2,), up=3, pad=1)
    (choice,) = lower("f", inputs_of([y]), [y], Policy(forms={"*": FORM})).choices
    assert "no tap reaches" in dict(choice.refused)[FORM]
