"""Walks over graphs: their orders, and groups of what has keys in common."""

from __future__ import annotations

from jaxte.lang.graphs import components, leaves, ordered, reached

GRAPH = {"a": "bc", "b": "d", "c": "d", "d": "", "e": "a"}


def test_orders() -> None:
    assert ordered("ae", GRAPH.__getitem__) == [*"dbcae"]
    assert list(reached("a", GRAPH.__getitem__)) == [*"acdb"]
    deep = {n: [n + 1] for n in range(20_000)} | {20_000: []}
    assert ordered([0], deep.__getitem__)[0] == 20_000


def test_circles_are_entered_once() -> None:
    assert list(reached([0], {0: [1], 1: [0]}.__getitem__)) == [0, 1]


def test_leaves_stand_from_the_left_to_the_right() -> None:
    assert leaves(((1, 2), (3, (4,))), lambda node: node if isinstance(node, tuple) else ()) == [1, 2, 3, 4]


def test_components_in_order_of_appearance() -> None:
    assert components(["ab", "c", "", "de", "be", "cf"], lambda keys: keys) == [
        ["ab", "de", "be"],
        ["c", "cf"],
        [""],
    ]
