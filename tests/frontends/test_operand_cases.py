"""Every raised primitive over dtypes, shapes and parameters: values and what flows back, beside JAX.

Cases are drawn by seeds. A hundred and twenty run in `make test`, 3,480 with JAXTE_HYPOTHESIS=full.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings

import jaxte as te
from tests.frontends.operand_cases import FAMILIES, Case, case

TOGETHER = len(FAMILIES)  # cases of one program: one of each family
PROGRAMS = 120 if settings.default.max_examples >= 1000 else 4
DIGITS = {"float64": 1e-11, "float32": 2e-5, "float16": 1e-2, "bfloat16": 8e-2}


def is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def results(function: Any, args: Sequence[Any]) -> list[Any]:
    """Values, and what flows back from random heads to the arguments that are floats."""
    moving = [n for n, x in enumerate(args) if is_float(x)]

    def both(*args: Any) -> Any:
        def of_moving(*own: Any) -> Any:
            filled = list(args)
            for n, x in zip(moving, own, strict=True):
                filled[n] = x
            made = function(*filled)
            return [x for x in made if is_float(x)], [x for x in made if not is_float(x)]

        values, pull, others = jax.vjp(of_moving, *(args[n] for n in moving), has_aux=True)
        rng = np.random.default_rng(0)
        heads = [jnp.asarray(rng.integers(-3, 4, v.shape)).astype(v.dtype) for v in values]
        return values, others, pull(heads)

    return jax.tree.leaves(jax.jit(both)(*args))


def together(cases: Sequence[Case]) -> Any:
    """One function of the arguments of all cases."""

    def function(*flat: Any) -> Any:
        rest, made = list(flat), []
        for own in cases:
            args, rest = rest[: len(own.args)], rest[len(own.args) :]
            made += jax.tree.leaves(own.function(*args))
        return made

    return function, [jnp.asarray(x) for own in cases for x in own.args]


def check(cases: Sequence[Case]) -> None:
    function, args = together(cases)
    raised = te.adjoint(function, everything=True)
    found, expected = results(raised, args), results(function, args)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        digits = DIGITS.get(str(a.dtype), 0)
        np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=digits, atol=digits)


# what stays of what has a rule, and why: integers have no derivative, and of such windows JAX says what no index says
KEPT = {
    "abs of integers",
    "sign of integers",
    "square of integers",
    "powers of integers, which wrap",
    "integers divided towards zero",
    "remainders of integers towards zero",
    "floats cast to integers, which saturate",
    "windows of nothing",
    "windows that lie in the padding as a whole",
    "positions outside of the array",
    "positions that follow no index expression",
}


@pytest.mark.parametrize("program", range(PROGRAMS // 4))
def test_every_case_is_raised(program: int) -> None:
    for seed in range(program * TOGETHER, (program + 1) * TOGETHER):
        own = case(seed)
        with jax.enable_x64(True):
            raised = te.adjoint(own.function, everything=True)
            kept = raised.explain(*map(jnp.asarray, own.args)).kept
        assert not {line.reason for line in kept} - KEPT, own.name


@pytest.mark.parametrize("program", range(PROGRAMS))
def test_values_and_adjoints_are_those_of_jax(program: int) -> None:
    cases = [case(seed) for seed in range(program * TOGETHER, (program + 1) * TOGETHER)]
    with jax.enable_x64(True):
        try:
            check(cases)
        except Exception:
            for own in cases:  # which one
                try:
                    check([own])
                except Exception as error:
                    raise AssertionError(own.name) from error
            raise
