"""Each rewrite alone, on definitions that it fires on: the interpreter gives both sides the same values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.lang.walk import free_axes, postorder
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from jaxte.lower.rewrites import hoist
from jaxte.lower.rewrites.table import BODIES, REWRITES, Place, Rewrite
from jaxte.lower.views.scope import Scope
from jaxte.meaning.interpret import interpret
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor
from tests.random_definitions import definitions


def made(name: str, n: int, m: int) -> Compute:
    """A definition over ``n`` and ``m`` positions that the rewrite of that name applies to."""
    x, y = te.placeholder((n, m), "float64", "x"), te.placeholder((n, m), "float64", "y")
    s = te.placeholder((n,), "float64", "s")
    c = te.placeholder((n,), "int32", "c")
    k = te.reduce_axis((0, m), "k")
    match name:
        case "unit axes":
            u = te.placeholder((n, 1, m), "float64", "u")
            return te.compute((n, 1), lambda i, e: te.sum(u[i, e, k] * u[i, e, k], axis=k), "Y")
        case "short axes apart":
            v = te.placeholder((n, 3, m), "float64", "v")
            return te.compute(
                v.shape, lambda i, p, j: v[i, (p + 1) % 3, j] * te.sin(v[i, (p + 2) % 3, j]), "Y"
            )
        case "stacked terms":
            w, z = te.placeholder((2, m, 4 * m), "float64", "w"), te.placeholder((n, m), "float64", "z")
            body = lambda i, o: te.sum(x[i, k] * w[0, k, o] + z[i, k] * w[1, k, o], axis=k)  # noqa: E731
            return te.compute((n, 4 * m), body, "Y")
        case "factors outside":
            if n % 2:
                choice = lambda i: te.select(c[i] > 2, x[i, k] * s[i], -x[i, k])  # noqa: E731
                return te.compute((n,), lambda i: te.sum(choice(i), axis=k), "Y")
            t = te.placeholder((2, n), "int32", "t")
            v = te.placeholder((2, n), "float64", "v")
            body = lambda i: te.sum(  # noqa: E731
                v[0, i] * x[t[0, i], k] * y[i, k] + v[1, i] * x[t[1, i], k] * y[i, k], axis=k
            )
            return te.compute((n,), body, "Y")
        case "rows of tables apart":
            v, h = (
                te.placeholder((4 * n, 16), "float64", "v"),
                te.placeholder((3, 16, 32 * m), "float64", "h"),
            )
            e, d = te.placeholder((4 * n,), "int32", "e"), te.reduce_axis((0, 16), "d")
            return te.compute((4 * n, 32 * m), lambda i, o: te.sum(v[i, d] * h[e[i], d, o], axis=d), "Y")
        case "residues apart":
            z, h = te.placeholder((2 * n, 2 * m), "float64", "z"), te.placeholder((n, m), "float64", "h")
            even = lambda i, j: z[2 * i, 2 * j] * te.sin(z[2 * i + 1, 2 * j])  # noqa: E731
            odd = lambda i, j: z[2 * i, 2 * j + 1] * y[i, j] - z[2 * i + 1, 2 * j + 1]  # noqa: E731
            body = lambda i, j: even(i, j) + odd(i, j)  # noqa: E731
            (adjoint,) = te.differentiate(te.compute((n, m), body, "Y"), [z], h)
            assert isinstance(adjoint, Compute)
            return adjoint
        case "disjoint terms":
            w, head = te.placeholder((3, m), "float64", "w"), te.placeholder((n,), "float64", "H")
            body = lambda i: te.sum(  # noqa: E731
                x[i, k] * w[0, k] + te.sin(x[i, k]) * w[1, k] + te.exp(x[i, k]) * w[2, k], axis=k
            )
            (adjoint,) = te.differentiate(te.compute((n,), body, "Y"), [w], head)
            assert isinstance(adjoint, Compute)
            return adjoint
        case "even functions":
            d = lambda i, j: x[i, (j - 1) % m] - x[i, (j + 1) % m]  # noqa: E731
            e = lambda i, j: d(i, (j + 2) % m) / 3 * d(i, j)  # noqa: E731
            body = lambda i, j: te.cos(d(i, j)) * e(i, j) + te.abs(d(i, j) * s[i]) * te.sin(d(i, j))  # noqa: E731
            return te.compute((n, m), body, "Y")
        case "shared calls":
            weight = lambda i: te.exp(x[i, k] - s[i])  # noqa: E731
            return te.compute((n,), lambda i: te.sum(weight(i) * y[i, k] - weight(i) * x[i, k], axis=k), "Y")
        case "narrow factors first":
            flow = lambda i, j: x[i, j] * 0.1 / (2 * s[i]) * (s[i] + s[(i + 1) % n])  # noqa: E731
            return te.compute((n, m), lambda i, j: flow(i, j) - y[i, j] / s[i] * 3.0 / (s[i] * s[i] + 1), "Y")
        case "roots for powers":
            return te.compute((n, m), lambda i, j: (x[i, j] * x[i, j] + 0.5) ** 0.75, "Y")
    raise AssertionError(name)


@pytest.fixture(autouse=True, scope="module")
def for_few_rows() -> Iterator[None]:
    """Weights leave sums over small arrays too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hoist, "LARGE_ROWS", 0)
        yield


