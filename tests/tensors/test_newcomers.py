"""Programs that go wrong in a newcomer's first hour: each message says how to go on. Texts that are misspelled stand in
tests/frontends/text/test_messages.py, more than a hundred."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

x = te.placeholder((6,), name="x")
A = te.placeholder((4, 6), name="A")
k = te.reduce_axis((0, 6), "k")
twice = te.function(lambda x: te.compute(lambda i: 2 * x[i]))
shaped = te.function(lambda x: te.compute(x.shape, lambda i: 2 * x[i]))
ONES = np.ones(6, "float32")


def row(body: Callable[[Any], Any]) -> Any:
    return te.compute((4,), body)


def prefix() -> te.Expr:
    """A sum over an axis without a range."""
    k = te.axis("k")
    return te.sum(x[k], over=k)


PROGRAMS: list[tuple[Callable[[], Any], str]] = [
    (lambda: te.sun(x[k], over=k), "did you mean sum"),  # type: ignore[attr-defined]
    (lambda: te.jit, r"did you mean jax\.jit\?"),  # type: ignore[attr-defined]
    (lambda: te.arange, r"did you mean te\.ops\.arange\?"),  # type: ignore[attr-defined]
    (lambda: row(lambda i: x[-1]), r"positions do not count from the end: the last one is 5"),
    (lambda: te.facts.permutaton, r"did you mean permutation\?"),  # type: ignore[attr-defined]
    (lambda: te.draw.grph, r"did you mean graph\?"),  # type: ignore[attr-defined]
    (lambda: te.testing.check_grad, r"did you mean check_grads\?"),  # type: ignore[attr-defined]
    (lambda: setattr(x, "shape", (2, 3)), r"the shape of x cannot be assigned; te\.ops\.reshape"),
    (lambda: setattr(x, "dtype", "int32"), r"the dtype of x cannot be assigned; te\.ops\.cast"),
    (lambda: x.shpae, r"did you mean shape\?"),  # type: ignore[attr-defined]
    (lambda: te.define("x: float32(n)\nY[i] = x[i]")(ONES), r"a size is a keyword, n="),
    (
        lambda: row(lambda i: x[i].exp()),
        r"`x\[i\]` is a scalar of a definition; functions are called .* te\.exp",
    ),
    (lambda: te.reduce_axis(1, 3), r"give the range as a pair, \(1, 3\)"),  # type: ignore[arg-type]
    (
        lambda: te.einsum("sum(i j) -> i", A),
        r"sum is no function; a reduction is written sum\[k\]\(\.\.\.\) with its axis, or reduce='sum'",
    ),
    (lambda: te.norm(x[k], over=k, p=2), r"did you mean ord=\?"),  # type: ignore[call-arg]
    (lambda: te.define("Y[i] = x[i - 1]")(ONES), r"where every axis begins; shift the index"),
    (lambda: te.array([1.0]), r"did you mean te\.constant\?"),  # type: ignore[attr-defined]
    (lambda: te.ops.maxpool2d, "did you mean max_pool2d"),  # type: ignore[attr-defined]
    (lambda: x.sum(), r"te\.sum\(x\[k\], over=k\).*te\.ops\.sum\(x\)"),  # type: ignore[attr-defined]
    (lambda: A.T, r"a Tensor is no array; write what one element is.*te\.ops\.transpose\(x\)"),  # type: ignore[attr-defined]
    (lambda: A @ x, r"te\.ops\.matmul"),
    (lambda: te.constant([1j], dtype="float32"), r"complex numbers need a complex dtype, not float32"),
    (lambda: te.jvp(2 * x, [x], None), r"the tangents of te\.jvp are None; give one for each"),  # type: ignore[call-overload]
    (lambda: te.placeholder((2,), "complex64") // 2, r"floor_divide takes real values, not complex64"),
    (lambda: 2 % te.placeholder((2,), "complex64"), r"mod takes real values, not complex64"),
    (lambda: te.check_facts(3), r"te\.check_facts is given int 3; give \{tensor: array\}"),  # type: ignore[arg-type]
    (lambda: te.testing.check_grads(3, (ONES,)), r"is int 3; give a function or Tensors"),  # type: ignore[arg-type]
    (lambda: te.testing.check_grads(twice, (ONES,), order=0), r"is 0; give 1, 2"),
    (lambda: te.draw.reads(2 * x, x, "a"), r"has no element at 'a'"),  # type: ignore[arg-type]
    (lambda: twice(3), r"static and stay as they are, also within lists: give an array"),
    (lambda: shaped([1.0, 2.0]), r"list \[1.0, 2.0\] has no shape: numbers, .* static and stay as they are"),
    (lambda: shaped(None), r"None has no shape: numbers, .* static and stay as they are"),
    (lambda: te.choose(x[0], (1, 2)), r"the index of te.choose is .* of dtype float32; give an integer"),
    (lambda: twice(ONES, ONES), "too many positional arguments"),
    (lambda: te.evaluate(2 * x, {x: np.ones(6)}), r"float64, but 64-bit types are off .* \.astype"),
    (lambda: row(lambda i: te.sum(A[i, k])), r"pass over=te\.axis"),
    (lambda: row(lambda i: te.sum(A[i, k], axis=1)), "axes made by te.reduce_axis"),
    (lambda: row(lambda i: A[i, k]), r"put the use inside te\.sum"),
    (lambda: row(lambda i: A[i]), "one index for each axis"),
    (lambda: row(lambda i: x[i : i + 2]), "not with slices"),
    (lambda: A[1:], r"A\[1:\]: an element is read with .* not with slices"),
    (lambda: row(lambda i: A[i, "k"]), r"an axis of this name is te\.axis\('k'\)"),
    (lambda: te.compute(prefix()), r"is given the expression `sum\(x\[k\] for k\)`; give a function"),
    (
        lambda: te.function(lambda x: prefix())(ONES),
        r"make it a Tensor with te\.compute\(lambda: sum\(x\[k\] for k\)\)",
    ),
    (lambda: te.formula(twice), r"has no definition to write; give Tensors"),  # type: ignore[arg-type]
    (lambda: te.definitions([twice]), r"has no definition to write; give Tensors"),  # type: ignore[list-item]
    (lambda: te.define("Y[i] = x[i]")([1.0, 2.0]), r"x is a list; give an array"),
    (lambda: row(lambda i: x), r"return one element of it, as in x\[i\]"),
    (lambda: row(lambda i: None), "return the expression of one element"),
    (lambda: row(lambda i: x[i] if i > 2 else 0), r"use te\.select"),
    (lambda: row(lambda i: max(x[i], 0)), r"te\.maximum"),
    (lambda: row(lambda i: jnp.exp(x[i])), r"te\.exp"),
    (lambda: row(lambda i: x[i / 2]), "an index is an integer"),
    (lambda: row(lambda i: x[i + 3]), "shrink the range, pad the tensor, or guard the read"),
    (lambda: te.compute((4, 6), lambda i: x[i]), "one parameter for each axis"),
    (lambda: te.placeholder(6, "x"), "the dtypes of jaxte are"),
    (
        lambda: te.placeholder(4, 5),
        r"unknown dtype 5; .*; the extents of a shape are one argument, as in \(4, 5\)",
    ),  # type: ignore[arg-type]
    (lambda: te.define("y[i] = x[i] * w[i]", w=ONES), r"te\.define\(text\)\(w=\.\.\.\)"),  # type: ignore[arg-type]
    (lambda: te.softmax(x, over=k), r"te\.ops\.softmax\(x, axis=0\)"),
    (lambda: te.function(lambda x: x[0])(ONES), r"make it a Tensor with te\.compute"),
    (lambda: te.evaluate(row(lambda i: x[i]), {}), "give feeds an array for each input"),
    (lambda: te.differentiate(twice, [x]), r"te\.grad differentiates functions"),
    (lambda: te.placeholder((4,), "flot32"), r"unknown dtype 'flot32'; did you mean float32\?"),
    (lambda: te.placeholder(np.ones(3)), r"given as numpy.ndarray.*; give its \.shape"),
    (lambda: te.compute(x, lambda i: x[i]), r"given as Placeholder x.*; give its \.shape"),  # type: ignore[call-overload]
    (lambda: te.reduce_axis(5), r"give the range as a pair, \(0, 5\), not 5; te\.axis\('k'\)"),
    (lambda: te.compute(lambda i: x[i], (3,)), r"te\.var sizes first, and the function behind it"),  # type: ignore[call-overload]
    (lambda: te.compute("y", (3,), lambda i: x[i]), r"its order is te\.compute\(shape, fn, name\)"),  # type: ignore[call-overload]
    (lambda: row(lambda i: te.max(x[i], 0.0)), r"max over 0\.0: .*; of two values it is te\.maximum\(a, b\)"),
    (lambda: te.axis((0, 3)), r"an axis with a range is te\.reduce_axis"),  # type: ignore[arg-type]
    (lambda: te.indices("b b"), r"b stands twice in 'b b'"),
    (lambda: te.function(lambda y: y, sav="all"), r"keyword argument 'sav'; did you mean save=\?"),  # type: ignore[call-overload]
    (lambda: te.testing.check_grads(twice, ONES), r"give a tuple, one entry for each parameter"),
    (lambda: te.draw.graph(ONES), r"te\.draw\.graph draws .*; give a Tensor, or several"),
    (lambda: te.draw.reads("y", x, 0), r"te\.draw\.reads looks at is str 'y'; give Tensors"),
    (lambda: te.sum(x), r"te\.ops has the reductions of whole tensors"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("program", "said"), PROGRAMS, ids=[said[:20] for _, said in PROGRAMS])
def test_the_message_says_how_to_go_on(program: Callable[[], Any], said: str) -> None:
    with pytest.raises((te.JaxteError, AttributeError)) as found:
        program()
    assert re.search(f"(?s){said}", str(found.value)), found.value


@pytest.mark.parametrize("module", [te, te.ops])
def test_public_names_are_completed_and_no_others(module: Any) -> None:
    assert [name for name in dir(module) if not name.startswith("__")] == sorted(module.__all__)
