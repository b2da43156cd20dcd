"""``te.compare(f, *arrays)`` and its command: both sides are right in their dtypes, and what is counted is XLA's."""

from __future__ import annotations

import pickle

import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

import jaxte as te
from jaxte.__main__ import main
from jaxte.comparing import Comparison

matplotlib.use("Agg")


def energy(u: np.ndarray) -> jnp.ndarray:
    for _ in range(2):
        u = u + 0.1 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) - 2 * u)
    return jnp.sum(u**2)


def energies(u: np.ndarray, v: np.ndarray) -> jnp.ndarray:
    return energy(u) + energy(v)


doubled = te.function(lambda x: te.compute(x.shape, lambda i: 2 * x[i]))


def twice(x: np.ndarray) -> np.ndarray:
    return 2 * x


def thrice(x: np.ndarray) -> np.ndarray:
    return 3 * x


def test_a_function_beside_itself(rng: np.random.Generator) -> None:
    found = te.compare(energy, rng.normal(size=(32, 16)).astype("float32"))
    assert isinstance(found, Comparison)
    plain, own = found.sides
    assert (plain.name, own.name) == ("jax.grad", "jaxte")
    assert 0 < max(own.value, own.gradient) < 8 and own.gradient <= 2 * plain.gradient + 4
    assert own.flops > 0 and own.seconds > 0 and own.compile_seconds > 0 and found.speed > 0
    lines = str(found).splitlines()
    assert len(lines) == 3 and lines[0].split()[0] == "energy" and "ulp" in lines[1]
    assert found._repr_html_().count("<tr>") == 3
    shown = found.chart()
    assert len(shown.patches) == 5 and "jaxte / jax.grad" in shown.get_title()


def test_a_function_beside_a_reference(rng: np.random.Generator) -> None:
    """Trees of arguments, too; what is measured is asked for."""
    twice = te.function(lambda p, x: te.compute(x.shape, lambda i: 2 * x[i] * p["w"][()] ** 2, "twice"))
    p, x = {"w": np.float32(1.5)}, rng.normal(size=8).astype("float32")
    found = te.compare(twice, lambda p, x: 2 * x * p["w"] ** 2, p, x, order=2)
    assert found._repr_html_().count("<tr>") == 7 and "differs" not in found._repr_html_()
    plain, own = found.sides
    assert found.sides[0] is plain  # measured once
    lines = str(found).splitlines()
    assert lines[0].split() == ["relative", "largest", "allowed"] and lines[-3].split()[:2] == [
        "<lambda>",
        "value",
    ]
    assert "ulp" in lines[-1] and "order 2" in lines[-3]
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == str(found) and again.sides == found.sides
    assert (found.name, plain.name, own.name) == ("<lambda>", "reference", "jaxte")
    assert max(own.value, own.gradient, *own.higher) < 8 and len(own.higher) == 1 and own.seconds > 0
    assert "jaxte / reference" in found.chart().get_title()


def test_a_reference_that_jit_cannot_compile(rng: np.random.Generator) -> None:
    """Its values and gradients are compared all the same."""
    square = te.function(lambda x: te.compute(x.shape, lambda i: x[i] ** 2))
    found = te.compare(square, lambda x: x**2 if x[0] < 9 else x, rng.normal(size=3).astype("float32"))
    assert found.agrees and "Times are not measured: jax.jit cannot compile both" in str(found)
    integers = te.compare(square, lambda x: x**2, np.arange(3, dtype="int32"))  # without a gradient
    assert integers.agrees and "value" in str(integers)


