"""Definitions that are equal up to names are lowered once; the text is what it is when each is lowered by itself."""

from __future__ import annotations

from typing import Any

import pytest

import jaxte as te
from jaxte.lower.program import part, repeated
from jaxte.lower.program.plan import lower
from jaxte.tensors.structure import structure_of
from jaxte.tensors.tensor import Compute
from tests.loop_steps import Step, heat

N = 12


def named_by_step(u: te.Tensor, step: int) -> te.Tensor:
    k = te.reduce_axis((0, 3), "k")
    return te.compute(
        (N, N),
        lambda i, j: te.exp(te.sum(u[i, j + k - 1], axis=k, where=(j + k >= 1) & (j + k <= N))),
        f"v{step}",
    )


def guarded(u: te.Tensor, step: int) -> te.Tensor:
    def element(i: Any, j: Any) -> te.Expr:
        return u[i, j] + te.select(i > 0, u[i - 1, j], 0.0) - te.select(j < N - 1, te.sin(u[i, j + 1]), 1.0)

    return te.compute((N, N), element, "u")


def rows(u: te.Tensor, step: int) -> te.Tensor:
    k = te.reduce_axis((0, N), "k")
    return te.compute((N, N), lambda i, j: te.max(u[i, k], axis=k) * u[i, j], "w")


def looped(step: Step, count: int) -> tuple[te.Tensor, te.Tensor]:
    x = u = te.placeholder((N, N), name="x")
    for n in range(count):
        u = step(u, n)
    return x, u


@pytest.mark.parametrize("step", [heat, named_by_step, guarded, rows])
def test_a_loop_of_steps_is_lowered_a_few_times(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    x, u = looped(step, 14)
    bodies: list[Compute] = []

    def counted(own: Any, shared: Any, tensor: Compute) -> Any:
        bodies.append(tensor)
        return plan_lower(own, shared, tensor)

    plan_lower = part.lower_tensor
    monkeypatch.setattr(part, "lower_tensor", counted)
    head = te.placeholder((N, N), name="H")
    dx = te.differentiate(u, None, head).adjoints[x]  # step by step, and no loop
    together = lower("f", [x, head], [u, dx])
    few = len(bodies)
    assert few <= 0.6 * len(together.choices)
    monkeypatch.setattr(repeated, "structure_of", lambda tensor: None)
    apart = lower("f", [x, head], [u, dx])
    assert len(bodies) == few + len(apart.choices)
    text = [(s.target, apart.printer.text(s.source)) for s in apart.statements if hasattr(s, "source")]
    assert text == [
        (s.target, together.printer.text(s.source)) for s in together.statements if hasattr(s, "source")
    ]
    assert [str(c.verdict) for c in together.choices] == [str(c.verdict) for c in apart.choices]
    assert [(c.tensor, c.form, c.refused) for c in together.choices] == [
        (c.tensor, c.form, c.refused) for c in apart.choices
    ]


def test_structures_tell_what_is_not_equal() -> None:
    x, y = te.placeholder((8,), name="x"), te.placeholder((8,), "float64", name="y")
    k = te.reduce_axis((0, 3), "k")

    def sums(u: te.Tensor, start: int, where: bool) -> te.Tensor:
        return te.compute(
            (5,), lambda i: te.sum(u[i + k + start], axis=k, where=(i > k) if where else None), "s"
        )

    alike = [structure_of(t) for t in (sums(x, 0, False), sums(te.placeholder((8,), name="z"), 0, False))]
    assert alike[0] == alike[1]
    others = [sums(y, 0, False), sums(x, 1, False), sums(x, 0, True), te.compute((5,), lambda i: x[i], "s")]
    assert all(structure_of(t) != alike[0] for t in others)
    known = te.placeholder((8,), "int32", name="p")
    known.with_facts([te.facts.sorted()])
    assert structure_of(te.compute((8,), lambda i: x[known[i]], "g")) is None
