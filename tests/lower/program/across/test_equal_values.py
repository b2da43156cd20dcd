"""What statements compute alike is written once."""

from __future__ import annotations

import re

import numpy as np

import jaxte as te
from jaxte.lang.operators import ADD, MULTIPLY
from jaxte.lower.arrays.elementwise import Apply, Name
from jaxte.lower.arrays.node import Node, nodes_below
from jaxte.lower.code.vocabulary import Statement
from jaxte.lower.program.across.equal_values import Naming, with_equal_values_once

X = Name("x", (), ("float32", False))


def named(name: str) -> Name:
    return Name(name, (), ("float32", False))


def times(a: Node, b: Node) -> Apply:
    return Apply(MULTIPLY, (a, b))


def plus(a: Node, b: Node) -> Apply:
    return Apply(ADD, (a, b))


def once(statements: list[Statement], tensors: list[str]) -> list[Statement]:
    numbers = iter(range(7, 100))
    naming = Naming(lambda base: f"{base}_{next(numbers)}", lambda node: "long " * len(nodes_below(node)))
    return with_equal_values_once(statements, tensors, naming)  # type: ignore[return-value]


def test_terms_that_name_different_parts_of_a_value_share_it() -> None:
    u = te.placeholder((12, 9), name="u")
    i, j = te.reduce_axis((0, 11), "i"), te.reduce_axis((0, 8), "j")
    body = te.sqrt((u[i + 1, j] - u[i, j]) ** 2 + (u[i, j + 1] - u[i, j]) ** 2 + 1e-3)
    (du,) = te.differentiate(te.compute((), lambda: te.sum(body, axis=(i, j)), "y"), [u])
    text = te.source(du)
    assert text.count("jnp.sqrt(") == 1
    names = re.findall(r"^ *(du_\d+) = ", text, re.MULTILINE)
    assert names == [f"du_{n + 1}" for n in range(len(names))]


def test_a_value_is_defined_before_what_reads_it_first() -> None:
    part = plus(X, X)
    statements = [
        Statement("y", "y_1", times(part, X)),
        Statement("y", "y_2", part),
        Statement("y", "y", plus(named("y_1"), times(named("y_2"), X))),
    ]
    assert once(statements, ["y"]) == [
        Statement("y", "y_1", part),
        Statement("y", "y_2", times(named("y_1"), X)),
        Statement("y", "y", plus(named("y_2"), named("y_2"))),
    ]


def test_a_tensor_equal_to_another_is_that() -> None:
    statements = [
        Statement("y", "y_1", plus(X, X)),
        Statement("y", "y", times(named("y_1"), X)),
        Statement("z", "z_1", plus(X, X)),
        Statement("z", "z", times(named("z_1"), X)),
        Statement("w", "w", plus(named("z"), named("z_1"))),
    ]
    assert once(statements, ["y", "z", "w"]) == [
        *statements[:2],
        Statement("z", "z", named("y")),
        Statement("w", "w", plus(named("z"), named("y_1"))),
    ]


def test_another_name_of_a_value_that_is_equal_to_one_before_is_that_of_the_first() -> None:
    part = plus(X, X)
    statements = [
        Statement("y", "y_1", part),
        Statement("z", "z_1", part),
        Statement("z", "z_2", named("z_1")),
        Statement("z", "z", plus(times(named("y_1"), X), named("z_2"))),
    ]
    assert once(statements, ["z"]) == [
        Statement("y", "y_1", part),
        Statement("z", "z", plus(times(named("y_1"), X), named("y_1"))),
    ]


def test_what_is_assigned_twice_stays_in_its_place() -> None:
    statements = [
        Statement("y", "y", plus(X, X)),
        Statement("y", "y", times(named("y"), plus(X, X))),
        Statement("z", "z", plus(X, X)),
    ]
    assert once(statements, ["y", "z"]) == statements


def test_a_long_value_that_is_part_of_several_is_written_once() -> None:
    part = times(plus(X, named("a")), plus(times(X, X), named("b")))
    statements = [
        Statement("y", "y_1", plus(part, X)),
        Statement("y", "y", plus(named("y_1"), times(part, named("c")))),
    ]
    assert once(statements, ["y"]) == [
        Statement("y", "y_1", part),
        Statement("y", "y_7", plus(named("y_1"), X)),
        Statement("y", "y", plus(named("y_7"), times(named("y_1"), named("c")))),
    ]
    u = te.placeholder((12,), name="u")
    i = te.reduce_axis((0, 10), "i")
    bend = te.compute((), lambda: te.sum((u[i] - 2 * u[i + 1] + u[i + 2]) ** 2, axis=i), "bend")
    (du,) = te.differentiate(bend, [u])
    assert te.source(du).count("u[:10] - 2 * u[1:11] + u[2:]") == 1


def test_running_sums_in_blocks_share_a_function() -> None:
    p, q = te.placeholder((64, 2048), name="p"), te.placeholder((64, 2048), name="q")

    def running(x: te.Tensor) -> te.Tensor:
        j = te.reduce_axis((0, 2048), "j")
        return te.compute((64, 2048), lambda r, k: te.sum(x[r, j], axis=j, where=j <= k), f"c{x.name}")

    a, b = running(p), running(q)
    y = te.compute((64, 2048), lambda r, k: a[r, k] * te.tanh(b[r, k]), "y")
    assert te.source(y).count("def cp_prefix(x):") == 1
    assert "def cq_prefix" not in te.source(y)
    rng = np.random.default_rng(0)
    feeds = {t: rng.standard_normal((64, 2048)).astype(np.float32) for t in (p, q)}
    wanted = np.cumsum(feeds[p], 1, np.float64) * np.tanh(np.cumsum(feeds[q], 1, np.float64))
    np.testing.assert_allclose(te.evaluate(y, feeds), wanted, rtol=1e-3, atol=2e-3)