def test_higher_orders(rng: np.random.Generator) -> None:
    found = te.compare(
        lambda u: jnp.sum(jnp.roll(u, 1) ** 2 * u), rng.normal(size=9).astype("float32"), order=3
    )
    assert all(len(side.higher) == 2 and max(side.higher) < 8 for side in found.sides)
    assert "order 2" in str(found) and "order 3" in str(found)
    with pytest.raises(te.ArgumentError, match="order is 0; give 1 for gradients"):
        te.compare(energy, np.ones((2, 2), "float32"), order=0)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(
        te.ArgumentError, match=r"energy is a jaxte function, of which jax.grad takes the derived"
    ):
        te.compare(te.function(energy), np.ones((2, 2), "float32"))
    for args in ([np.ones((2, 2), "int32")], [2.0], [{"a": 3}]):
        with pytest.raises(te.ArgumentError, match="none of the arguments is an array of floating point"):
            te.compare(energy, *args)
    ones = np.ones(2, "float32")
    with pytest.raises(
        te.ArgumentError, match=r"te\.compare takes a function and the arguments of a call, not str"
    ):
        te.compare("energy", ones)  # type: ignore[arg-type]
    with pytest.raises(te.JaxteError) as error:
        te.compare(jnp.sin, jnp.cos, ones)
    assert "or te.adjoint(f) of a JAX function f" in str(error.value)
    with pytest.raises(te.ArgumentError, match=r"'everthing'; did you mean everything=\?"):
        te.adjoint(jnp.sin, everthing=True)  # type: ignore[call-overload]
    with pytest.raises(te.ArgumentError, match=r"'kernel_size'; did you mean pool_size=\?"):
        te.ops.max_pool2d(np.ones((1, 1, 4, 4), "float32"), kernel_size=2)
    with pytest.raises(
        te.DefinitionError, match=r"te\.explain take a function with the arguments of a call, or T"
    ):
        te.source(ones)
    for call in (
        lambda: te.compare(lambda x, y: x * y, ones),
        lambda: te.compare(te.function(lambda x, y: x), lambda x, y: x, ones),
        lambda: te.compare(te.ops.softmax, lambda x, y: x, ones),
    ):
        with pytest.raises(
            te.ArgumentError, match=r"y\) is called with 1 argument: missing .* 'y'; give all"
        ):
            call()


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "tests.test_comparing:energy", "bfloat16[8,8]"]) == 0
    assert capsys.readouterr().out.startswith("energy")
    twice = ["compare", "tests.test_comparing:doubled", "f32[8]"]
    assert main([*twice, "--reference", "tests.test_comparing:twice"]) == 0
    assert "reference" in capsys.readouterr().out
    assert main([*twice, "--reference", "tests.test_comparing:thrice", "--order", "2"]) == 1
    assert "differs" in (out := capsys.readouterr().out) and "order 2" in out
    for words, message in (
        (twice, "of plain JAX as the second argument, here --reference module:function"),
        ([*twice, "--reference", "tests.test_comparing:twic"], "has no function twic; did you mean twice?"),
        ([*twice, "--reference", "tests.test_comparing:energies"], "(u, v) is called with 1 argument"),
        (["compare", "tests.test_comparing", "f32[8]"], "write module:function"),
        (["compare", "tests.test_comparing:enrgy", "f32[8]"], "has no function enrgy; did you mean energy?"),
        (["compare", "tests.test_compared:energy", "f32[8]"], "the module is looked up in this folder"),
        (["compare", "tests.test_comparing:energy", "f32[8]", "f32[8]"], "called with 2 arguments: too many"),
        (["compare", "tests.test_comparing:energy", "q8[8]"], "f16, bf16, f32, f64, c64, i32"),
        (["compare", "tests.test_comparing:energy", "f32(8)"], "write its dtype and shape"),
    ):
        with pytest.raises(SystemExit):
            main(words)
        assert message in capsys.readouterr().err


def test_a_raised_function_beside_another(rng: np.random.Generator) -> None:
    u = rng.normal(size=(8, 4)).astype("float32")
    report = te.compare(te.adjoint(energy), lambda u: energy(u) + 0.0, u)
    assert [(d.what, d.name) for d in report.differences] == [("value", "result"), ("gradient", "u")]
    with pytest.raises(AssertionError, match="energy and its reference disagree"):
        te.compare(te.adjoint(energy), lambda u: 2 * energy(u), u)
