"""The text of functions and modules: readable, harmless, the same in every process, and not too deep."""

from __future__ import annotations

import ast
import keyword
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.code.lines import Names, identifier, sources_of
from jaxte.lower.program.emit import function_text, module_text
from jaxte.lower.program.plan import lower
from tests.lowered import check, one, program_of, sources, text_of

X = te.placeholder((4, 6), name="X")
b = te.placeholder((6,), name="b")


def test_a_module_reads_as_written_by_hand() -> None:
    W = te.placeholder((5, 6), name="W")
    k = te.reduce_axis((0, 6), "k")
    Y = te.compute((4, 5), lambda i, j: te.sum(X[i, k] * W[j, k], axis=k), "Y")
    Z = te.compute((4, 5), lambda i, j: te.relu(Y[i, j] + b[j]), "Z")
    assert (
        text_of(Z)
        == '''\
"""Written by jaxte: index expressions and their adjoints as JAX code."""

import jax
import jax.numpy as jnp
from jax import lax


def forward(X, W, b):
    """Y[i, j] = sum(X[i, k] * W[j, k] for k in [0, 6))
    Z[i, j] = relu(Y[i, j] + b[j])
    """
    with jax.named_scope("Y"):
        Y = jnp.einsum("ik,jk->ij", X, W)
    with jax.named_scope("Z"):
        Z = jax.nn.relu(Y + b[None, :5])
    return Z
'''
    )


def test_epilogue_title_and_several_results() -> None:
    Y = te.compute((4, 6), lambda i, j: X[i, j] * 2, "Y")
    program = lower("two", [X], [Y, X])
    text = module_text([program], "again = two", "Twice")
    assert text.startswith('"""Twice"""\n') and text.endswith("\nagain = two\n")
    assert function_text(program).endswith("    return (Y, X)\n")
    namespace: dict = {}
    exec(text, namespace)
    doubled, same = namespace["again"](np.ones((4, 6), "float32"))
    assert (doubled == 2).all() and (same == 1).all()


def test_computed_parameters_cut_the_graph() -> None:
    Y = te.compute((4, 6), lambda i, j: te.exp(X[i, j]), "Y")
    Z = te.compute((4, 6), lambda i, j: Y[i, j] + b[j], "Z")
    program = lower("back", [Y, b], [Z])
    assert sources_of(program) == ["Y + b[None, :]"]
    with pytest.raises(
        te.LoweringError, match="back: X is needed but is none of the parameters b; pass it in"
    ):
        lower("back", [b], [Z])


def test_a_tensor_read_often_is_computed_once() -> None:
    Y = te.compute((4, 6), lambda i, j: te.exp(X[i, j]), "Y")
    Z = te.compute((4, 6), lambda i, j: Y[i, j] * Y[3 - i, j] + Y[i, 5 - j], "Z")
    assert "\n".join(check(Z)).count("jnp.exp") == 1


def test_shared_parts_of_a_body_are_named_once() -> None:
    def body(i):
        value = b[i]
        for _ in range(40):
            value = value * value + value
        return value

    Y = te.compute((6,), body, "Y")
    assert len(sources(Y)) <= 81 and len(text_of(Y)) < 10_000
    check(te.compute((6,), lambda i: te.sin(b[i]) * te.sin(b[i]) + te.cos(te.sin(b[i])), "Y"))


def test_sums_of_shared_products_and_sums() -> None:
    """Two to the power of fifty factors, or terms, if they were written out."""

    def body(start, double):
        value = start
        for _ in range(50):
            value = double(value)
        return value

    k = te.reduce_axis((0, 6), "k")
    check(te.compute((), lambda: te.sum(body(b[k], lambda v: v * v * 0.5), axis=k), "Y"))
    check(te.compute((), lambda: te.sum(body(b[k] * X[0, k], lambda v: (v + v) * 0.5), axis=k), "Y"))


