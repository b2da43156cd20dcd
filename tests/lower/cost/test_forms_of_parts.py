"""A form that is named for a tensor is that of the tensors that are made for it, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute


def window(x: Any, g: Any) -> te.Tensor:
    k, m = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "m")
    return te.compute((60, 60), lambda i, j: te.sum(g[k] * g[m] * x[i + k, j + m], axis=[k, m]), "y")


def inner(x: Any, g: Any) -> te.Tensor:
    k, m = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "m")
    rows = te.compute((60, 60, 5), lambda i, j, k: te.sum(x[i + k, j + m] * g[m], axis=m), "rows")
    return te.compute((60, 60), lambda i, j: te.max(rows[i, j, k], axis=k), "y")


STRUCTS = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((64, 64), (5,))]


def forms(build: Callable[..., te.Tensor], named: dict[str, str], side: str = "forward") -> dict[str, str]:
    report = te.function(build, forms=named).explain(*STRUCTS)
    assert set(report.unmet) <= {"elsewhere"}
    return {choice.tensor: choice.form for choice in report.choices[side]}


@pytest.mark.parametrize(
    ("build", "owner", "part"), [(window, "y", "y_over_k"), (inner, "rows", "rows_over_m")]
)
def test_a_form_reaches_partial_sums(build: Callable[..., te.Tensor], owner: str, part: str) -> None:
    free = forms(build, {})[part]
    other = "convolution" if free != "convolution" else "general"
    assert forms(build, {owner: other})[part] == forms(build, {"*": other})[part] != free
    assert forms(build, {owner: other, part: free})[part] == free
    assert forms(build, {"elsewhere": other})[part] == free


def test_a_form_of_an_adjoint_reaches_its_parts() -> None:
    free = forms(window, {}, "backward")
    part = next(name for name in free if name.startswith("dx_") or name.startswith("dy_over"))
    owner = part.split("_over")[0] if part.startswith("dx_") else part
    assert forms(window, {owner: "convolution"}, "backward")[part] == "convolution"


def test_parts_say_what_they_were_made_for() -> None:
    x, g = te.placeholder((64, 64), name="x"), te.placeholder((5,), name="g")
    for build, owner in ((window, "y"), (inner, "rows")):
        parts = [t for t in topological_order(planned([build(x, g)])) if isinstance(t, Compute)]
        assert {t.part_of for t in parts} == {owner, "y"}
