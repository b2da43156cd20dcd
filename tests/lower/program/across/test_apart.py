"""An array that a call keeps apart is read by that call alone: XLA writes over arrays that are read both themselves and through one."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.sides import with_gradients
from jaxte.lang.limits import LARGE_RESULT
from jaxte.lower.program import prelude
from tests.frontends.random_rules import RandomRules, check_rules

FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "softplus": (lambda x: te.log1p(te.exp(x)), lambda x: jnp.log1p(jnp.exp(x))),
    "root": (lambda x: te.sqrt(te.exp(x) + x * x + 1), lambda x: jnp.sqrt(jnp.exp(x) + x * x + 1)),
    "wave": (lambda x: te.tanh(te.sin(x) * x) + 2 * x, lambda x: jnp.tanh(jnp.sin(x) * x) + 2 * x),
}


def program(seed: int, longer: int = 0) -> Any:
    """A function of one array in which a stencil of a costly function stands beside the same function, written out by its user."""
    own = np.random.default_rng(seed)
    ours, theirs = FUNCTIONS[sorted(FUNCTIONS)[seed % len(FUNCTIONS)]]
    n = int(own.integers(7, 40)) + longer
    shifts = sorted({int(s) for s in own.integers(1, n, size=3)})

    @te.function
    def stencil(x: Any) -> Any:
        v = te.compute((n,), lambda i: ours(x[i]), "v")
        return te.compute((n,), lambda i: sum(v[(i + s) % n] * (s + 1) for s in shifts) * x[i], "y")

    def both(x: Any) -> Any:
        return 1.5 * theirs(x) + stencil(x)

    def expected(x: Any) -> Any:
        v = theirs(x)
        return 1.5 * v + sum(jnp.roll(v, -s) * (s + 1) for s in shifts) * x

    x = jnp.asarray(own.normal(size=n))
    return stencil, both, expected, x


def read_twice(hlo: str) -> list[str]:
    """The operands of calls that are not inlined which something else reads, too."""
    found = []
    for own in hlo.split("\n\n"):
        calls = re.findall(r' call\((%[\w.-]+)\)[^\n]*inlineable="false"', own)
        found += [name for name in calls if len(re.findall(rf"[ (]{re.escape(name)}[,)]", own)) > 1]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_it_is_read_by_the_call_alone(seed: int) -> None:
    stencil, both, expected, x = program(seed, longer=LARGE_RESULT)
    assert "v = _apart(" in stencil.source(x)
    compiled = jax.jit(both).lower(x).compile()
    assert 'inlineable="false"' in compiled.as_text() and not read_twice(compiled.as_text())
    wanted = np.asarray(expected(x))  # of terms that may cancel
    np.testing.assert_allclose(compiled(x), wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())


def leapfrog(steps: int) -> Any:
    """So many steps of a field and its velocity, each of a stencil of the other."""

    def build(u: te.Tensor, v: te.Tensor) -> te.Tensor:
        n = u.shape[0]
        for _ in range(steps):
            bend = lambda i, u=u: u[te.minimum(i + 1, n - 1)] - 2 * u[i] + u[te.maximum(i - 1, 0)]  # noqa: E731
            v = te.compute((n,), lambda i, v=v, bend=bend: v[i] + te.tanh(bend(i)), "v")
            u = te.compute((n,), lambda i, u=u, v=v: u[i] + 0.1 * v[i], "u")
        return u

    return build


@pytest.mark.parametrize(("steps", "are_copied"), [(3, False), (9, True)])
def test_short_lines_are_copied_by_many_calls(steps: int, are_copied: bool) -> None:
    """A call that computes nothing depends on nothing: XLA begins with all of them, and hands more than eight to other threads."""
    own = np.random.default_rng(0)
    u, v = (own.normal(size=600).astype("float32") for _ in range(2))
    both = with_gradients(te.function(leapfrog(steps)), (0, 1))
    text = jax.jit(both).lower([u], u, v).compile().as_text()
    called = re.findall(r' call\([^\n]*to_apply=(%[\w.-]+)[^\n]*inlineable="false"', text)
    left = [name for name in called if not computes(text, name)]
    assert called and (len(left) < len(called)) is are_copied and len(left) <= 8


def computes(hlo: str, name: str) -> bool:
    """Whether the computation ``name`` gives more than its operand."""
    (own,) = [part for part in hlo.split("\n\n") if part.startswith(f"{name} (")]
    (result,) = re.findall(r"ROOT [^\n]*", own)
    return "fusion(" in result or "reduce-precision(" in result


def test_what_one_rule_writes_out_and_another_keeps() -> None:
    """Two elements of the gradient were others: XLA had found the same expression in both."""
    with jax.enable_x64(True):
        check_rules(RandomRules(700184), everything=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int32", "uint8", "bool"])
def test_an_array_of_its_own_has_the_same_bits(dtype: str) -> None:
    stencil, _, _, x = program(0)
    scope: dict[str, Any] = {}
    exec(stencil.source(x), scope)  # of real numbers alone
    if "float" not in dtype:
        exec(
            prelude._FIRST + prelude._APART.format(own="_own(x)", short=LARGE_RESULT // 2) + prelude._OWN,
            scope,
        )
    values = [0, 1, -1, 3, 255, 1e-8, 1e30, np.inf, -np.inf, np.nan]
    given = jnp.asarray(values).astype(dtype)
    found = jax.jit(scope["_apart"])(given)
    assert found.dtype == given.dtype
    np.testing.assert_array_equal(np.asarray(found).view(np.uint8), np.asarray(given).view(np.uint8))