def place_of(tensor: Compute) -> Place:
    return Place(tensor.axes, Scope(tensor.axes), Policy())


def outcomes(tensor: Compute, rewrite: Rewrite) -> Iterator[tuple[Expr, Expr]]:
    """What the rewrite makes of the body, or of each node that depends on nothing but the axes of the tensor."""
    place = place_of(tensor)
    asked = [tensor.body] if any(rewrite is r for r in BODIES) else postorder(tensor.body)
    for node in asked:
        if node.weak or any(axis not in dict.fromkeys(tensor.axes) for axis in free_axes(node)):
            continue
        found = rewrite.at(node, place)
        if found is not node:
            yield node, found


def same_values(tensor: Compute, before: Expr, after: Expr, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = [t for t in topological_order([Compute("B", tensor.axes, before)]) if isinstance(t, Placeholder)]
    feeds: dict[Tensor, np.ndarray] = {
        t: rng.integers(0, 3, t.shape).astype(t.dtype)
        if t.dtype == "int32"
        else rng.standard_normal(t.shape).astype(t.dtype)
        for t in inputs
    }
    old, new = (interpret(Compute("B", tensor.axes, body), feeds) for body in (before, after))
    np.testing.assert_allclose(new, old, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda r: r.name)
@pytest.mark.parametrize("sizes", [(4, 5), (7, 3), (3, 8)])
def test_the_same_value_where_it_fires(rewrite: Rewrite, sizes: tuple[int, int]) -> None:
    tensor = made(rewrite.name, *sizes)
    found = list(outcomes(tensor, rewrite))
    assert found, f"{rewrite.name} does not fire on {te.formula(tensor)}"
    for before, after in found:
        same_values(tensor, before, after, sizes[0])


@settings(max_examples=60)
@given(definition=definitions(stages=(1, 2)))
def test_the_same_value_on_random_definitions(definition) -> None:
    for tensor in topological_order([definition.output]):
        if isinstance(tensor, Compute) and not tensor.dtype.startswith("complex"):
            for rewrite in REWRITES:
                for before, after in outcomes(tensor, rewrite):
                    assert before.dtype == after.dtype
                    same_values(tensor, before, after, definition.seed)


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda r: r.name)
def test_without_a_rewrite_the_body_stays(rewrite: Rewrite) -> None:
    tensor = made(rewrite.name, 4, 5)
    place = Place(tensor.axes, Scope(tensor.axes), Policy(without=frozenset([rewrite.name])))
    for node in postorder(tensor.body):
        assert rewrite.at(node, place) is node and not place.fired


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda r: r.name)
def test_what_changed_something_is_told(rewrite: Rewrite) -> None:
    tensor = made(rewrite.name, 4, 5)
    inputs = [t for t in topological_order([tensor]) if isinstance(t, Placeholder)]
    (choice,) = [c for c in lower("f", inputs, [tensor]).choices if c.tensor == tensor.name]
    assert rewrite.name in choice.rewrites
    off = lower("f", inputs, [tensor], Policy(without=frozenset([rewrite.name])))
    assert rewrite.name not in off.choices[-1].rewrites


def test_without_goes_from_function_to_explain() -> None:
    tensor = made("roots for powers", 4, 5)
    inputs = [t for t in topological_order([tensor]) if isinstance(t, Placeholder)]
    explained = te.explain(te.function(inputs, tensor))
    assert explained.rewrites["Y"] == ("roots for powers",) and "rewritten: roots for powers" in str(
        explained
    )
    off = te.function(inputs, tensor, without="roots for powers")
    assert "rewritten" not in str(te.explain(off)) and "** 0.75" in te.source(off)
    with pytest.raises(te.LoweringError, match=r"without is 3; give names of forms and rewrites"):
        te.function(inputs, tensor, without=3)
    with pytest.raises(te.DefinitionError, match="without= of"):
        te.function(lambda x: x, without="roots for powers")(inputs[0])