NAMES = ["x); import os #", 'a"""b', "\\", "lambda", "jnp", "jax", "lax", "print", "é", "", "1st", "a\nb", "Y", "__import__('os')", "{0}", "forward"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_are_only_labels(name: str) -> None:
    T = te.placeholder((3,), name=name)
    size = te.var(name or "n")
    U = te.placeholder((size, 3), name=name)
    k = te.reduce_axis((0, 3), name)
    Y = te.compute((3,), lambda i: T[i] * 2 + 1, name)
    Z = te.compute((size,), lambda i: te.sum(U[i, k] * Y[k], axis=k), name)
    check(Z)
    tree = ast.parse(text_of(Z))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {alias.name for node in imports for alias in node.names} <= {
        "jax",
        "jax.numpy",
        "lax",
        "functools",
    }
    stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    assert all(
        n.isascii() and not keyword.iskeyword(n) and n not in ("jax", "jnp", "lax", "print") for n in stored
    )
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    assert not called


def test_identifiers() -> None:
    assert [identifier(n) for n in ("", "2x", "a b", "ü", "a" * 100)] == ["t", "t2x", "a_b", "t", "a" * 40]
    names = Names()
    assert [names.new("Y"), names.new("Y"), names.numbered("Y"), names.new("for")] == [
        "Y",
        "Y_1",
        "Y_2",
        "for_1",
    ]


def test_two_thousand_tensors() -> None:
    chain = X
    for _ in range(2000):
        chain = _next(chain)
    start = time.process_time()
    text = text_of(chain)
    assert time.process_time() - start < 10  # linear: a second or so
    compile(text, "<emitted>", "exec")
    assert text.count("named_scope") == 2000


def _next(previous: te.Tensor) -> te.Tensor:
    return te.compute((4, 6), lambda i, j: previous[i, j] * 0.999 + 1.0, "T")


def test_an_expression_two_thousand_levels_deep() -> None:
    def body(i):
        value = b[i]
        for _ in range(1000):
            value = te.sin(value) + 0.5
        return value

    Y = te.compute((6,), body, "Y")
    found = check(Y)
    assert max(map(len, found)) < 120


def test_a_chain_of_a_thousand_selects() -> None:
    def body(i):
        value = b[i]
        for n in range(1000):
            value = te.select(value > n, value - 1.0, value * 0.5)
        return value

    start = time.process_time()
    check(te.compute((6,), body, "Y"))
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    ("tensor", "source"),
    [
        (
            one((6,), lambda i: te.select(b[i] > 0, 1.0, 0.0)),
            "jnp.where(b > 0, 1.0, 0.0).astype(jnp.float32)",
        ),
        (one((6,), lambda i: te.cast(b[i] > 0, "float32")), "(b > 0).astype(jnp.float32)"),
        (one((), lambda: 2.5), "jnp.float32(2.5)"),
        (one((3,), lambda i: float("-inf")), "jnp.full((3,), -jnp.inf, jnp.float32)"),
        (one((6,), lambda i: 1 / b[i] ** 2), "1 / b ** 2"),
        (one((6,), lambda i: -(b[i] - (b[i] - 1))), "-(b - (b - 1))"),
    ],
)
def test_scalars(tensor: te.Tensor, source: str) -> None:
    assert check(tensor) == [source]


def test_complex_values() -> None:
    C = te.placeholder((6,), "complex64", "C")
    check(te.compute((6,), lambda i: te.real(C[i]) * te.conj(C[5 - i]) + 2j, "Y"))
    k = te.reduce_axis((0, 6), "k")
    check(te.compute((), lambda: te.sum(C[k] * te.const(1 + 1j, "complex64"), axis=k), "Y"))


def test_an_extern_node_is_called_once() -> None:
    calls = []

    def halves(x):
        calls.append(1)
        return x[:2], x[2:]

    low, high = te.extern((jax.ShapeDtypeStruct((2,), "float32"), jax.ShapeDtypeStruct((2,), "float32")), halves, [te.placeholder((4,), name="T")])  # fmt: skip
    Y = te.compute((2,), lambda i: low[i] * high[i], "Y")
    program = program_of(Y)
    namespace = dict(program.externs)
    exec(module_text([program]), namespace)
    calls.clear()
    value = namespace["forward"](np.arange(4, dtype="float32"))
    assert len(calls) == 1 and list(value) == [0, 3]


def test_functions_take_numpy_arrays_outside_of_jit(rng: np.random.Generator) -> None:
    """The text is pasted elsewhere and called as it stands: NumPy's arrays have no ``.at``."""
    at, to = (te.placeholder((5,), "int32", name) for name in ("at", "to"))
    e = te.reduce_axis((0, 5), "e")
    Y = te.compute((4, 6), lambda i, j: te.sum(X[at[e], j] * b[to[e]], axis=e, where=to[e] == i), "Y")
    feeds = {X: rng.standard_normal((4, 6)).astype("float32"), b: rng.standard_normal(6).astype("float32")}
    feeds |= {t: rng.integers(0, 4, 5).astype("int32") for t in (at, to)}
    program = lower("two", list(feeds), [Y])
    text = function_text(program)
    assert "    X, b = map(jnp.asarray, (X, b))\n" in text and "\n    at = " not in text
    namespace: dict = {}
    exec(module_text([program]), namespace)
    np.testing.assert_allclose(namespace["two"](*feeds.values()), te.interpret(Y, feeds), rtol=1e-5)
    rows = te.compute((5, 6), lambda n, j: X[at[n], j], "rows")
    assert "    X = jnp.asarray(X)\n" in function_text(lower("one", [X, at], [rows]))
    assert "asarray" not in function_text(lower("none", [X], [te.compute((4,), lambda i: X[i, 0], "first")]))


