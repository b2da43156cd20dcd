"""What Python asks a truth value of: expressions and Tensors have none, and say what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jaxte as te

X, Y = te.placeholder((3, 4), name="X"), te.placeholder((3, 4), name="Y")
K = te.reduce_axis((0, 4), "k")

BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "if ==": lambda i, j: X[i, j] if i == 0 else 0.0,
    "if !=": lambda i, j: X[i, j] if i != 0 else 0.0,
    "if <": lambda i, j: X[i, j] if i < 1 else 0.0,
    "not": lambda i, j: X[i, j] if not i == j else 0.0,
    "or": lambda i, j: te.select(i == 0 or j == 0, X[i, j], 0.0),
    "and": lambda i, j: te.select(i == 0 and j == 0, X[i, j], 0.0),
    "in": lambda i, j: X[i, j] if i in (0, 1) else 0.0,
    "in nodes": lambda i, j: X[i, j] if i in [j] else 0.0,
    "chain": lambda i, j: te.select(0 <= i < 2, X[i, j], 0.0),
    "chain of ==": lambda i, j: te.select(0 == i == j, X[i, j], 0.0),
    "max": lambda i, j: X[max(i, 1), j],
    "min": lambda i, j: X[min(i, j), j],
    "sorted": lambda i, j: X[sorted([i, j])[0], j],
    "index": lambda i, j: X[[j, i].index(i), j],
    "data": lambda i, j: X[i, j] if X[i, j] == 0.0 else 0.0,
    "where=": lambda i, j: te.sum(X[i, K], axis=K, where=K == 0 or K == 1),
    "any": lambda i, j: te.select(any([i == 0, j == 0]), X[i, j], 0.0),
    "while": lambda i, j: next(X[i, j] for _ in iter(lambda: bool(i == j), True)),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str) -> None:
    with pytest.raises(
        te.TruthValueError, match=r"`.*[=<>].*` has no truth value.*te\.select.*&, \|, ~.*where="
    ):
        te.compute((3, 4), BODIES[name], "T")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: bool(X == Y),
        lambda: X != Y or None,
        lambda: X in [Y],
        lambda: [Y, X].index(X),
        lambda: max(X, Y),
        lambda: 0 if X else 1,
        lambda: te.var("n") == 3 and 1,
        lambda: te.var("n") in (1, 2),
    ],
)
def test_tensors_and_sizes(ask: Callable[[], Any]) -> None:
    with pytest.raises(te.TruthValueError, match="has no truth value"):
        ask()


def test_an_assertion_is_asked_too() -> None:
    def body(i: Any, j: Any) -> Any:
        assert i == j
        return X[i, j]

    with pytest.raises(te.TruthValueError, match="`i == j`"):
        te.compute((3, 4), body)


def test_nodes_are_keys_of_dicts_and_members_of_sets() -> None:
    i, j = te.reduce_axis((0, 3), "i"), te.reduce_axis((0, 3), "j")
    nodes = {i: 1, j: 2, X: 3, Y: 4, i + 1: 5, X[i, j]: 6}
    assert [nodes[n] for n in (i, j, X, Y, i + 1, X[i, j])] == [1, 2, 3, 4, 5, 6]
    assert i in {i} and X in {X, Y} and i not in {j} and hash(i + 1) == hash(i + 1)
    assert i in (i, j)  # found by identity before anything is compared


def test_what_is_known_has_a_truth_value() -> None:
    i = te.reduce_axis((0, 3), "i")
    assert (i == i) and not (i != i) and bool(te.const(2)) and not te.const(0)
