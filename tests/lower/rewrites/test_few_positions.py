"""Reductions over a few positions of what is larger than its operands are written out: one loop, nothing kept."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from tests.lowered import arrays_for, check, program_of, run, sources, text_of
from tests.xla_counts import Fused

A = te.placeholder((7, 3), name="A")
B = te.placeholder((5, 3), name="B")
REDUCERS = {"min": te.min, "max": te.max, "prod": te.prod}


def distances(reducer: Any, a: Any = A, b: Any = B, where: bool = False) -> Any:
    e = te.reduce_axis((0, a.shape[1]), "e")

    def body(i: Any, j: Any) -> Any:
        extra = {"where": e <= i} if where else {}
        return reducer(te.abs(a[i, e] - b[j, e]) * a[i, 0], axis=e, **extra)

    return te.compute((a.shape[0], b.shape[0]), body, "Y")


@pytest.mark.parametrize("where", [False, True])
@pytest.mark.parametrize("name", REDUCERS)
def test_each_position_is_an_expression(name: str, where: bool) -> None:
    Y = distances(REDUCERS[name], where=where)
    check(Y)
    assert not any(f"jnp.{name}(" in source for source in sources(Y))


@pytest.mark.parametrize("reducer", [te.any, te.all])
def test_conditions(reducer: Any) -> None:
    e = te.reduce_axis((0, 3), "e")
    Y = te.compute((7, 5), lambda i, j: reducer(A[i, e] < B[j, e], axis=e), "Y")
    check(Y)
    assert not any("jnp.any(" in source or "jnp.all(" in source for source in sources(Y))


def test_two_short_axes() -> None:
    C, D = te.placeholder((6, 2, 3), name="C"), te.placeholder((4, 2, 3), name="D")
    e, d = te.reduce_axis((0, 2), "e"), te.reduce_axis((0, 3), "d")
    check(te.compute((6, 4), lambda i, j: te.max(te.abs(C[i, e, d] - D[j, e, d]), axis=[e, d]), "Y"))


def test_nothing_is_reduced_and_nothing_large_is_kept() -> None:
    a, b = te.placeholder((300, 3), name="A"), te.placeholder((200, 3), name="B")
    Y = distances(te.min, a, b)
    namespace: dict[str, Any] = {}
    exec(text_of(Y), namespace)
    code = Fused(jax.jit(namespace["forward"]).lower(*arrays_for(program_of(Y))))
    assert " reduce(" not in code.as_text()
    assert code.memory_analysis().temp_size_in_bytes < 4 * 300 * 200


def test_what_is_larger_than_the_cache_needs_no_tiles() -> None:
    a, b = te.placeholder((2000, 3), name="A"), te.placeholder((1500, 3), name="B")
    assert "lax.map" not in te.source(distances(te.min, a, b))


def test_nan_is_kept() -> None:
    Y = distances(te.min)
    program = program_of(Y)
    arrays = arrays_for(program)
    arrays[0][2, 1] = np.nan
    (found,) = run(program, arrays)
    assert np.isnan(found[2]).all() and not np.isnan(np.delete(found, 2, 0)).any()


@pytest.mark.parametrize("length", [3, 5])
def test_other_reductions_are_left_to_jax(length: int) -> None:
    X, Z = te.placeholder((7, length), name="X"), te.placeholder((4, length), name="Z")
    e = te.reduce_axis((0, length), "e")
    rows = te.compute((7,), lambda i: te.min(te.abs(X[i, e]), axis=e), "Y")
    check(rows)
    assert "jnp.min(" in text_of(rows)
    if length > 4:
        assert "jnp.min(" in text_of(distances(te.min, X, Z))


@pytest.mark.parametrize(("positions", "written"), [(4, True), (8, False)])
def test_several_products_of_matrices_are_few_terms_or_products(positions: int, written: bool) -> None:
    """The real part of a product of complex matrices: twice as many terms as there are positions."""
    a, b, c, d = (
        te.placeholder((64, n, positions), name=s) for s, n in zip("abcd", (36, 200, 36, 200), strict=True)
    )
    k = te.reduce_axis((0, positions), "k")
    body = lambda f, i, j: te.sum(a[f, i, k] * b[f, j, k] - c[f, i, k] * d[f, j, k], axis=k)  # noqa: E731
    Y = te.compute((64, 36, 200), body, "Y")
    assert ("einsum" not in text_of(Y)) == written