DERIVED = {  # what NumPy's arrays make of themselves is an array of NumPy too
    "scaled": (lambda i, j: 2.0 * X[i, j] + 1.0, "X = jnp.asarray(X)"),
    "sliced": (lambda i, j: -X[3 - i, j], "X = jnp.asarray(X)"),
    "of two": (lambda i, j: X[i, j] * b[j], "X, b = map(jnp.asarray, (X, b))"),
    "made by JAX": (lambda i, j: te.exp(X[i, j]) * b[j], ""),
    "added to what JAX makes": (lambda i, j: X[i, j] + te.exp(b[j]), ""),
}


@pytest.mark.parametrize("case", DERIVED)
def test_what_is_gathered_from_may_be_made_of_numpy_arrays(case: str, rng: np.random.Generator) -> None:
    body, conversion = DERIVED[case]
    at = te.placeholder((5,), "int32", "at")
    T = te.compute((4, 6), body, "T")
    rows = te.compute((5, 6), lambda n, j: T[at[n], j] * b[j], "rows")
    feeds = {X: rng.standard_normal((4, 6)).astype("float32"), b: rng.standard_normal(6).astype("float32")}
    feeds |= {at: rng.integers(0, 4, 5).astype("int32")}
    program = lower("rows_of", list(feeds), [rows])
    text = module_text([program])
    assert [line.strip() for line in text.splitlines() if "asarray" in line] == [conversion] * bool(
        conversion
    )
    namespace: dict = {}
    exec(text, namespace)
    np.testing.assert_allclose(
        namespace["rows_of"](*feeds.values()), te.interpret(rows, feeds), rtol=1e-5, atol=1e-6
    )


def test_a_function_that_another_one_contains_calls_it() -> None:
    Y = te.compute((4, 6), lambda i, j: te.exp(X[i, j]), "Y")
    Z = te.compute((4, 6), lambda i, j: Y[i, j] * Y[3 - i, j], "Z")
    forward, saving = lower("forward", [X], [Z]), lower("saving", [X], [Z, Y])
    text = module_text([forward, saving])
    namespace: dict = {}
    exec(text, namespace)
    assert text.count("jnp.exp") == 1 and "return saving(X)[0]" in text
    x = np.ones(X.shape, "float32")
    np.testing.assert_array_equal(namespace["forward"](x), namespace["saving"](x)[0])
    other = lower("other", [X], [te.compute((4, 6), lambda i, j: X[i, j] * 2, "Z"), Y])
    assert module_text([forward, other]).count("jnp.exp") == 2


@pytest.mark.parametrize("name", ["é", "日本", "", "fn", "fn" + "_" * 40, "forward", "_bwd"])
@pytest.mark.parametrize("kind", ["constant", "extern"])
def test_arrays_of_any_name_leave_the_names_of_the_module_alone(kind, name):
    """A name without an ASCII letter once made the function behind it ``fn``, which is the module's own."""
    x = te.placeholder((100,), name="x")
    made = {
        "constant": lambda: te.constant(np.arange(100, dtype="float32"), name),
        "extern": lambda: te.extern((100,), jnp.sin, [x], name),
    }
    other = made[kind]()
    fn = te.function([x], te.compute((100,), lambda i: x[i] * other[i], "y"))
    given = np.linspace(0, 1, 100, dtype="float32")
    expected = np.arange(100) if kind == "constant" else np.sin(given) + given * np.cos(given)
    for call in (fn, fn.custom_vjp):
        found = jax.grad(lambda x, call=call: jnp.sum(call(x)))(given)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert "no scatter" in str(te.explain(fn))


def test_how_arrays_of_real_numbers_are_kept_apart_takes_a_line() -> None:
    x = te.placeholder((4, 256, 3), name="x")
    turned = te.compute(x.shape, lambda i, k, c: te.exp(x[i, k, (c + 1) % 3]) - x[i, k, c], "turned")
    y = te.compute(x.shape, lambda i, k, c: turned[i, k, (c + 1) % 3] * turned[i, k, (c + 2) % 3], "y")
    text = te.source(te.function([x], y))
    assert "_apart(" in text and "_own(" not in text
    n = te.placeholder((4, 256, 3), "int32", "n")
    whole = te.compute(n.shape, lambda i, k, c: n[i, k, (c + 1) % 3] ** 3 - n[i, k, c], "whole")
    z = te.compute(n.shape, lambda i, k, c: whole[i, k, (c + 1) % 3] * whole[i, k, (c + 2) % 3], "z")
    text = module_text([lower("forward", [x, n], [y, z])])
    assert ("_own(" in text) is ("whole = _apart(" in text)
