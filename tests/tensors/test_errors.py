"""Every bad definition is refused with what is wrong, where, and what to do."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

X = te.placeholder((34, 4), name="X")
V = te.placeholder((8,), name="V")
M = te.var("m", at_least=4)
I = te.placeholder((8,), "int32", name="I")  # noqa: E741
k = te.reduce_axis((0, 4), "k")


def define(fn, shape=(8,), name="Y"):
    return lambda: te.compute(shape, fn, name)


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (
            lambda: te.compute((32,), lambda i: te.sum(X[i + k, 0], te.reduce_axis((0, 4), "k")), "Y"),
            te.DefinitionError,
            "axis k: it is a reduction axis used outside its reduction",
        ),
        (
            lambda: te.compute((33,), lambda i: te.sum(X[i + k, 0], k), "Y"),
            te.RangeError,
            r"X\[i \+ k, 0\] reads X\[34\] at i=3[12], k=[23], but axis 0 of X has 34 elements(.|\n)*\^\^\^\^\^",
        ),
        (define(lambda i: V[i - 1]), te.RangeError, r"reads V\[-1\] at i=0, but axis 0 of V has 8"),
        (define(lambda i: te.select(i > 1, V[i + 1], 0.0)), te.RangeError, "V\\[8\\] at i=7"),
        (define(lambda i: X[i]), te.ShapeError, r"X\[i\] has 1 index, but X has 2 axes \(34, 4\)"),
        (define(lambda i: V[i, 0]), te.ShapeError, "one index for each axis"),
        (define(lambda i, j: V[i]), te.DefinitionError, r"takes 2 axes \(i, j\), but the shape has 1"),
        (define(lambda i: V[k]), te.DefinitionError, "axis k.*te.sum"),
        (define(lambda i: te.sum(V[i], axis=i)), te.DefinitionError, "i: that is an output axis"),
        (define(lambda i: te.sum(V[i], axis=0)), te.DefinitionError, "te.reduce_axis.*te.ops"),
        (define(lambda i: te.sum(V[i] * V[k], axis=[k, k])), te.DefinitionError, r"sum over \w+ twice; each reduction axis"),
        (define(lambda i: te.sum(te.sum(V[k], axis=k) * V[k], axis=k)), te.DefinitionError, "over the same axis"),
        (define(lambda i: te.sum(V[k], axis=[])), te.DefinitionError, "no axis"),
        (define(lambda i: None), te.DefinitionError, "returns nothing"),
        (define(lambda i: np.ones(8)), te.DefinitionError, "returns a ndarray"),
        (define(lambda i: V), te.DefinitionError, r"whole tensor V.*V\[i\]"),
        (define(lambda i: [V[i]] * 0), te.DefinitionError, "empty tuple"),
        (define(lambda i: V[i * i]), te.RangeError, r"reads V\[9\] at i=3"),
        (define(lambda i: V[i**i]), te.IndexExpressionError, "not affine.*I\\[i\\]"),
        (define(lambda i: V[i * k], (8,)), te.DefinitionError, "k"),
        (define(lambda i: V[i / 2]), te.IndexExpressionError, "dtype float32"),
        (define(lambda i: V[i // i]), te.IndexExpressionError, "positive constant"),
        (define(lambda i: V[i // 0]), te.IndexExpressionError, "by 0"),
        (define(lambda i: V[0:2]), te.DefinitionError, "not with slices"),
        (define(lambda i: V[V[i]]), te.IndexExpressionError, "te.cast"),
        (define(lambda i: V[i] if V[i] > 0 else 0.0), te.DefinitionError, "truth value.*te.select"),
        (define(lambda i: te.const(np.ones(2))), te.DefinitionError, "takes a number, not ndarray"),
        (define(lambda i: te.const(300, "int8")), te.DefinitionError, "int8 holds -128 to 127"),
        (define(lambda i: I[i] ** -1), te.DtypeError, "an integer has no power -1.*te.cast"),
        (lambda: I ** (-2), te.DtypeError, "an integer has no power -2"),
        (
            lambda: te.recurrence((8,), lambda h, t: h[t - 1] + I[t], init=0.7, dtype="int32", name="h"),
            te.DtypeError,
            "init of h is `0.7` of dtype float32, h is int32; cast init with te.cast",
        ),
        (
            lambda: te.recurrence((8,), lambda h, t: h[t - 1] + I[t], init=V, dtype="int32"),
            te.DtypeError,
            "init of h is `V.*` of dtype float32, h is int32",
        ),
        (
            lambda: te.recurrence((8,), lambda h, t: h[t - 1] + V[t], init=0.0, name=3),
            te.ArgumentError,
            "a name of te.recurrence is int 3; give a string",
        ),
        (define(lambda i: V[i], (8,), 3), te.ArgumentError, "the name of a te.compute is int 3; give a string"),
        (lambda: te.placeholder((3,), name=3), te.ArgumentError, "the name of a te.placeholder is int 3"),
        (lambda: te.reduce_axis((0, 3), name=3), te.ArgumentError, "the name of a te.reduce_axis is int 3"),
        (lambda: te.compute((4, 5), lambda i: V[i], "out"), te.DefinitionError, r"the body of out takes 1 axis \(i\)"),
        (lambda: te.ops.lrn(np.ones((1, 3)), 0), te.ShapeError, "te.ops.lrn: size"),
        (
            lambda: te.ops.conv2d(np.ones((1, 5, 3, 5)), np.ones((3, 3, 3, 2)), layout="NHCW"),
            te.ShapeError,
            "layout='NHCW' for 4 axes; layouts are NCW, NWC",
        ),
        (lambda: te.clip_gradient(V, 1, -1), te.ArgumentError, r"te.clip_gradient\(V, 1, -1\): no number lies"),
        (
            lambda: te.cost(te.compute((te.var("n"),), lambda i: 1.0), {"n": 0}),
            te.ArgumentError,
            "the size n of te.cost is 0; give an integer of at least 1",
        ),
        (
            lambda: te.cost(te.compute((M,), lambda i: 1.0), {M: 3}),
            te.ArgumentError,
            "the size m of te.cost is 3; give an integer of at least 4",
        ),
        (define(lambda i: te.const(-1, "uint8")), te.DefinitionError, "uint8 holds 0 to 255"),
        (define(lambda i: te.const(float("nan"), "int32")), te.DefinitionError, "int32 holds"),
        (define(lambda i: sum(V)), te.DefinitionError, "cannot be iterated"),
        (lambda: te.compute((-1,), lambda i: 0.0, "Y"), te.ShapeError, "axis 0 of Y is -1"),
        (lambda: te.placeholder((2**31,), name="big"), te.ShapeError, "overflows"),
        (lambda: te.placeholder((2**30, 2**30, 2**30), name="big"), te.ShapeError, "64 bits"),
        (lambda: te.placeholder((2.5,), name="half"), te.ShapeError, "axis 0 of half is 2.5"),
        (lambda: te.placeholder(None, name="none"), te.ShapeError, "tuple"),
        (lambda: te.placeholder((3,), "float8"), te.DtypeError, "float8"),
        (lambda: te.reduce_axis((3, 1), "k"), te.ShapeError, "k runs from 3 to 1"),
        (lambda: te.reduce_axis((0, float("inf")), "k"), te.ShapeError, "k: inf"),
        (lambda: te.reduce_axis(5, "k"), te.ShapeError, r"\(0, 5\)"),
        (lambda: te.reduce_axis((0, 2**40), "k"), te.ShapeError, "overflows"),
        (lambda: V + te.placeholder((7,), name="W"), te.ShapeError, "V and W.*8 and 7"),
        (lambda: bool(V), te.DefinitionError, "truth value"),
        (define(lambda i: te.max(V[k], k, ties="none")), te.DefinitionError, "'even'"),
        (define(lambda i: te.sum(V[k], k, where=V[k])), te.DtypeError, "predicate"),
        (define(lambda i: te.argmin(V[i], te.reduce_axis((2, 2), "q"))), te.ShapeError, "argmin over q: .* 2 to 2 is empty.*te.min"),
        (define(lambda i: np.exp(V[i])), te.DefinitionError, "np.exp is a function of arrays.*te.exp"),
        (define(lambda i: np.maximum(V[i], 0)), te.DefinitionError, "np.maximum .* te.maximum"),
        (define(lambda i: np.where(V[i] > 0, V[i], 0)), te.DefinitionError, "te.select for np.where"),
        (lambda: jnp.asarray(V), te.DefinitionError, "an array of JAX is asked for.*te.constant"),
        (lambda: np.sum(V), te.DefinitionError, "np.sum is a function of arrays.*te.reduce_axis"),
        (lambda: np.add.reduce(V), te.DefinitionError, "np.add is a function of arrays"),
        (define(lambda i: np.ones(8) * V[i]), te.DefinitionError, "arrays enter a definition as te.placeholder"),
        (lambda: np.array([{}, {}]) * V, te.DtypeError, "give an array of numbers"),
        (lambda: te.constant([[1, 2], [3]], "G"), te.DefinitionError, "te.constant G: .* rows of equal lengths"),
        (lambda: jax.jit(lambda g: te.constant(g, "G"))(np.ones(3)), te.DefinitionError, "te.constant G: .* an argument"),
        (define(lambda i: np.ones(8)[i]), te.DefinitionError, r"te\.constant\(G\)\[i\]"),
        (define(lambda i: V[i] == jnp.ones(8)), te.DefinitionError, "arrays enter a definition as te.placeholder"),
    ],
)  # fmt: skip
def test_bad_definitions(attempt, error, message) -> None:
    with pytest.raises(error, match=message):
        attempt()


def test_tracers_are_no_extents() -> None:
    def traced(n):
        return te.placeholder((n,), name="X")

    with pytest.raises(te.ShapeError, match="static"):
        jax.jit(traced)(3)

    with pytest.raises(te.ShapeError, match="static"):
        jax.jit(lambda n: te.reduce_axis((0, n), "k"))(jnp.int32(3))


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap])
@pytest.mark.parametrize("number", [lambda s: s, te.const])
def test_tracers_are_no_numbers(transform, number) -> None:
    """Not under ``jax.grad`` either, where they have a value: its derivative would be lost."""

    def scaled(s):
        fn = te.function(lambda v: te.compute((8,), lambda i: v[i] * number(s), "y"))
        return fn(np.ones(8, "float32")).sum()

    with pytest.raises(te.DefinitionError, match=r"has no value yet.*as an argument.*s\[\(\)\]"):
        transform(scaled)(jnp.ones(2) if transform is jax.vmap else 2.0)


def test_an_argmax_over_a_range_that_the_arrays_make_empty() -> None:
    n = te.var("n")
    A = te.placeholder((2, n), name="A")
    after = te.reduce_axis((1, n), "k")
    Y = te.compute((2,), lambda i: te.argmax(A[i, after], axis=after), "Y")
    assert te.interpret(Y, {A: np.float32([[5, 1, 2], [5, 2, 1]])}).tolist() == [1, 0]
    with pytest.raises(te.FeedError, match="argmax over k, whose range from 1 to n is empty"):
        te.interpret(Y, {A: np.ones((2, 1), "float32")})
    with pytest.raises(ValueError, match="non-empty"):  # of JAX
        te.evaluate(Y, {A: np.ones((2, 1), "float32")})


def test_a_guard_that_excludes_the_point_allows_the_read() -> None:
    te.compute((8,), lambda i: te.select(i > 0, V[i - 1], 0.0))
    te.compute((8,), lambda i: te.sum(V[i + k], k, where=i + k < 8))


@pytest.mark.parametrize(
    "name",
    [
        "x); import os #",
        "class",
        "def",
        "名前",
        "",
        "a b",
        '"""',
        "x\ny",
        "jnp",
        "lax",
        "jax",
        "X'",
        "\\",
        "{0}",
        "forward",
    ],
)
def test_names_are_only_labels(name: str) -> None:
    a, b = te.placeholder((3,), name=name), te.placeholder((3,), name=name)
    y = te.compute((3,), lambda i: a[i] * b[i], name)
    (da,) = te.differentiate(y, [a], te.placeholder((3,), name=name))
    code = te.source(da)
    compile(code, "emitted", "exec")
    module: dict = {}
    exec(code, module)
    assert "os" not in module
    feeds = {t: np.float32([1, 2, 3]) for t in (b, da.inputs[0])}
    np.testing.assert_allclose(np.asarray(te.evaluate(da, feeds)), [1, 4, 9])
    np.testing.assert_allclose(np.asarray(te.evaluate(y, {a: feeds[b], b: feeds[b]})), [1, 4, 9])
