"""Random definitions with each form forced on, and forced off: all of them are what the interpreter says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.bridge.module import load
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from jaxte.tensors.tensor import Tensor
from tests.agreement import assert_close, compiled_run, inputs_of, interpreted, pullback_of
from tests.random_definitions import Definition, definitions

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("x64")]
PLATFORMS = ("cpu", "gpu", "tpu")


def offered(tensors: list[Tensor], policy: Policy) -> set[str]:
    """The names of the forms that were there to choose from."""
    program = lower("forward", inputs_of(tensors), tensors, policy)
    return {e.form for choice in program.choices for e in choice.estimates}


def run(tensors: list[Tensor], feeds: Any, policy: Policy) -> list[np.ndarray]:
    inputs = inputs_of(tensors)
    program = lower("forward", inputs, tensors, policy)
    fn = load(module_text([program], "", "forced"), "forced", {})["forward"]
    results = compiled_run(fn, [feeds[t] for t in inputs], optimised=False)
    return list(results) if len(tensors) > 1 else [results]


def policies(tensors: list[Tensor], seed: int) -> list[Policy]:
    """Each form that a definition offers, forced on and off."""
    platform = PLATFORMS[seed % 3]
    forms = sorted(offered(tensors, Policy(platform)))
    found = [Policy(platform, forms={ANY: form}) for form in forms]
    found += [Policy(platform, without=frozenset([form])) for form in forms if len(forms) > 2]
    return found


def check_forms(definition: Definition) -> None:
    p = pullback_of(definition.output, definition.feeds(), definition.variables, definition.seed)
    tensors = [p.output, *(p.adjoints if p.variables else [])]
    chosen = policies(tensors, definition.seed)
    if not chosen:
        return
    expected = [interpreted(t, p.feeds) for t in tensors]
    for policy in chosen:
        found = run(tensors, p.feeds, policy)
        for tensor, value, meaning in zip(tensors, found, expected, strict=True):
            assert_close(value, meaning, f"{tensor.name} with {policy}")


def examples(quick: int, full: int) -> settings:
    return settings(max_examples=full if settings.default.max_examples >= 1000 else quick)


@examples(quick=30, full=700)
@given(definition=definitions(stages=(1, 2)))
def test_forms_of_random_definitions(definition: Definition) -> None:
    check_forms(definition)


def windowed(draw: st.DrawFn) -> Tensor:
    """A product, or one read, over windows with random strides, dilations, padding, channels and groups."""
    rank = draw(st.integers(1, 2))
    channels, groups, batch = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    sizes = [draw(st.integers(4, 9)) for _ in range(rank)]
    taps = [draw(st.integers(1, 4)) for _ in range(rank)]
    if rank == 1 and draw(st.booleans()):  # long enough for what is only offered for long kernels
        sizes, taps, channels, groups = [draw(st.integers(16, 40))], [draw(st.integers(5, 22))], 1, 1
    options = {name: [draw(st.integers(1, 3)) for _ in range(rank)] for name in ("strides", "dilation")}
    padding = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(rank)]
    sizes = [max(n, (k - 1) * d + 1) for n, k, d in zip(sizes, taps, options["dilation"], strict=True)]
    kind = draw(st.sampled_from(["conv", "conv", "sum", "count", "max", "min"]))
    dtype = "int32" if kind == "count" else "float64"
    x = te.placeholder((batch, channels * groups, *sizes), dtype, "X")
    if kind == "conv":
        w = te.placeholder((groups * draw(st.integers(1, 2)), channels, *taps), "float64", "W")
        conv = te.ops.conv1d if rank == 1 else te.ops.conv2d
        return conv(x, w, padding=padding, groups=groups, **options)
    return pooled(x, taps, padding, kind, **options)


def pooled(
    x: Tensor,
    taps: list[int],
    padding: list[tuple[int, int]],
    kind: str,
    strides: list[int],
    dilation: list[int],
) -> Tensor:
    own = [te.reduce_axis((0, k), f"k{n}") for n, k in enumerate(taps)]
    reduce = {"sum": te.sum, "count": te.sum, "max": te.max, "min": te.min}[kind]
    extents = [
        (n + a + b - (k - 1) * d - 1) // s + 1
        for n, (a, b), k, d, s in zip(x.shape[2:], padding, taps, dilation, strides, strict=True)
    ]

    def body(n: Any, c: Any, *t: Any) -> Any:
        places = [
            s * i + d * k - a for i, k, s, d, (a, _) in zip(t, own, strides, dilation, padding, strict=True)
        ]
        inside = te.const(True)
        for place, extent in zip(places, x.shape[2:], strict=True):
            inside = inside & (place >= 0) & (place < extent)
        return reduce(x[(n, c, *places)], axis=own, where=inside)

    return te.compute((*x.shape[:2], *extents), body, "Y")


@st.composite
def windows(draw: st.DrawFn) -> Definition:
    output = windowed(draw)
    return Definition(output, draw(st.integers(0, 2**16)))  # type: ignore[arg-type]


@examples(quick=25, full=400)
@given(definition=windows())
def test_forms_of_windows(definition: Definition) -> None:
    check_forms(definition)
