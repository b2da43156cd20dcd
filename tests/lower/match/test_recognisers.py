"""Random reductions: whatever a recogniser offers has to mean what the definition means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jaxte.lang.expr import TRUE, Axis, Expr, Reduce
from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.conv.write import convolution_source
from jaxte.lower.forms.scan.recognise import recognise_scan
from jaxte.lower.forms.scan.write import scan_source
from jaxte.lower.forms.window.recognise import UnrollSpec, recognise_window
from jaxte.lower.forms.window.write import DOUBLING, REDUCE_WINDOW, SEPARABLE, SLICES, window_source
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.inputs import placeholder
from jaxte.tensors.reductions import reduce_axis
from jaxte.tensors.tensor import Compute
from tests.emitted import Steps, check, feeds, nodes, text_of
from tests.lowered import recognise_convolution

small = st.integers(-2, 3)
Index = Callable[[Expr, Expr], Expr]


@st.composite
def indices(draw: Any) -> Index:
    """An index of an output axis and a reduced one, quasi-affine now and then."""
    a, b, c, m = draw(small), draw(small), draw(st.integers(-3, 8)), draw(st.integers(2, 3))
    match draw(st.sampled_from(["affine", "affine", "affine", "floor", "mod", "both"])):
        case "floor":
            return lambda t, z: (t + c) // m + b * z
        case "mod":
            return lambda t, z: (t + c) % m + a * z
        case "both":
            return lambda t, z: (t + c) // m + b * z + (t + c) % m
    return lambda t, z: a * t + b * z + c


@st.composite
def conditions(draw: Any) -> Index:
    a, b, c = draw(st.integers(-2, 2)), draw(st.integers(-2, 2)), draw(st.integers(-4, 8))
    match draw(st.sampled_from(["none", "none", "less", "equal", "mod"])):
        case "less":
            return lambda t, z: a * t + b * z < c
        case "equal":
            return lambda t, z: a * t + b * z != c
        case "mod":
            return lambda t, z: (t + c) % 2 == 0
    return lambda t, z: TRUE


def inside(*pairs: tuple[Expr, int]) -> Expr:
    condition = TRUE
    for index, extent in pairs:
        condition = condition & (index >= 0) & (index < extent)
    return condition


def verify(tensor: Compute, recognise: Callable[..., Any], source: Callable[..., Any]) -> None:
    assert isinstance(tensor.body, Reduce)
    spec = recognise(tensor.axes, tensor.body)
    if isinstance(spec, (Refusal, UnrollSpec)):
        return
    rng = np.random.default_rng(0)
    leaves: Sequence[Any] = tensor.inputs
    arrays = feeds(rng, *leaves)
    if recognise is not recognise_window:
        check(tensor, text_of(source(spec, nodes(spec))), spec, arrays, 1e-3)
        return
    for form in (SLICES, SEPARABLE, DOUBLING, REDUCE_WINDOW):
        steps = Steps()
        source(spec, nodes(spec), "Y", steps, form)
        check(tensor, steps.lines, spec, arrays, 1e-3)


@given(indices(), indices(), conditions(), st.integers(1, 7), st.integers(1, 4))
def test_products(x: Index, k: Index, extra: Index, length: int, taps: int) -> None:
    X, W, z = placeholder((2, 7), name="X"), placeholder((2, 4), name="W"), reduce_axis((0, taps), "z")

    def body(n: Expr, o: Expr, t: Axis) -> Expr:
        here = inside((x(t, z), 7), (k(t, z), 4)) & extra(t, z)
        return r.sum(X[n, x(t, z)] * W[o, k(t, z)], z, where=here)

    verify(compute((2, 2, length), body), recognise_convolution, convolution_source)


@given(indices(), conditions(), st.integers(1, 7), st.integers(1, 6), st.sampled_from([r.sum, r.max, r.prod]))
def test_single_arrays(x: Index, extra: Index, length: int, taps: int, reducer: Callable[..., Any]) -> None:
    X, z = placeholder((2, 7), name="X"), reduce_axis((0, taps), "z")

    def body(t: Axis, n: Expr) -> Expr:
        return reducer(X[n, x(t, z)], z, where=inside((x(t, z), 7)) & extra(t, z))

    tensor = compute((length, 2), body)
    verify(tensor, recognise_window, window_source)
    verify(tensor, recognise_scan, scan_source)


@given(conditions(), conditions(), st.integers(1, 9), st.integers(0, 2))
def test_prefixes(first: Index, second: Index, length: int, start: int) -> None:
    X, j = placeholder((7,), name="X"), reduce_axis((start, 7), "j")
    tensor = compute((length,), lambda i: r.max(X[j], j, where=first(i, j) & second(i, j)))
    verify(tensor, recognise_scan, scan_source)
    verify(tensor, recognise_window, window_source)
