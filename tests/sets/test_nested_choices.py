"""Choices within each other, each read twice: as many paths as 2 to the power of their number, and work that grows with the text."""

import time

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.walk import postorder
from jaxte.lower.body import evaluator
from jaxte.tensors.bodies import contexts
from jaxte.tensors.bodies.range_checks import check_reads
from jaxte.tensors.structure import topological_order
from tests.lower.evaluation.program import evaluate_program
from tests.lowered import program_of


def by_data(x, v, i, q):
    return te.select(x[i + q] > 0.1 * q, v * x[i + q + 1], te.sin(v) + x[i])


def by_position(x, v, i, q):
    return te.select(i % (q + 2) == 0, v * x[i + q], te.sin(v) + x[i])


def extrema(x, v, i, q):
    return te.maximum(te.minimum(v, x[i + q]), v * x[i + 2 * q])


def clamped(x, v, i, q):
    return te.maximum(te.select(i > q, v * x[te.maximum(i - q, 0)], v), x[te.minimum(i + q, 11)])


def built(step, depth, n=12):
    x = te.placeholder((n + 2 * depth,), "float64", "x")

    def body(i):
        v = x[i]
        for q in range(depth):
            v = step(x, v, i, q)
        return v

    y = te.compute((n,), body, "y")
    (dx,) = te.differentiate(y, [x], te.placeholder((n,), "float64", "H"))
    return x, y, dx


def nodes(dx):
    return sum(len(postorder(t.body)) for t in topological_order([dx]) if hasattr(t, "body"))


@pytest.mark.parametrize("step", [by_data, by_position, extrema, clamped], ids=lambda f: f.__name__)
def test_adjoints_grow_with_the_text(step, rng) -> None:
    """A definition of twice as many choices has twice the reads, each of which receives what twice as many choices decide on."""
    small, large = (nodes(built(step, depth)[2]) for depth in (6, 12))
    assert large < 6 * small, (small, large)
    x, y, dx = built(step, 7)
    a, h, s = rng.normal(size=x.shape[0]), rng.normal(size=12), rng.normal(size=x.shape[0]) * 1e-7
    (head,) = (t for t in topological_order([dx]) if t.name == "H")
    ends = [np.vdot(h, te.interpret(y, {x: a + e * s})) for e in (1, -1)]
    own = np.vdot(te.interpret(dx, {x: a, head: h}), s)
    np.testing.assert_allclose(own, (ends[0] - ends[1]) / 2, rtol=1e-5, atol=1e-14)


def shifted_back(x, depth):
    """Each read is in range at its own choice, and there are 2**depth ways to the first one."""

    def body(i):
        v = x[i]
        for q in range(depth):
            v = te.select(i >= q, v * x[i - q], te.sin(v))
        return v

    return body


def test_ways_to_a_read_are_not_walked_one_by_one() -> None:
    x = te.placeholder((40,), name="x")
    y = te.compute((40,), shifted_back(x, 40), "y")
    begun = time.process_time()
    check_reads("y", y.axes, y.body)
    assert time.process_time() - begun < 10  # of 2**40 ways


def test_what_all_ways_have_in_common_decides(monkeypatch) -> None:
    monkeypatch.setattr(contexts, "PLACES", 1)
    x = te.placeholder((40,), name="x")
    te.compute((40,), shifted_back(x, 5), "inside")
    with pytest.raises(te.RangeError, match=r"reads x\[-1\] at i=0"):
        te.compute((40,), lambda i: te.select(i >= 0, x[i - 1], x[i]), "outside")


def test_pieces_of_pieces_end(monkeypatch, rng) -> None:
    """Each choice cuts the pieces that the others cut: from some on, they are masks, and ``te.explain`` says so."""
    *_, dx = built(clamped, 5, 20)
    plenty = program_of(dx)
    monkeypatch.setattr(evaluator, "VISITS", 0)
    monkeypatch.setattr(evaluator, "VISITS_OF_A_NODE", 1)
    few = program_of(dx)
    told = [
        [r for choice in p.choices for _, r in choice.refused if "pieces of pieces" in r]
        for p in (plenty, few)
    ]
    assert not told[0] and told[1]
    arrays = [rng.normal(size=t.shape) for _, t in few.params]
    np.testing.assert_allclose(evaluate_program(few, arrays), evaluate_program(plenty, arrays), rtol=1e-12)
