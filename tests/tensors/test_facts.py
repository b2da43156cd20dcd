"""Facts about index tensors: scatters that become gathers, and what happens to facts that are false."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.graphs import among
from jaxte.tensors.tensor import Tensor

N, C, P = 12, 3, 3


def mesh(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random graph in which each of ``N`` nodes has ``P`` neighbours, and the slots of its adjacency."""
    ends = rng.permutation(np.repeat(np.arange(N), P)).reshape(-1, 2)
    adjacency, slot = np.zeros((N, P), np.int32), np.zeros((N, P), np.int32)
    taken = np.zeros(N, int)
    for a, b in ends:
        first = taken[a]
        taken[a] += 1
        second = taken[b]
        taken[b] += 1
        adjacency[a, first], adjacency[b, second] = b, a
        slot[a, first], slot[b, second] = second, first
    return adjacency, slot


def forms(tensor: Tensor) -> str:
    return str(te.explain(tensor))


def permuted(facts: Any = None, rows: int = N) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """``Y[i, j] = X[P[i], j]**2``, its head, and the adjoint of X."""
    q = te.placeholder((N,), "int32", "Q")
    p = te.placeholder((N,), "int32", "P", facts=te.facts.permutation(inverse=q) if facts is None else facts)
    x = te.placeholder((rows, C), name="X")
    y = te.compute((N, C), lambda i, j: x[p[i], j] ** 2, "Y")
    h = te.placeholder((N, C), name="H")
    (dx,) = te.differentiate(y, [x], h)
    return x, p, q, h, dx


@pytest.mark.parametrize("rows", [N, N + 4])
def test_a_permutation_with_its_inverse_leaves_no_scatter(rows: int) -> None:
    x, p, q, h, dx = permuted(rows=rows)
    assert not te.explain(dx).scatters
    rng = np.random.default_rng(0)
    order = rng.permutation(N).astype("int32")
    feeds = {
        p: order, q: np.argsort(order).astype("int32"),
        x: rng.standard_normal((rows, C)).astype("float32"), h: rng.standard_normal((N, C)).astype("float32"),
    }  # fmt: skip
    _, pull = jax.vjp(lambda a: a[order] ** 2, feeds[x])
    expected = pull(feeds[h])[0]
    needed = {t: a for t, a in feeds.items() if among(t, dx.inputs)}
    np.testing.assert_allclose(te.evaluate(dx, needed), expected, rtol=1e-6)
    np.testing.assert_allclose(te.interpret(dx, needed), expected, rtol=1e-6)


def test_the_inverse_is_a_permutation_too() -> None:
    q = te.placeholder((N,), "int32", "Q")
    p = te.placeholder((N,), "int32", "P", facts=te.facts.permutation(inverse=q))
    x, h = te.placeholder((N,), name="X"), te.placeholder((N,), name="H")
    (dx,) = te.differentiate(te.compute((N,), lambda i: x[q[i]], "Y"), [x], h)
    assert repr(dx) == "dX[i] = H[P[i]]"
    assert among(p, dx.inputs)


