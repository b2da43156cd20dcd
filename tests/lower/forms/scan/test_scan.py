"""Prefix and suffix reductions as cumulative ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.lang import functions as f
from jaxte.lang.expr import Expr, Reduce
from jaxte.lang.text import text
from jaxte.lower.code.spec import Refusal
from jaxte.lower.forms.scan.recognise import recognise_scan
from jaxte.lower.forms.scan.write import scan_source
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.inputs import placeholder, var
from jaxte.tensors.reductions import reduce_axis
from jaxte.tensors.tensor import Compute, Tensor
from tests.emitted import check, feeds, nodes, text_of

X = placeholder((3, 7), name="X")
j = reduce_axis((0, 7), "j")


def verify(tensor: Compute, arrays: dict[Tensor, np.ndarray]) -> str:
    assert isinstance(tensor.body, Reduce)
    spec = recognise_scan(tensor.axes, tensor.body)
    assert not isinstance(spec, Refusal), spec.reason
    source = text_of(scan_source(spec, nodes(spec)))
    check(tensor, source, spec, arrays)
    return source


def refused(tensor: Compute) -> str:
    assert isinstance(tensor.body, Reduce)
    spec = recognise_scan(tensor.axes, tensor.body)
    assert isinstance(spec, Refusal)
    return spec.reason


FORMS: dict[str, tuple[Callable[[Any], Expr], str]] = {
    "prefix": (lambda i: j <= i, "jnp.cumsum(A, axis=1)"),
    "turned": (lambda i: i >= j, "jnp.cumsum(A, axis=1)"),
    "negated": (lambda i: ~(j > i), "jnp.cumsum(A, axis=1)"),
    "exclusive": (lambda i: j < i, "jnp.cumsum(jnp.pad(A, ((0, 0), (1, 0))), axis=1)"),
    "behind": (lambda i: j < i - 1, "jnp.cumsum(jnp.pad(A, ((0, 0), (2, 0))), axis=1)"),
    "ahead": (lambda i: j <= i + 2, "jnp.cumsum(jnp.pad(A, ((0, 0), (0, 2))), axis=1)[:, 2:9]"),
    "suffix": (lambda i: j >= i, "lax.cumsum(A, axis=1, reverse=True)"),
    "exclusive suffix": (lambda i: i < j, "lax.cumsum(jnp.pad(A, ((0, 0), (0, 1))), axis=1, reverse=True)"),
    "early suffix": (lambda i: j >= i - 2, "lax.cumsum(jnp.pad(A, ((0, 0), (2, 0))), axis=1, reverse=True)[:, :7]"),
    "mirrored": (lambda i: i + j < 7, "jnp.cumsum(A, axis=1)[:, ::-1]"),
    "doubled": (lambda i: 2 * j <= 2 * i + 1, "jnp.cumsum(A, axis=1)"),
    "tightest": (lambda i: (j <= i) & (j < i), "jnp.cumsum(jnp.pad(A, ((0, 0), (1, 0))), axis=1)"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_bounds(rng, form: str):
    condition, written = FORMS[form]
    Y = compute((3, 7), lambda b, i: r.sum(X[b, j], j, where=condition(i)))
    assert verify(Y, feeds(rng, X)) == written


@pytest.mark.parametrize("length", [1, 4, 7, 10])
@pytest.mark.parametrize(
    "form", ["prefix", "exclusive", "ahead", "suffix", "exclusive suffix", "early suffix"]
)
def test_outputs_of_another_length(rng, form: str, length: int):
    condition, _ = FORMS[form]
    Y = compute((3, length), lambda b, i: r.max(X[b, j], j, where=condition(i)))
    spec = recognise_scan(Y.axes, Y.body)
    if isinstance(spec, Refusal):
        assert (form, length) == ("exclusive", 1)  # nothing is summed at all
        return
    assert "lax.cummax" in verify(Y, feeds(rng, X))


REDUCERS = {
    "prod": (lambda e, **k: r.prod(e, **k), "jnp.cumprod(A, axis=1)"),
    "max": (lambda e, **k: r.max(e, **k), "lax.cummax(A, axis=1)"),
    "min": (lambda e, **k: r.min(e, **k), "lax.cummin(A, axis=1)"),
    "any": (lambda e, **k: r.any(e > 1, **k), "lax.associative_scan(jnp.logical_or, A, axis=1)"),
    "all": (lambda e, **k: r.all(e < 1, **k), "lax.associative_scan(jnp.logical_and, A, axis=1)"),
    "argmax": (lambda e, **k: r.argmax(e, **k), "(A, B), axis=1)[0]"),
}


@pytest.mark.parametrize("name", REDUCERS)
def test_the_reducers(rng, name: str):
    reducer, written = REDUCERS[name]
    Y = compute((3, 7), lambda b, i: reducer(X[b, j], axis=j, where=j <= i))
    assert written in verify(Y, feeds(rng, X))
    later = compute((3, 7), lambda b, i: reducer(X[b, j], axis=j, where=j >= i + 2))
    assert "reverse=True" in verify(later, feeds(rng, X))


def test_custom_combiners(rng):
    grow = te.comm_reducer(lambda a, b: a + b + a * b, lambda t: 0.0, "grow")
    Y = compute((3, 7), lambda b, i: grow(X[b, j], axis=j, where=j <= i))
    assert verify(Y, feeds(rng, X)) == "lax.associative_scan(lambda x, y: x + y + x * y, A, axis=1)"
    pair = te.comm_reducer(
        lambda a, b: (a[0] + b[0], f.maximum(a[1], b[1])), lambda s, t: (0.0, float("-inf")), "pair"
    )
    both = compute((3, 7), lambda b, i: pair((X[b, j], X[b, j]), axis=j, where=j >= i))
    for position, tensor in enumerate(both):
        source = verify(tensor, feeds(rng, X))
        # backwards, lax.associative_scan passes the later element first
        assert "lambda x, y: (y[0] + x[0], jnp.maximum(y[1], x[1]))" in source
        assert source.endswith(f"reverse=True)[{position}]")


def test_conditions_on_the_operand_are_a_select(rng):
    Y = compute((3, 7), lambda b, i: r.min(X[b, j], j, where=(j <= i) & (X[b, j] > 0)))
    spec = recognise_scan(Y.axes, Y.body)
    assert not isinstance(spec, Refusal)
    assert text(spec.arrays[0].body) == "select(X[b, i] > 0, X[b, i], inf)"
    verify(Y, feeds(rng, X))


def test_factors_and_conditions_of_the_output_stay_outside(rng):
    M, Z = placeholder((3, 7), name="M"), placeholder((3, 7, 2), name="Z")
    k = reduce_axis((0, 2), "k")
    Y = compute((7, 3), lambda i, b: r.sum(M[b, i] * X[b, j] * Z[b, j, k], [j, k], where=(j <= i) & (i < 5)))
    assert verify(Y, feeds(rng, X, M, Z)) == "jnp.where(C, B * jnp.cumsum(A, axis=0), 0.0)"


def test_a_table_of_sums_scans_twice(rng):
    a, b = reduce_axis((0, 3), "a"), reduce_axis((0, 7), "b")
    Y = compute((3, 7), lambda p, q: r.sum(X[a, b], [a, b], where=(a <= p) & (b <= q)))
    assert verify(Y, feeds(rng, X)) == "jnp.cumsum(jnp.cumsum(A, axis=0), axis=1)"


def test_axes_that_nothing_depends_on_are_broadcast(rng):
    Y = compute((3, 7, 2), lambda b, i, extra: r.sum(X[b, j], j, where=j <= i))
    assert verify(Y, feeds(rng, X)) == "jnp.broadcast_to(jnp.cumsum(A, axis=1).reshape(3, 7, 1), (3, 7, 2))"


def test_symbolic_sizes():
    n = var("n")
    V, own = placeholder((n,), name="V"), reduce_axis((0, n), "j")
    Y = compute((n,), lambda i: r.sum(V[own], own, where=own < i))
    spec = recognise_scan(Y.axes, Y.body)
    assert not isinstance(spec, Refusal)
    source = text_of(scan_source(spec, nodes(spec, ["V"])), n=n)
    assert source == "jnp.cumsum(jnp.pad(V, (1, 0)), axis=0)"


def test_refusals_say_why():
    band = compute((3, 7), lambda b, i: r.sum(X[b, j], j, where=(j <= i) & (j > i - 3)))
    assert "a band, not a prefix" in refused(band)
    attention = compute((3, 7), lambda b, i: r.sum(X[b, j] * X[b, i - j], j, where=j <= i))
    assert "depends on i itself" in refused(attention)
    whole = compute((3,), lambda b: r.sum(X[b, j], j))
    assert "no reduced axis is bounded" in refused(whole)
    steep = compute((3, 7), lambda b, i: r.sum(X[b, j], j, where=j <= 2 * i))
    assert "is no bound" in refused(steep)
