"""tune=: regions are taken and left by what whole programs take; here by a clock that says what each primitive costs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte.frontends.jaxpr import tune


def pooled(u: Any) -> Any:
    v = jnp.cumsum(u, 0) @ u
    return jnp.sum(lax.reduce_window(v, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2)


@pytest.fixture
def u(rng: np.random.Generator) -> Any:
    return jnp.asarray(rng.normal(size=(36, 36)), "float32")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what a program costs more, or less, for each raised primitive."""

    def set_costs(**costs: float) -> None:
        def cost(entry: Any) -> float:
            raised = {
                e.eqn.params.get("name", str(e.eqn.primitive))
                for r in entry.plan.regions
                for e in r.equations
            }
            return 10 + sum(costs.get(name, 0) for name in raised)

        monkeypatch.setattr(tune._Race, "against", lambda self, a, b: (cost(a), cost(b)))

    return set_costs


def reasons(report: Any) -> str:
    return " ".join(str(line) for region in report.regions for line in region.lines)


def test_a_region_that_is_slower_is_left(u: Any, clock: Callable[..., None]) -> None:
    clock(cumsum=-5, reduce_window_max=1)
    raised = te.adjoint(pooled, tune=(u,))
    report = te.explain(raised, u)
    assert "cumsum" in reasons(report) and "reduce_window_max" not in reasons(report)
    assert any(line.reason == "slower raised, as measured" for line in report.kept)
    assert report.measured.factor == 2 and report.regions[0].measured == 2
    assert "2.00 times as fast" in str(report)
    np.testing.assert_allclose(jax.grad(raised)(u), jax.grad(pooled)(u), rtol=1e-4, atol=1e-2)


def test_what_the_estimate_leaves_is_tried(u: Any, clock: Callable[..., None]) -> None:
    clock(dot_general=-4)
    assert "dot_general" not in reasons(te.explain(te.adjoint(pooled), u))
    raised = te.adjoint(pooled, tune=(u,))
    assert "dot_general" in reasons(te.explain(raised, u))
    np.testing.assert_allclose(jax.grad(raised)(u), jax.grad(pooled)(u), rtol=1e-4, atol=1e-2)


def test_where_nothing_is_faster_the_function_itself_is_called(u: Any, clock: Callable[..., None]) -> None:
    clock(cumsum=1, reduce_window_max=1, dot_general=1)
    raised = te.adjoint(tune=(u,))(pooled)
    assert str(jax.make_jaxpr(jax.grad(raised))(u)) == str(jax.make_jaxpr(jax.grad(pooled))(u))


def test_other_shapes_run_by_estimate(u: Any, clock: Callable[..., None]) -> None:
    clock(cumsum=1, reduce_window_max=1, dot_general=1)
    raised, other = te.adjoint(pooled, tune=(u,)), jnp.tile(u, (2, 2))
    assert not te.explain(raised, u).regions
    assert te.explain(raised, other).regions and te.explain(raised, other).measured is None


def test_bodies_of_loops_are_measured_too(u: Any, clock: Callable[..., None]) -> None:
    def looped(u: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.cumsum(c, 1) / 36, jnp.sum(pooled(c))), u, None, 2)[1].sum()

    clock(cumsum=-5, reduce_window_max=1)
    found = reasons(te.explain(te.adjoint(looped, tune=(u,)), u))
    assert "cumsum" in found and "reduce_window_max" not in found


def test_clocks_run(u: Any) -> None:
    measured = te.explain(te.adjoint(pooled, tune=(u,)), u).measured
    assert measured.original > 0 and measured.raised > 0 and measured.programs >= 2


def test_the_first_call_measures_by_itself_and_once(
    u: Any, clock: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(cumsum=-5, reduce_window_max=1)
    gradient = te.grad(pooled, tune="first call")
    np.testing.assert_allclose(gradient(u), jax.grad(pooled)(u), rtol=1e-4, atol=1e-2)
    monkeypatch.delattr(tune, "_Race")  # from now on nothing can be measured
    np.testing.assert_allclose(gradient(2 * u), jax.grad(pooled)(2 * u), rtol=1e-4, atol=1e-2)
    report = te.explain(gradient, u)
    assert report.measured.factor == 2 and "reduce_window_max" not in reasons(report)


def test_the_first_call_measures_within_jit(u: Any, clock: Callable[..., None]) -> None:
    clock(cumsum=-5, reduce_window_max=1)
    gradient = te.value_and_grad(pooled, tune="first call")
    np.testing.assert_allclose(jax.jit(gradient)(u)[1], jax.grad(pooled)(u), rtol=1e-4, atol=1e-2)
    assert te.explain(gradient, u).measured.factor == 2


def test_what_was_measured_is_taken_from_a_file(
    u: Any, clock: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    clock(cumsum=-5, reduce_window_max=1)
    file = tmp_path / "tuning.json"
    te.grad(pooled, tune="first call", tuning_file=file)(u)
    monkeypatch.delattr(tune, "_Race")
    again = te.grad(lambda u: pooled(u), tune="first call", tuning_file=file)
    np.testing.assert_allclose(again(u), jax.grad(pooled)(u), rtol=1e-4, atol=1e-2)
    report = te.explain(again, u)
    assert report.measured.factor == 2 and "reduce_window_max" not in reasons(report)
    assert te.load_tuning(file)


def test_a_file_without_a_first_call_is_refused(tmp_path: Any) -> None:
    with pytest.raises(te.ArgumentError, match='is for tune="first call"'):
        te.grad(jnp.sum, tuning_file=tmp_path / "tuning.json")
    with pytest.raises(te.ArgumentError, match=r"whose forms te\.autotune measures"):
        te.grad(te.function(lambda x: te.compute((), lambda: x[0], "y")), tune="first call")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (jnp.ones(3), r"as a tuple, \(x,\) for one"),
        ((jax.ShapeDtypeStruct((3,), "float32"),), "takes the arrays of a call"),
    ],
)
def test_what_is_no_call_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(te.ArgumentError, match=message):
        te.adjoint(jnp.sum, tune=arguments)
