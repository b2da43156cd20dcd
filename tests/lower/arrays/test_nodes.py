"""Nodes of the array language: interned, with shapes and dtypes; what the verifier refuses; how they are written."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

import jaxte as te
from jaxte.lang.expr import Expr, Var, as_expr
from jaxte.lang.operators import ADD, MULTIPLY
from jaxte.lower.arrays.data import Gather, Scatter, Updated
from jaxte.lower.arrays.elementwise import Apply, Full, Name, Number
from jaxte.lower.arrays.loops import Each, Joined, Stacked, Total, loop
from jaxte.lower.arrays.node import ArrayError, Node
from jaxte.lower.arrays.products import Einsum, Reduced
from jaxte.lower.arrays.verify import verify_node
from jaxte.lower.arrays.views import ALL, NEW, Broadcast, Index, Pad, Range, Reshape, Transpose, View
from jaxte.lower.body import evaluator
from jaxte.lower.code.vocabulary import verify_program
from jaxte.lower.cost.policy import Policy
from jaxte.lower.printing.printer import Printer
from jaxte.lower.program.plan import lower
from tests.agreement import inputs_of
from tests.random_definitions import Definition, definitions


def name(identifier: str, *extents: int | Expr, dtype: str = "float32") -> Name:
    return Name(identifier, tuple(map(as_expr, extents)), (dtype, False))


def sizes(*extents: int) -> tuple[Expr, ...]:
    return tuple(map(as_expr, extents))


X, V, AT = name("X", 4, 6), name("V", 6), name("I", 3, dtype="int32")
NAMES = {n.identifier: n for n in (X, V, AT)}
FIRST = Range(None, as_expr(2))


def test_equal_nodes_are_one() -> None:
    assert Apply(ADD, (X, V)) is Apply(ADD, (X, V))
    assert Apply(ADD, (X, V)) is not Apply(ADD, (V, X))
    assert len({Number(1), Number(1.0), Number(True), Number(-0.0), Number(0.0)}) == 5
    assert name("X", 4, 6) is X and name("X", 4, 7) is not X


SPAN = loop("k", 3)
WRITTEN: list[tuple[Node, str, tuple[int, ...]]] = [
    (View(X, Index((FIRST, ALL))), "X[:2]", (2, 6)),
    (View(V, Index((NEW, ALL))), "V[None, :]", (1, 6)),
    (View(X, Index((ALL, Range(step=-1)))), "X[:, ::-1]", (4, 6)),
    (View(X, Index((Range(as_expr(-1)),))), "X[-1:]", (1, 6)),
    (View(X, Transpose((1, 0))), "X.T", (6, 4)),
    (View(Apply(ADD, (X, V)), Reshape(sizes(2, 12))), "(X + V).reshape(2, 12)", (2, 12)),
    (View(V, Pad((sizes(1, 2),))), "jnp.pad(V, (1, 2))", (9,)),
    (Apply(MULTIPLY, (Number(2.0), Apply(ADD, (X, V)))), "2.0 * (X + V)", (4, 6)),
    (Einsum("ij,j->i", (X, V)), 'jnp.einsum("ij,j->i", X, V)', (4,)),
    (Reduced("sum", X, (1,), keep=True), "jnp.sum(X, axis=1, keepdims=True)", (4, 1)),
    (Stacked((V, V), 0), "jnp.stack([V, V], axis=0)", (2, 6)),
    (Joined((X, X), 1), "jnp.concatenate([X, X], axis=1)", (4, 12)),
    (Full(sizes(2), Number(0), "int32"), "jnp.zeros((2,), jnp.int32)", (2,)),
    (
        Total(Each(View(V, Index((Range(SPAN.axis, SPAN.axis + 4),))), (SPAN,))),
        "sum(V[k:k + 4] for k in range(3))",
        (4,),
    ),
    (Gather(X, (AT,)), "X[I]", (3, 6)),
    (Gather(X, (None, AT)), "X[:, I]", (4, 3)),
]


@pytest.mark.parametrize(("node", "text", "shape"), WRITTEN, ids=[text for _, text, _ in WRITTEN])
def test_text_and_shape(node: Node, text: str, shape: tuple[int, ...]) -> None:
    assert Printer({}).text(node) == text
    assert tuple(map(int, node.shape)) == shape
    verify_node(node, NAMES)


def test_the_variable_of_a_loop_is_no_name_that_is_read_in_it() -> None:
    k = name("k", 6)
    moved = View(k, Index((Range(SPAN.axis, SPAN.axis + 4),)))
    assert Printer({}).text(Total(Each(moved, (SPAN,)))) == "sum(k[i:i + 4] for i in range(3))"


def test_symbolic_sizes_are_written_as_the_function_calls_them() -> None:
    n = Var("n")
    v = name("v", n)
    node = View(v, Index((Range(None, n - 1),)))
    assert Printer({n: "n_1"}).text(node) == "v[:n_1 - 1]"


REFUSED: list[tuple[Node, str]] = [
    (name("Y", 3), "Y is read before it is assigned"),
    (name("X", 4, 5), "X has the shape"),
    (name("V", 6, dtype="int32"), "V is float32, and is read as int32"),
    (Apply(ADD, (X, name("X", 4, 6), AT)), "do not fit"),
    (View(X, Index((as_expr(4),))), "the entry .* of a dimension of 4"),
    (View(V, Index((Range(None, as_expr(7)),))), "of a dimension of 6"),
    (View(V, Index((ALL, ALL))), "2 entries for 1 dimensions"),
    (View(X, Reshape(sizes(5, 5))), "has not as many elements"),
    (View(X, Transpose((0, 0))), "is no order of 2 dimensions"),
    (View(X, Pad((sizes(1, 1),))), "widths"),
    (Broadcast(V, sizes(4, 5)), "is repeated to"),
    (Stacked((V, X), 0), "parts of shapes"),
    (Joined((X, V), 0), "parts of shapes"),
    (Einsum("ij,j->i", (X, AT)), "ij,j->i: j is 6 and 3"),
    (Reduced("sum", V, (1,)), "of 1 dimensions"),
    (Gather(V, (AT, AT)), "2 positions for 1 dimensions"),
    (Scatter(V, (AT,), "add", name("X", 4, 6)), "at positions of"),
    (Updated(X, View(X, Index((FIRST,))), (3, 0)), "leaves"),
]


@pytest.mark.parametrize(("node", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_has_no_meaning_is_refused(node: Node, message: str) -> None:
    with pytest.raises(ArrayError, match=message):
        verify_node(node, NAMES)


@pytest.mark.usefixtures("x64")
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(definitions(stages=(1, 2)))
def test_what_is_lowered_has_a_meaning(definition: Definition) -> None:
    tensors = [definition.output]
    for platform in ("cpu", "gpu", "tpu"):
        verify_program(lower("forward", inputs_of(tensors), tensors, Policy(platform)))


def test_what_is_lowered_is_verified_in_debug_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    x = te.placeholder((4, 6), name="X")
    y = te.compute((6,), lambda i: x[0, i] * 2.0, "Y")
    monkeypatch.setattr(evaluator, "apply_steps", lambda node, *_: View(node, Index((as_expr(4), ALL))))
    with pytest.raises(ArrayError, match="forward: Y: View: the entry 4 of a dimension of 4"):
        lower("forward", [x], [y], Policy(debug=True))
    assert lower("forward", [x], [y], Policy(debug=False))
