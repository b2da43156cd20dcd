"""The order in which results are asked for shows in nothing but their order: what is computed is the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import settings

import jaxte as te
from jaxte.lower.arrays.elementwise import Apply, Name
from jaxte.lower.arrays.node import Node, nodes_below, replaced
from jaxte.lower.arrays.views import View
from jaxte.lower.code.vocabulary import AnyStatement, Function, Program, Statement
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor
from tests.agreement import inputs_of, pullback_of
from tests.choices import Seeded
from tests.lowered import arrays_for, load_program
from tests.random_definitions import definition
from tests.xla_counts import Fused

LONG = settings.default.max_examples >= 1000
PLATFORMS = ("cpu", "gpu", "tpu")
OPCODE = re.compile(r" = \S+ ([\w-]+)\(")


def computed(program: Program) -> Counter[str]:
    """How many different nodes of each kind ``program`` is made of, whatever names they have.

    But for views: two slices in a row are one where no line is too long for that, which names decide.
    """
    roots: list[Node] = []
    _close(program.statements, {}, roots)
    return Counter(_kind(n) for n in nodes_below(*roots) if not isinstance(n, (Name, View)))


def _kind(node: Node) -> str:
    return node.op.name if isinstance(node, Apply) else type(node).__name__


def _close(statements: Iterable[AnyStatement], names: dict[str, Node], roots: list[Node]) -> None:
    """Adds what ``statements`` compute to ``roots``, and to ``names``, in terms of parameters."""

    def closed(node: Node) -> Node:
        own = {
            n: names[n.identifier] for n in nodes_below(node) if isinstance(n, Name) and n.identifier in names
        }
        return replaced(node, own)

    for statement in statements:
        if isinstance(statement, Function):
            _close(statement.statements, names, roots)
            roots.append(closed(statement.result))
        elif isinstance(statement, Statement):
            roots.append(closed(statement.source))
            if "," not in statement.target:
                names[statement.target] = roots[-1]


def programs(tensors: list[Tensor], policy: Policy) -> tuple[Program, Program]:
    inputs = inputs_of(tensors)
    return lower("f", inputs, tensors, policy), lower("f", inputs, tensors[::-1], policy)


def check(tensors: list[Tensor], platforms: Iterable[str] = PLATFORMS) -> None:
    for platform in platforms:
        one, other = map(computed, programs(tensors, Policy(platform)))
        assert one == other, (platform, one - other, other - one)


Q, K = te.placeholder((40, 32), name="Q"), te.placeholder((40, 32), name="K")
ROW, COL = te.placeholder((300,), "int32", "row"), te.placeholder((300,), "int32", "col")
X, H = te.placeholder((7, 9), name="X"), te.placeholder((7, 9), name="H")
F, J = te.reduce_axis((0, 32), "f"), te.reduce_axis((0, 9), "j")
U, V = te.placeholder((8, 5), name="U"), te.placeholder((5, 6), name="V")
C = te.reduce_axis((0, 5), "c")


def scored(body: Callable[[Any, Any], Any]) -> Tensor:
    return te.compute((300,), lambda e: te.sum(body(Q[ROW[e], F], K[COL[e], F]), axis=F), "scores")


def gathered() -> list[Tensor]:
    """Rows, and sums of their products, which are no loop of their own where the rows are in memory."""
    return [te.compute((300, 32), lambda e, f: Q[ROW[e], f], "rows"), scored(lambda a, b: a * b)]


def two_scores() -> list[Tensor]:
    return [scored(lambda a, b: a * b), scored(lambda a, b: (a - b) ** 2)]


def guarded() -> list[Tensor]:
    """Rows that may be out of range, and the same behind a guard that keeps them in it."""
    rows, _ = gathered()
    inside = lambda e: (ROW[e] >= 0) & (ROW[e] < 40)  # noqa: E731
    return [rows, te.compute((300, 32), lambda e, f: te.where(inside(e), Q[ROW[e], f], 0.0), "G")]


def softmax() -> list[Tensor]:
    own = te.ops.softmax(X)
    return [own, *te.differentiate(own, [X], H)]


def soft_and_log() -> list[Tensor]:
    return [te.ops.softmax(X), te.ops.log_softmax(X)]


def moments() -> list[Tensor]:
    mean = te.compute((7,), lambda i: te.sum(X[i, J], axis=J) / 9, "mean")
    return [mean, te.compute((7,), lambda i: te.sum((X[i, J] - mean[i]) ** 2, axis=J) / 9, "variance")]


def exponentials() -> list[Tensor]:
    own = te.compute((7, 9), lambda i, j: te.exp(X[i, j]), "E")
    return [own, te.compute((7, 9), lambda i, j: te.exp(X[i, j]) / (1 + te.exp(X[i, j])), "S")]


def products() -> list[Tensor]:
    own = te.compute((8, 6), lambda a, b: te.sum(U[a, C] * V[C, b], axis=C), "P")
    return [own, te.compute((8, 6), lambda a, b: 2 * te.sum(U[a, C] * V[C, b], axis=C) + 1, "R")]


def convolution() -> list[Tensor]:
    w, x = te.placeholder((4, 3, 3, 3), name="W"), te.placeholder((2, 3, 8, 8), name="I")
    y = te.ops.conv2d(x, w, padding=1)
    return [y, *te.differentiate(y, [x, w], te.placeholder(y.shape, name="H"))]


def depthwise() -> list[Tensor]:
    """Both adjoints read the head with zeros around it."""
    w, x = te.placeholder((6, 1, 9), name="W"), te.placeholder((2, 6, 40), name="I")
    y = te.ops.conv1d(x, w, groups=6)
    return list(te.differentiate(y, [x, w], te.placeholder(y.shape, name="H")))


PAIRS = (
    depthwise,
    gathered,
    two_scores,
    guarded,
    softmax,
    soft_and_log,
    moments,
    exponentials,
    products,
    convolution,
)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.__name__)
def test_the_same_is_computed(pair: Callable[[], list[Tensor]]) -> None:
    check(pair())


def test_zeros_are_put_around_an_array_once() -> None:
    for program in programs(depthwise(), Policy()):
        assert computed(program)["Kept"] == 1
        text = module_text([program])
        assert text.count("jnp.pad(") == 1, text


@pytest.mark.parametrize("pair", [gathered, guarded])
def test_xla_has_the_same_instructions(pair: Callable[[], list[Tensor]]) -> None:
    counts, values = [], []
    for program in programs(pair(), Policy()):
        arrays = arrays_for(program)
        compiled = Fused(jax.jit(load_program(program)).lower(*arrays))
        counts.append(Counter(OPCODE.findall(compiled.as_text())))
        values.append(list(compiled(*arrays)))
    assert counts[0] == counts[1] and counts[0]["gather"]
    for one, other in zip(values[0], values[1][::-1], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("seed", [79, *range(2000 if LONG else 15)])
def test_the_same_is_computed_of_random_definitions(seed: int) -> None:
    drawn = definition(Seeded(seed))
    tensors: list[Tensor] = [t for t in topological_order([drawn.output]) if isinstance(t, Compute)]
    if drawn.variables:
        adjoints = pullback_of(drawn.output, drawn.feeds(), drawn.variables, drawn.seed).adjoints
        tensors = list(dict.fromkeys([*tensors, *adjoints]))
    check(tensors, [PLATFORMS[seed % 3]])
    check(tensors[-2:], [PLATFORMS[seed % 3]])
