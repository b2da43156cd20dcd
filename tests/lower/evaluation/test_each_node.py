"""Each kind of node by itself: what NumPy makes of it is what its text is in JAX."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl

import jaxte as te
from jaxte.lang.expr import Expr, Reduce, Reducer, as_expr
from jaxte.lang.operators import ADD, GREATER, MULTIPLY, NEGATIVE, SELECT
from jaxte.lang.walk import postorder
from jaxte.lower.arrays import data, elementwise, loops, products, views
from jaxte.lower.arrays.elementwise import Apply, Full, Name, Number, Typed
from jaxte.lower.arrays.loops import Each, Parts, Tuple, loop
from jaxte.lower.arrays.node import ArrayError, Node, nodes_below
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.arrays.views import ALL, NEW, ONLY, Index, Pad, Range, Repeat, Reshape, Roll, Tile, Transpose
from jaxte.lower.printing import printer
from jaxte.lower.printing.data import FUNCTION
from jaxte.lower.program import prelude
from tests.lower.evaluation.frame import Frame
from tests.lower.evaluation.program import RULES


def name(identifier: str, *extents: int, dtype: str = "float32") -> Name:
    return Name(identifier, tuple(map(as_expr, extents)), (dtype, False))


def sizes(*extents: int) -> tuple[Expr, ...]:
    return tuple(map(as_expr, extents))


def pairs(*widths: tuple[int, int]) -> tuple[tuple[Expr, Expr], ...]:
    return tuple((as_expr(a), as_expr(b)) for a, b in widths)


X, Y, V, ONE = name("X", 4, 6), name("Y", 6, 5), name("V", 6), name("ONE", 1, 6)
IMAGE, KERNEL = name("IMAGE", 2, 4, 7), name("KERNEL", 6, 2, 3)
C, AT, OUT = name("C", 6, dtype="complex64"), name("AT", 3, dtype="int32"), name("OUT", 3, dtype="int32")
ORDER, START = name("ORDER", 4, dtype="int32"), name("START", dtype="int32")
PART = name("PART", 2, 6)
FIRST = Range(None, as_expr(2))
MINUS, ZERO_SIZE, ONE_SIZE = sizes(-1, 0, 1)
AT_END = Number(3)
SPAN, BACK = loop("k", 3), loop("k", 3, 2, backwards=True)


def reducer_of(arity: int) -> Reducer:
    """Compositions of affine maps, which do not commute; or of one value, a sum and a product."""
    k = te.reduce_axis((0, 2), "k")
    if arity == 1:
        own = te.comm_reducer(lambda a, b: a + b + a * b, lambda t: te.const(0, t), "one")
        body = te.compute((), lambda: own(te.placeholder((2,), name="A")[k], axis=k)).body
    else:
        own = te.comm_reducer(
            lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]),
            lambda s, t: (te.const(1, s), te.const(0, t)),
            "maps",
        )
        a = te.placeholder((2,), name="A")
        body = te.compute((), lambda: own((a[k], a[k]), axis=k)[1]).body
    return next(n for n in postorder(body) if isinstance(n, Reduce)).reducer


def item(values: Node, position: int, like: Node) -> Node:
    return loops.Item(values, position, like.shape, like.kind)


ONE_VALUE, MAPS = reducer_of(1), reducer_of(2)
SLICE = views.View(V, Index((Range(SPAN.axis, SPAN.axis + 4),)))
HALF = name("half", 2, 6)
HALVES = Each(Reduced("sum", HALF, (0,)), (Parts((HALF,), (X,), (0,), 2),))
SUMS = loops.Sums(Each(views.View(X, Index((ALL, Range(SPAN.axis, SPAN.axis + 4)))), (SPAN,)), (1,))
WINDOWS = (1, 2), pairs((0, 0), (1, 2)), (1, 2), (1, 2)
MAPPED = loops.Carried("step", (V,), X)
BINOMIAL = loops.Binomial("scaled", (V,), 9, 2)
REPLAYED = loops.Replayed(
    "scaled", "back", (V,), (item(BINOMIAL, 1, name("kept", 3, 6)),), (item(BINOMIAL, 0, V),), 9, 2, 1
)
NODES: list[Node] = [
    X,
    Number(2.5),
    elementwise.Size(as_expr(4) * 1),
    Typed(Number(3), "float32"),
    Full(sizes(2, 3), Number(2), "int32"),
    elementwise.Literal(sizes(2, 3), ((1.0, 0.5, -2.0), (0.0, 3.0, 1.5)), "float32"),
    elementwise.Arange(1, as_expr(8), 3),
    elementwise.Arange(5, as_expr(-1), -2, "int32"),
    views.View(X, Index((FIRST, ALL))),
    views.View(V, Index((NEW, Range(step=-1)))),
    views.View(X, Index((as_expr(-1), Range(as_expr(1), None, 2)))),
    views.View(ONE, Index((ONLY, ALL))),
    views.View(V, Pad(pairs((1, 2)))),
    views.View(X, Pad(pairs((1, 0), (2, 3)), "edge")),
    views.View(X, Roll((1, -2))),
    views.View(V, Roll((4,))),
    views.View(X, Reshape(sizes(2, -1))),
    views.View(X, Transpose((1, 0))),
    views.View(X, Repeat(1, as_expr(2))),
    views.View(X, Tile(1, as_expr(2), 2)),
    views.Broadcast(V, sizes(3, 6)),
    views.Padded(X, pairs((1, 0), (0, 2)), Number(7.0)),
    views.Spread(X, Typed(Number(5), "float32"), ((ONE_SIZE, ZERO_SIZE, 1), (MINUS, ONE_SIZE, 2))),
    views.Flip(X, (0, 1)),
    Apply(SELECT, (Apply(GREATER, (X, Number(0))), X, Number(0.5))),
    Apply(MULTIPLY, (Number(2.0), Apply(ADD, (X, V)))),
    elementwise.Cast(X, "int32"),
    elementwise.Cast(AT, "bool"),
    elementwise.Kept(X),
    products.Einsum("ij,jk->ki", (X, Y)),
    products.Einsum("ij->j", (X,), exact=True),
    products.Tensordot(X, Y),
    products.Convolution(IMAGE, KERNEL, (2,), pairs((1, 2)), (2,), (3,), ("NCX", "OIX", "NCX"), as_expr(2)),
    products.Convolution(
        IMAGE, KERNEL, (1,), pairs((1, 2)), (1,), (1,), ("CNX", "OIX", "CNX"), as_expr(2), by_batch=True
    ),
    products.Convolution(
        KERNEL, name("TAPS", 5, 2, 3), (1,), pairs((2, -1)), (1,), (1,), ("XNC", "OXI", "CXN")
    ),
    products.Fourier("rfft", V, (8,), (0,)),
    products.Fourier("irfft", C, (8,), (0,)),
    products.Fourier("rfft", X, (4, 8), (0, 1)),
    products.Fourier("irfft", name("D", 4, 5, dtype="complex64"), (4, 8), (0, 1)),
    Reduced("sum", X, (1,), keep=True),
    Reduced("max", X, None, start=Number(0.25)),
    Reduced("prod", AT, (0,)),
    Reduced("any", elementwise.Cast(AT, "bool"), (0,)),
    products.Position("argmax", X, 1),
    products.Position("argmin", X, 0),
    products.Combined(ONE_VALUE, (X,), (Typed(Number(0), "float32"),), (1,)),
    products.ReduceWindow("max", X, Typed(Number(-2), "float32"), (2, 3), *WINDOWS),
    products.ReduceWindow("sum", X, Typed(Number(0), "float32"), (2, 1), *WINDOWS),
    products.Cumulative("sum", X, 1),
    products.Cumulative("max", X, 0, reverse=True),
    products.Prefixes(ONE_VALUE, (X,), 1),
    item(products.Prefixes(MAPS, (X, X), 1), 1, X),
    item(products.Prefixes(MAPS, (X, X), 1, reverse=True), 1, X),
    loops.Joined((X, X), 1),
    loops.Stacked((V, V, V), 1),
    loops.Stacked((Each(SLICE, (SPAN,)),), 0),
    loops.Stacked((HALVES,), 1),
    loops.Joined((loops.Items(SUMS, 3, sizes(4), ("float32", False)),), 0),
    loops.JoinedItems((SUMS, SUMS), 0, sizes(24), ("float32", False)),
    loops.Total(Each(SLICE, (SPAN,))),
    loops.Total(Each(SLICE, (SPAN,)), 2),
    loops.Total(Each(views.View(V, Index((BACK.axis,))), (BACK,))),
    loops.Folded(ONE_VALUE, (X, X, V)),
    item(Tuple((X, V)), 1, V),
    loops.MapOver("double", X, X.shape, X.kind),
    loops.Scanned("step", (V,), (X,), X.shape, X.kind, reverse=True),
    item(MAPPED, 0, V),
    item(BINOMIAL, 1, name("kept", 3, 6)),
    item(REPLAYED, 0, V),
    data.Gather(X, (AT,)),
    data.Gather(X, (None, AT), data.CLIP),
    data.Gather(X, (OUT,), data.FILL, Number(9.0)),
    data.Gather(X, (OUT, OUT), data.FILL),
    data.Gather(X, (AT,), data.IN_BOUNDS),
    data.Scatter(X, (OUT,), "add", Number(1.0)),
    data.Scatter(
        X, (ORDER,), "set", views.View(X, Index((Range(step=-1),))), data.IN_BOUNDS, ("unique_indices",)
    ),
    data.Scatter(X, (None, AT), "max", Number(0.5)),
    data.OneHot(OUT, as_expr(3), "float32"),
    data.IfFinite(V, X, Apply(NEGATIVE, (X,))),
    data.IfFinite(Apply(ADD, (V, Number(float("nan")))), X, Apply(NEGATIVE, (X,))),
    data.Updated(X, PART, (1, 0)),
    data.Call("double", (X,), X.shape, X.kind),
    data.Output(Name("BOTH"), 1, V.shape, V.kind),
    data.Loaded(X, (None, None), (4, 6)),
    data.Kernel("blocks", 2, 2, (X,), (V,), (Y,), ((sizes(2, 6), "float32"),), "interpreter"),
    data.DynamicSlice(X, (START, None), (2, 6)),
    data.DynamicSlice(X, (START, START), (2, 3), typed=True),
    data.DynamicIndex(X, START, 0),
    data.DynamicUpdate(X, PART, START, 0),
]


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    found: dict[str, Any] = {}
    for node in nodes_below(*NODES):
        if isinstance(node, Name) and node.extents is not None:
            own = rng.standard_normal(tuple(map(int, node.extents)))
            found[node.identifier] = np.asarray(
                own + (1j * own**2 if node.dtype == "complex64" else 0)
            ).astype(node.dtype)
    found |= {"AT": np.int32([0, 3, 3]), "OUT": np.int32([5, -1, 2]), "ORDER": np.int32([2, 0, 3, 1])}
    return found | {"START": np.int32(1), "BOTH": (found["X"], found["V"])}


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_numpy_and_the_text_agree(node: Node) -> None:
    given = arrays()
    functions: dict[str, Any] = {"double": lambda x: 2 * x, "step": lambda total, x: (total + x, total * x)}
    functions["scaled"] = lambda x, t: (x * 0.9 + t.astype("float32"), None)
    functions["back"] = lambda s, t, x, here, behind: (s * x + 0.5 * here + 0.1 * behind, None)
    functions["blocks"] = lambda start, x, v, y: x * v + y[...].sum()
    found = Frame(RULES, given, functions, {}).value(node)
    modules = {"jnp": jnp, "jax": jax, "lax": lax, "functools": functools, "pl": pl}
    made = [FUNCTION, *prelude.BINOMIAL, prelude._FIRST, prelude._ADDED]
    exec("\n".join(["from math import comb", prelude._METADATA, *made]), modules)
    scope = modules | functions | {n: jax.tree.map(jnp.asarray, a) for n, a in given.items()}
    expected = np.asarray(eval(printer.Printer({}).text(node), scope))
    assert found.shape == expected.shape and (node.kind[1] or found.dtype == expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_all_kinds_are_printed_evaluated_and_tried() -> None:
    kinds = {c for own in (data, elementwise, loops, products, views) for c in classes_of(own)}
    assert set(RULES) == kinds == set(printer.RULES)
    assert {type(n) for n in nodes_below(*NODES)} == kinds


def classes_of(module: Any) -> list[type]:
    own = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
    return [c for c in own if issubclass(c, Node)]


WRONG: list[tuple[Node, str]] = [
    (data.Gather(X, (OUT,)), "a position is outside"),
    (data.Scatter(X, (AT,), "set", Number(0.0), flags=("unique_indices",)), "two positions are one"),
    (data.DynamicSlice(X, (AT_END, None), (2, 6)), "leaves a dimension of 4"),
    (name("X", 4, 5), r"its shape is \(4, 6\), and it says \(4, 5\)"),
    (name("X", 4, 6, dtype="int32"), "its dtype is float32"),
    (name("Z", 4), "read before it is assigned"),
]


@pytest.mark.parametrize(("node", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_not_as_it_says_is_an_error(node: Node, message: str) -> None:
    with pytest.raises(ArrayError, match=message):
        Frame(RULES, arrays(), {}, {}).value(node)