def test_permutations_in_rows_and_in_steps() -> None:
    q = te.placeholder((4, N), "int32", "Q")
    p = te.placeholder((4, N), "int32", "P", facts=te.facts.permutation(inverse=q))
    x = te.placeholder((4, N), name="X")
    y = te.compute((4, N // 2), lambda b, i: x[b, p[b, 2 * i]], "Y")
    h = te.placeholder((4, N // 2), name="H")
    (dx,) = te.differentiate(y, [x], h)
    assert not te.explain(dx).scatters
    rng = np.random.default_rng(1)
    order = np.stack([rng.permutation(N) for _ in range(4)]).astype("int32")
    head = rng.standard_normal((4, N // 2)).astype("float32")
    expected = np.zeros((4, N), "float32")
    for b in range(4):
        expected[b, order[b, ::2]] = head[b]
    feeds = {q: np.argsort(order, 1).astype("int32"), h: head}
    np.testing.assert_array_equal(te.evaluate(dx, feeds), expected)


FEATURES = {
    "neighbours": lambda x, a: lambda i, c, p: x[a[i, p], c],
    "products": lambda x, a: lambda i, c, p: x[a[i, p], c] * x[i, c],
    "differences": lambda x, a: lambda i, c, p: te.abs(x[a[i, p], c] - x[i, c]),
    "around": lambda x, a: lambda i, c, p: te.abs(x[a[i, p], c] - x[a[i, (p + 1) % P], c]),
    "weighted": lambda x, a: lambda i, c, p: x[a[i, p], c] * te.cast(p, "float32"),
}


@pytest.mark.parametrize("name", FEATURES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**20))
def test_a_symmetric_adjacency_leaves_no_scatter(name: str, seed: int) -> None:
    s = te.placeholder((N, P), "int32", "S")
    a = te.placeholder((N, P), "int32", "A", facts=te.facts.symmetric_adjacency(slot=s))
    x, h = te.placeholder((N, C), name="X"), te.placeholder((N, C), name="H")
    p = te.reduce_axis((0, P), "p")
    y = te.compute((N, C), lambda i, c: te.sum(FEATURES[name](x, a)(i, c, p), axis=p), "Y")
    (dx,) = te.differentiate(y, [x], h)
    assert not te.explain(dx).scatters

    rng = np.random.default_rng(seed)
    adjacency, slot = mesh(rng)
    feeds = {a: adjacency, s: slot, **{t: rng.standard_normal((N, C)).astype("float32") for t in (x, h)}}
    without = te.placeholder((N, P), "int32", "A")
    y = te.compute((N, C), lambda i, c: te.sum(FEATURES[name](x, without)(i, c, p), axis=p), "Y")
    (plain,) = te.differentiate(y, [x], h)
    assert te.explain(plain).scatters
    expected = te.interpret(
        plain, {t: v for t, v in {**feeds, without: adjacency}.items() if among(t, plain.inputs)}
    )
    found = te.evaluate(dx, {t: v for t, v in feeds.items() if among(t, dx.inputs)})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_without_slots_only_what_does_not_depend_on_the_place_is_turned() -> None:
    a = te.placeholder((N, P), "int32", "A", facts=te.facts.symmetric_adjacency())
    x, h = te.placeholder((N, C), name="X"), te.placeholder((N, C), name="H")
    p = te.reduce_axis((0, P), "p")
    for name, scatters in (("products", False), ("weighted", True)):
        y = te.compute((N, C), lambda i, c, n=name: te.sum(FEATURES[n](x, a)(i, c, p), axis=p), "Y")
        (dx,) = te.differentiate(y, [x], h)
        assert bool(te.explain(dx).scatters) == scatters, name


@pytest.mark.parametrize(
    ("fact", "flags"),
    [
        (te.facts.sorted(), ["indices_are_sorted=True"]),
        (te.facts.unique(), ["unique_indices=True"]),
        ([te.facts.sorted(), te.facts.unique()], ["indices_are_sorted=True", "unique_indices=True"]),
        (te.facts.permutation(), ["unique_indices=True"]),
    ],
)
def test_a_scatter_is_told_what_is_known(fact: Any, flags: list[str]) -> None:
    *_, dx = permuted(facts=fact)
    text = te.source(dx)
    assert (".set(" if "unique_indices=True" in flags else ".add(") in text
    for flag in ("indices_are_sorted=True", "unique_indices=True"):
        assert (flag in text) == (flag in flags)


def shuffled(x: Tensor, p: Tensor, q: Tensor) -> Tensor:
    te.assume(p, te.facts.permutation(inverse=q))
    return te.compute(x.shape, lambda i, j: x[p[i], j], "y")


def test_builders_state_facts_of_their_arguments() -> None:
    order = np.random.default_rng(2).permutation(N).astype("int32")
    x = jnp.arange(N * C, dtype="float32").reshape(N, C)
    fn = te.function(shuffled)
    dx = jax.grad(lambda x: jnp.sum(fn(x, order, np.argsort(order)) * x))(x)
    np.testing.assert_allclose(dx, x[order] + x[np.argsort(order)])
    assert not fn.explain(x, order, np.argsort(order)).scatters


FALSE = {
    "repeated": (te.facts.permutation(), [0, 2, 2], r"P\[1\] = 2 and P\[2\] = 2 are alike"),
    "outside": (te.facts.permutation(), [0, 1, 3], r"P\[2\] = 3 is not in \[0, 3\)"),
    "unsorted": (te.facts.sorted(), [0, 2, 1], r"P\[2\] = 1 is below P\[1\] = 2"),
    "beyond": (te.facts.within(2), [0, 1, 2], r"P\[2\] = 2 is not in \[0, 2\)"),
    "twice": (te.facts.unique(), [5, 7, 5], r"P\[0\] = 5 and P\[2\] = 5 are alike"),
}


@pytest.mark.parametrize("case", FALSE)
def test_false_facts_name_the_element(case: str) -> None:
    fact, values, message = FALSE[case]
    p = te.placeholder((3,), "int32", "P", facts=fact)
    x = te.placeholder((9,), name="X")
    y = te.compute((3,), lambda i: x[p[i]], "Y")
    feeds = {x: np.arange(9, dtype="float32"), p: np.int32(values)}
    with pytest.raises(te.FeedError, match=message):
        te.interpret(y, feeds)
    debugged = te.function([x, p], y, debug=True)
    with pytest.raises(te.FeedError, match=message):
        debugged(feeds[x], feeds[p])
    with pytest.raises(Exception, match=message):
        jax.block_until_ready(jax.jit(debugged)(feeds[x], feeds[p]))
        jax.effects_barrier()
    te.function([x, p], y)(feeds[x], feeds[p])  # taken on trust


def test_false_companions_name_the_element() -> None:
    q = te.placeholder((3,), "int32", "Q")
    p = te.placeholder((3,), "int32", "P", facts=te.facts.permutation(inverse=q))
    with pytest.raises(
        te.FeedError, match=r"Q is stated to be the inverse of P, but P\[0\] = 1 and Q\[1\] = 2"
    ):
        te.check_facts({p: np.int32([1, 2, 0]), q: np.int32([1, 2, 0])})
    adjacency, slot = mesh(np.random.default_rng(3))
    s = te.placeholder((N, P), "int32", "S")
    a = te.placeholder((N, P), "int32", "A", facts=te.facts.symmetric_adjacency(slot=s))
    te.check_facts({a: adjacency, s: slot})
    with pytest.raises(te.FeedError, match="S is stated to be the slot of A, but A"):
        te.check_facts({a: adjacency, s: (slot + 1) % P})
    adjacency[0, 0] = (adjacency[0, 0] + 1) % N
    with pytest.raises(te.FeedError, match=r"A is stated to be a symmetric adjacency, but row 0 lists"):
        te.check_facts({a: adjacency, s: slot})


def test_facts_that_a_tensor_cannot_have() -> None:
    with pytest.raises(te.DefinitionError, match="facts are about integer tensors"):
        te.placeholder((3,), name="X", facts=te.facts.sorted())
    with pytest.raises(te.DefinitionError, match="at least one axis"):
        te.placeholder((), "int32", "I", facts=te.facts.unique())
    with pytest.raises(te.DefinitionError, match="two axes"):
        te.placeholder((3,), "int32", "A", facts=te.facts.symmetric_adjacency())
    with pytest.raises(te.ShapeError, match=r"Q \(4,\); give a tensor of the same shape"):
        te.placeholder((3,), "int32", "P", facts=te.facts.permutation(te.placeholder((4,), "int32", "Q")))
    with pytest.raises(te.DefinitionError, match="the facts of P hold 'sorted'"):
        te.placeholder((3,), "int32", "P", facts=["sorted"])


@pytest.mark.parametrize("stop", [-1, 4.0, True, "a", te.reduce_axis((0, 3), "k")])
def test_values_are_within_a_size(stop: Any) -> None:
    with pytest.raises(te.DefinitionError, match=r"I int32\(3,\) is stated to be within .*; give an integer"):
        te.placeholder((3,), "int32", "I", facts=te.facts.within(stop))


@pytest.mark.parametrize("facts", [te.facts.sorted, "sorted", 3])
def test_facts_that_are_none(facts: Any) -> None:
    with pytest.raises(te.DefinitionError, match="the facts of I hold"):
        te.placeholder((3,), "int32", "I", facts=facts)


@pytest.mark.parametrize("symbolic", [True, False])
def test_values_within_a_size_are_tested(symbolic: bool) -> None:
    m = te.var("m") if symbolic else np.int32(8)
    x = te.placeholder((m if symbolic else 4,), name="X")
    i = te.placeholder((3,), "int32", "I", facts=te.facts.within(m // 2))
    y = te.compute((3,), lambda a: x[i[a]], "Y")
    fn = te.function([x, i], y, debug=True)
    values = jnp.arange(8.0 if symbolic else 4.0)
    np.testing.assert_array_equal(fn(values, np.int32([0, 3, 2])), [0, 3, 2])
    with pytest.raises(te.FeedError, match=r"I is stated to be within 4, but I\[1\] = 4 is not in \[0, 4\)"):
        fn(values, np.int32([0, 4, 2]))
    te.check_facts({i: np.int32([0, 3, 2])})


def test_arrays_of_other_ranks_have_no_facts() -> None:
    i = te.placeholder((3,), "int32", "I", facts=te.facts.sorted())
    with pytest.raises(te.FeedError, match="it has 1 axis"):
        te.check_facts({i: np.int32(3)})
    with pytest.raises(te.FeedError, match="the key 'I' is no tensor"):
        te.check_facts({"I": np.int32([3, 4, 5])})  # type: ignore[dict-item]


def test_an_inverse_that_is_no_input_is_asked_for() -> None:
    x, p, *_ = permuted()
    fn = te.function([x, p], te.compute((N, C), lambda i, j: x[p[i], j], "Y"))
    with pytest.raises(te.LoweringError, match="Q is needed but is none of the parameters"):
        jax.grad(lambda a: jnp.sum(fn(a, jnp.arange(N))))(jnp.ones((N, C)))


def test_positions_known_to_be_in_range_are_not_tested() -> None:
    x, h = te.placeholder((9, 2), name="X"), te.placeholder((N, 2), name="H")
    for stop, mode in ((9, "promise_in_bounds"), (5, "promise_in_bounds"), (10, "fill")):
        p = te.placeholder((N,), "int32", "P", facts=te.facts.within(stop))
        y = te.compute((N, 2), lambda i, j, p=p: x[p[i], j], "Y")
        assert f'mode="{mode}"' in te.source(y)
        (dx,) = te.differentiate(y, [x], h)
        assert te.explain(dx).scatters


@pytest.mark.parametrize(("shape", "is_sorted"), [("b a", True), ("a b", False)])
def test_sorted_rows_are_sorted_positions_only_where_rows_come_first(shape: str, is_sorted: bool) -> None:
    rows = te.placeholder((4, N), "int32", "P", facts=[te.facts.sorted(), te.facts.unique()])
    h, i = te.placeholder((4, N), name="H"), te.reduce_axis((0, N), "i")

    def summed(b: te.Axis, a: te.Axis) -> te.Expr:
        return te.sum(h[b, i], axis=i, where=rows[b, i] == a)

    if is_sorted:
        y = te.compute((4, 30), summed, "Y")
    else:
        y = te.compute((30, 4), lambda a, b: summed(b, a), "Y")
    assert ("indices_are_sorted=True" in te.source(y)) == is_sorted
    assert "unique_indices=True" in te.source(y)
    rng = np.random.default_rng(4)
    feeds = {
        rows: np.sort(np.stack([rng.permutation(30)[:N] for _ in range(4)]), 1).astype("int32"),
        h: rng.standard_normal((4, N)).astype("float32"),
    }
    np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-6)
