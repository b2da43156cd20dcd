"""Definitions, their array programs and their modules have one meaning, forward and backward; a fault names its stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings

import jaxte as te
from jaxte.lower.arrays import products, views
from jaxte.lower.arrays.products import Cumulative
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.forms.scan import candidates
from jaxte.lower.printing import printer
from jaxte.tensors.tensor import Compute, Tensor
from tests.choices import Seeded
from tests.lower.tiles.test_tiles import KERNELS
from tests.random_definitions import Definition, definition
from tests.random_windows import windowed
from tests.stages import FORMS, TEXT, Pass, check_stages

pytestmark = pytest.mark.usefixtures("x64")
PLATFORMS = ("cpu", "gpu", "tpu")
LONG = settings.default.max_examples >= 1000


def forms_of(own: Pass) -> list[str]:
    """What there was to choose from."""
    choices = [c for program in own.graph.programs for c in program.choices]
    return sorted({e.form for c in choices for e in c.estimates})


@pytest.mark.parametrize("seed", range(1000 if LONG else 8))
def test_three_meanings_of_random_definitions(seed: int) -> None:
    drawn = definition(Seeded(seed))
    check_stages(Pass(drawn.output, drawn.feeds(), Policy(PLATFORMS[seed % 3])))


@pytest.mark.parametrize("first", range(0, 20_000 if LONG else 40, 20))
def test_nodes_of_random_definitions(first: int) -> None:
    """Without a compilation, which most of the time goes into."""
    for seed in range(first, first + 20):
        drawn = definition(Seeded(f"nodes {seed}"))
        check_stages(Pass(drawn.output, drawn.feeds(), Policy(PLATFORMS[seed % 3])), compile_too=False)


@pytest.mark.parametrize("seed", range(1000 if LONG else 8))
def test_nodes_of_random_windows_in_every_form(seed: int) -> None:
    """Convolutions with groups, strides, dilations and padding, pools, and their derivatives."""
    output = windowed(Seeded(seed))
    feeds, platform = Definition(output, seed).feeds(), PLATFORMS[seed % 3]  # type: ignore[arg-type]
    for form in forms_of(Pass(output, feeds, Policy(platform))):
        check_stages(Pass(output, feeds, Policy(platform, forms={ANY: form})), compile_too=False)


def prefix_of(reducer: Callable[..., Any]) -> Callable[[Tensor], Compute]:
    def build(x: Tensor) -> Compute:
        k = te.reduce_axis((0, x.shape[1]), "k")
        return te.compute(x.shape, lambda i, j: reducer(x[i, k], axis=k, where=k <= j), "P")

    return build


def growth(x: Tensor) -> Compute:
    """Compositions of affine maps, which do not commute."""
    maps = te.comm_reducer(
        lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), lambda s, t: (te.const(1, s), te.const(0, t)), "maps"
    )
    k = te.reduce_axis((0, x.shape[1]), "k")
    body = lambda i, j: maps((x[i, k] * 0.5, x[i, k] + 1.0), axis=k, where=k <= j)[1]  # noqa: E731
    return te.compute(x.shape, body, "G")


SCANS = {"sum": prefix_of(te.sum), "max": prefix_of(te.max), "prod": prefix_of(te.prod), "maps": growth}


@pytest.mark.parametrize("name", SCANS)
def test_nodes_of_scans_in_every_form(name: str) -> None:
    output = SCANS[name](te.placeholder((3, 9), "float64", "X"))
    feeds = Definition(output, 5).feeds()
    forms = forms_of(Pass(output, feeds))
    assert len(forms) > 1
    for form in forms:
        check_stages(Pass(output, feeds, Policy(forms={ANY: form})), compile_too=False)


@pytest.mark.parametrize("name", KERNELS)
def test_nodes_of_tiles(name: str) -> None:
    x, y, b = (te.placeholder(s, "float64", n) for s, n in (((7, 2), "x"), ((5, 2), "y"), ((5,), "b")))
    output = KERNELS[name](x, y, b)
    feeds = Definition(output, 3).feeds()  # type: ignore[arg-type]
    own = Pass(output, feeds, Policy(max_memory=150))
    assert any("tiles of" in c.form for program in own.graph.programs for c in program.choices)
    check_stages(own, compile_too=name in ("energy", "attention"))


# --- faults


def total(x: Tensor) -> Compute:
    k = te.reduce_axis((0, x.shape[0]), "k")
    return te.compute(x.shape, lambda i: te.sum(x[k], axis=k, where=k <= i), "T")


def convolved(x: Tensor) -> Compute:
    y = te.placeholder((4,), "float64", "W")
    k = te.reduce_axis((0, 4), "k")
    return te.compute((x.shape[0] - 3,), lambda i: te.sum(x[i + k] * y[k], axis=k), "C")


def stage_of(build: Callable[[Tensor], Compute], form: str) -> str:
    """Where the fault is."""
    output = build(te.placeholder((9,), "float64", "X"))
    try:
        check_stages(Pass(output, Definition(output, 1).feeds(), Policy(forms={ANY: form})))
    except AssertionError as error:
        return next(stage for stage in (FORMS, TEXT) if stage in str(error))
    return ""


def test_a_fault_in_a_form_is_found_between_definitions_and_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not stage_of(total, "scan")

    def backwards(spec: Any, scan: Any, values: Any) -> Cumulative:
        return Cumulative(spec.reducer.name, values[0], scan.axis, not scan.reverse)

    monkeypatch.setattr(candidates, "cumulative", backwards)
    assert stage_of(total, "scan") == FORMS


FAULTS = {
    "scan": (total, products.Cumulative, lambda node: replace(node, reverse=not node.reverse)),
    "convolution": (
        convolved,
        products.Convolution,
        lambda node: replace(node, lhs=views.Flip(node.lhs, (2,))),
    ),
}


@pytest.mark.parametrize("form", FAULTS)
def test_a_fault_of_the_printer_is_found_between_nodes_and_text(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, kind, other = FAULTS[form]
    assert not stage_of(build, form)
    right = printer.RULES[kind]
    monkeypatch.setitem(printer.RULES, kind, lambda node, to: right(other(node), to))  # type: ignore[misc]
    assert stage_of(build, form) == TEXT
