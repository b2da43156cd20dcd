"""Periodic, held and reflected indices of any stride: pieces or one wrapped copy, in the sum and in its adjoints.

A gather at known positions, a mask over two axes, and work beyond that of the definition are no forms of them.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import jaxte as te
from jaxte.lower.arrays.data import Gather, Scatter
from jaxte.lower.arrays.node import Node, nodes_below
from jaxte.lower.code.vocabulary import Statement
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Tensor
from tests.choices import Seeded
from tests.lowered import program_of
from tests.points import excess
from tests.random_wrapped import wrapped

FULL = os.environ.get("JAXTE_HYPOTHESIS") == "full"
SEEDS = range(1000 if FULL else 40)


def nodes_of(tensor: Tensor) -> list[Node]:
    statements = program_of(tensor).statements
    return list(nodes_below(*(s.source for s in statements if isinstance(s, Statement))))


def is_mask(node: Node) -> bool:
    """Whether conditions are held for pairs of positions on two axes."""
    if node.is_tuple or node.dtype != "bool":
        return False
    return sum((known(e) or 0) > 1 for e in node.shape) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_forms(seed: int) -> None:
    y, x, w = wrapped(Seeded(seed))
    head = te.placeholder(y.shape, y.dtype, "H")
    adjoints = te.differentiate(y, [x, w], head=head)
    assert excess(y, adjoints) <= 1
    for tensor in (y, *adjoints):
        nodes = nodes_of(tensor)
        assert not [n for n in nodes if isinstance(n, (Gather, Scatter))], te.source(tensor)
        assert not [n for n in nodes if is_mask(n)], te.source(tensor)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("seed", SEEDS[:12] if not FULL else SEEDS)
def test_values(seed: int, rng: np.random.Generator) -> None:
    y, x, w = wrapped(Seeded(seed))
    head = te.placeholder(y.shape, y.dtype, "H")
    feeds = {t: rng.standard_normal(t.shape) for t in (x, w, head)}
    tensors = [y, *te.differentiate(y, [x, w], head=head)]
    expected = te.interpret(tensors, feeds)
    for found, own in zip(te.evaluate(tensors, feeds), expected, strict=True):
        np.testing.assert_allclose(found, own, rtol=1e-9, atol=1e-9)
    # y is linear in both, so that each adjoint gives <H, y>
    for tensor, adjoint in ((x, expected[1]), (w, expected[2])):
        assert np.isclose(
            np.vdot(feeds[head], expected[0]), np.vdot(adjoint, feeds[tensor]), rtol=1e-9, atol=1e-9
        )
