"""te.evaluate, te.source, te.explain and te.extern."""

import ast
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.bridge.compiled import explain as report
from jaxte.bridge.compiled.explain import count
from tests.networks import conv, cross_entropy, dense, mlp, mlp_params, normal

pytestmark = pytest.mark.usefixtures("optimised")


@pytest.fixture
def graph(rng):
    X, W = te.placeholder((6, 5), name="X"), te.placeholder((5, 4), name="W")
    return X, W, dense(X, W), {X: normal(rng, 6, 5), W: normal(rng, 5, 4)}


# --- evaluate


def test_evaluate_agrees_with_interpret_in_every_form(graph) -> None:
    X, _, Y, feeds = graph
    Z = te.compute(X.shape, lambda i, j: te.tanh(X[i, j]), "Z")
    value = te.evaluate(Y, feeds)
    assert isinstance(value, jax.Array)
    np.testing.assert_allclose(value, te.interpret(Y, feeds), rtol=1e-5)
    listed = te.evaluate([Y, Z], feeds)
    assert isinstance(listed, list) and len(listed) == 2
    named = te.evaluate({"z": Z}, {X: feeds[X]})
    np.testing.assert_allclose(named["z"], np.tanh(feeds[X]), rtol=1e-5)


def test_evaluate_takes_a_differentiation_result(graph, rng) -> None:
    X, W, Y, feeds = graph
    H = te.placeholder(Y.shape, name="H")
    head = normal(rng, 6, 4)
    result = te.differentiate(Y, [X, W], H)
    found = te.evaluate(result, {**feeds, H: head})
    np.testing.assert_allclose(found[0], head @ feeds[W].T, rtol=1e-5)
    np.testing.assert_allclose(found[1], feeds[X].T @ head, rtol=1e-5)
    assert "jnp.einsum" in te.source(result)


def test_evaluate_binds_symbolic_sizes(rng) -> None:
    n = te.var("n")
    X = te.placeholder((n, 2 * n + 1), name="X")
    Y = te.compute((n,), lambda i: X[i, 2 * i + 1] * 2)
    x = normal(rng, 3, 7)
    np.testing.assert_allclose(te.evaluate(Y, {X: x}), 2 * x[np.arange(3), 2 * np.arange(3) + 1])


def test_evaluating_again_lowers_nothing(graph, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, Y, feeds = graph
    first = te.evaluate(Y, feeds)
    monkeypatch.setattr(sys.modules["jaxte.bridge.primitive.program"], "lower", None)
    np.testing.assert_array_equal(te.evaluate(Y, feeds), first)


def test_evaluate_works_under_jit(graph) -> None:
    X, W, Y, feeds = graph
    found = jax.jit(lambda x, w: te.evaluate(Y, {X: x, W: w}))(feeds[X], feeds[W])
    np.testing.assert_allclose(found, feeds[X] @ feeds[W], rtol=1e-5)


# --- source


def test_source_is_a_module_that_imports_only_jax_and_runs_alone(rng) -> None:
    params, x = mlp_params(rng), normal(rng, 6, 5)
    f = te.function(mlp)
    text = te.source(f, params, x)
    imported = [
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    ]
    assert set(imported) <= {"jax", "functools"}
    namespace: dict = {}
    exec(compile(text, "<pasted>", "exec"), namespace)
    leaves = jax.tree.leaves((params, x))
    fn = namespace["fn"]
    np.testing.assert_array_equal(fn(*leaves), f(params, x))
    pasted = jax.grad(lambda *a: fn(*a).sum(), tuple(range(5)))(*leaves)
    own = jax.tree.leaves(jax.grad(lambda p, x: f(p, x).sum(), (0, 1))(params, x))
    for a, b in zip(pasted, own, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)  # compiled, or one by one


def test_source_shows_formulas_in_docstrings(graph) -> None:
    X, W, Y, _ = graph
    module = ast.parse(te.source(te.function([X, W], Y)))
    functions = {n.name: ast.get_docstring(n) for n in module.body if isinstance(n, ast.FunctionDef)}
    assert "sum(X[i, k] * W[k, j]" in functions["forward"]
    assert "dX[" in functions["backward"] and "dW[" in functions["backward"]
    assert set(functions) == {
        "forward",
        "backward",
        "_fwd",
        "_bwd",
    }  # what is saved is at hand: no second forward pass


def test_source_of_tensors_and_of_structs(graph) -> None:
    *_, Y, _ = graph
    assert te.source(Y).count("def forward") == 1
    assert te.source([Y, Y]) and te.source((Y,))
    shapes = jax.ShapeDtypeStruct((2, 3), "float32"), jax.ShapeDtypeStruct((3, 4), "float32")
    assert te.source(dense, *shapes) == te.source(
        te.function(dense), np.ones((2, 3), "f4"), np.ones((3, 4), "f4")
    )


def test_source_and_explanation_of_tensors_are_of_what_is_evaluated() -> None:
    """So their text grows with the axes of a sum, not with the terms that it has."""

    def windows(count: int) -> te.Tensor:
        x = te.placeholder((40,), "float32", "x")
        ks = [te.reduce_axis((0, 3), f"k{q}") for q in range(count)]
        return te.compute((20,), lambda i: te.sum(x[sum(ks, start=i)], axis=tuple(ks)), "y")

    few, many = windows(6), windows(10)
    assert len(te.source([many])) < 2 * len(te.source([few])) < 5_000
    assert "y_over_k0" in te.explain([many]).forms and "y_over_k0" in te.source([many])
    adjoints = te.differentiate(many, [many.inputs[0]], head=te.placeholder((20,), "float32", "H"))
    assert len(te.source([many, *adjoints])) < 6_000  # which are planned, and know what they were made of


# --- explain


def test_explain_certifies_no_scatter(rng) -> None:
    found = te.explain(conv, normal(rng, 1, 2, 9, 9), normal(rng, 3, 2, 3, 3), 2)
    assert found.scatters == [] and "no scatter" in str(found)
    assert set(found.forms) >= {"conv", "dx", "dw"}
    assert found.forms["conv"].startswith("conv")
    assert found.counts["forward"].flops > 0 and found.counts["backward"].bytes > 0


def test_explain_compiles_when_its_counts_are_asked_for(x64, monkeypatch) -> None:
    compiled = []
    monkeypatch.setattr(report, "count", lambda *args: compiled.append(args) or count(*args))
    double = te.placeholder((4, 3), "float64", "D")
    found = te.explain(te.compute((4,), lambda i: double[i, 0] + double[i, 2], "s"))
    assert found.forms and not compiled
    with jax.enable_x64(False):  # counted as it was explained: two columns read, one written
        assert found.counts["forward"].bytes == 3 * 4 * 8
    assert found.counts and len(compiled) == 1


def test_explain_reports_scatters_with_their_reason(rng) -> None:
    def lookup(table, rows):
        return te.compute((rows.shape[0], 4), lambda i, j: table[rows[i], j], "lookup")

    found = te.explain(lookup, normal(rng, 5, 4), np.array([1, 1, 0], "int32"))
    (scatter,) = found.scatters
    assert scatter.reason and scatter.reason in str(found)
    assert "scatter left" in str(found) and "no scatter" not in str(found)


def test_explain_lists_refused_forms(rng) -> None:
    found = te.explain(conv, normal(rng, 1, 2, 9, 9), normal(rng, 3, 2, 3, 3))
    for refusals in found.refused.values():
        assert all(form and reason for form, reason in refusals)


def test_residuals_are_what_the_backward_pass_reads(rng) -> None:
    """Of dense, tanh, dense: the inputs that are read, and the result of tanh, but not its argument."""
    params, x = mlp_params(rng), normal(rng, 6, 5)
    saved = {s.tensor.name: s.bytes for s in te.explain(mlp, params, x).saved}
    assert saved == {"params_0_w": 80, "params_1_w": 48, "x": 120, "h0": 96}


def test_cheap_intermediates_are_computed_again(rng) -> None:
    """Given the reduction a, its function b costs no more than reading it; alone, b is kept."""

    def f(x, with_a):
        k = te.reduce_axis((0, x.shape[1]), "k")
        a = te.compute((3,), lambda i: te.sum(x[i, k], axis=k), "a")
        b = te.compute((3,), lambda i: te.tanh(a[i]), "b")
        return te.compute((3,), lambda i: b[i] * (a[i] if with_a else b[i]), "out")

    x = normal(rng, 3, 4)
    saved = [[s.tensor.name for s in te.explain(f, x, with_a).saved] for with_a in (True, False)]
    assert saved == [["a"], ["b"]]
    for with_a in (True, False):
        te.testing.check_grads(f, [x, with_a])


def test_small_residuals_stand_for_large_ones(rng) -> None:
    """Logits less the maximum of their row: the maxima are kept, not the differences."""
    x = normal(rng, 3, 40)
    found = {s.tensor.name: s.bytes for s in te.explain(te.ops.log_softmax, x).saved}
    assert found == {"x": 480, "largest": 12, "total": 12}
    te.testing.check_grads(te.ops.log_softmax, [x])


def test_reads_at_positions_that_are_data_are_kept(rng) -> None:
    def f(table, rows):
        a = te.compute(rows.shape, lambda e: te.tanh(table[rows[e]]), "a")
        return te.compute(rows.shape, lambda e: a[e] * a[e], "out")

    table, rows = normal(rng, 4), np.array([3, 0, 0, 2, 1], "int32")
    assert "a" in {s.tensor.name for s in te.explain(f, table, rows).saved}
    te.testing.check_grads(f, [table, rows])


def test_explain_of_tensors_has_no_backward_pass(graph) -> None:
    *_, Y, _ = graph
    found = te.explain(Y)
    assert list(found.choices) == ["forward"] and not found.saved
    assert found.forms == {"y": "einsum"}


def test_cost_is_exported(graph) -> None:
    *_, Y, _ = graph
    assert te.cost(Y).iterations == 6 * 5 * 4


# --- extern


def test_extern_runs_and_is_differentiated_by_jax(rng) -> None:
    A = te.placeholder((3, 3), name="A")
    inverse = te.extern((3, 3), jnp.linalg.inv, [A], name="inverse")
    Y = te.compute((3, 3), lambda i, j: te.exp(inverse[i, j]) * A[j, i], "Y")
    a = normal(rng, 3, 3) + 3 * np.eye(3, dtype="float32")
    f = te.function([A], Y)
    te.compare(f, lambda a: jnp.exp(jnp.linalg.inv(a)) * a.T, a, rtol=1e-4)
    assert "inverse" in f.source() and f.explain().forms["inverse"] == "extern"
    np.testing.assert_allclose(te.evaluate(Y, {A: a}), te.interpret(Y, {A: a}), rtol=1e-4)


def test_extern_with_several_outputs(rng) -> None:
    A = te.placeholder((4, 3), name="A")
    shapes = {"q": jax.ShapeDtypeStruct((4, 3), "float32"), "r": jax.ShapeDtypeStruct((3, 3), "float32")}

    def qr(a):
        q, r = jnp.linalg.qr(a)
        return {"q": q, "r": r}

    parts = te.extern(shapes, qr, [A])
    k = te.reduce_axis((0, 3), "k")
    Y = te.compute((4, 3), lambda i, j: te.sum(parts["q"][i, k] * parts["r"][k, j] ** 2, axis=k), "Y")
    only_r = te.compute((3, 3), lambda i, j: 2 * parts["r"][i, j], "only_r")

    def reference(a):
        q, r = jnp.linalg.qr(a)
        return q @ r**2, 2 * r

    te.compare(te.function([A], (Y, only_r)), reference, normal(rng, 4, 3), rtol=1e-3)


def test_extern_has_a_jacobian(rng) -> None:
    X = te.placeholder((3,), name="X")
    E = te.extern((3,), lambda x: jnp.cumsum(x) ** 2, [X], name="E")
    (J,) = te.differentiate(E, [X])
    x = normal(rng, 3)
    np.testing.assert_allclose(te.evaluate(J, {X: x}), jax.jacrev(lambda x: jnp.cumsum(x) ** 2)(x), rtol=1e-5)


def test_extern_functions_of_one_name_are_told_apart(rng) -> None:
    """The gradient of a gradient has several functions that are all called E_vjp."""
    X = te.placeholder((3,), name="X")
    E = te.extern((3,), lambda x: x**3, [X], name="E")
    F = te.extern((3,), jnp.sin, [E], name="E")
    (dX,) = te.differentiate(F, [X], te.compute((3,), lambda i: te.const(1.0, "float32"), "ones"))
    f = te.function([X], (F, dX))

    def reference(x):
        inner = lambda x: jnp.sin(x**3)  # noqa: E731
        return inner(x), jax.grad(lambda x: inner(x).sum())(x)

    te.compare(f, reference, normal(rng, 3), rtol=1e-4)
    assert "Expects in its globals: E_fn, " in f.source()


def test_extern_with_integer_input(rng) -> None:
    X, rows = te.placeholder((3,), name="X"), te.placeholder((2,), "int32", name="rows")
    E = te.extern((2,), lambda x, i: jnp.sin(x)[i], [X, rows])
    x, i = normal(rng, 3), np.array([2, 2], "int32")
    grad = jax.grad(lambda x: te.function([X, rows], E)(x, i).sum())(x)
    np.testing.assert_allclose(grad, jax.grad(lambda x: jnp.sin(x)[i].sum())(x), rtol=1e-5)


def test_extern_is_checked_when_it_is_defined() -> None:
    A = te.placeholder((3, 3), name="A")
    with pytest.raises(te.ShapeError, match=r"inv: the function returns shape \(3, 3\), not \(3,\)"):
        te.extern((3,), jnp.linalg.inv, [A])
    with pytest.raises(te.DtypeError, match="float32, not int32"):
        te.extern(jax.ShapeDtypeStruct((3, 3), "int32"), jnp.linalg.inv, [A])
    with pytest.raises(te.DefinitionError, match=r"numpy\.ndarray; give Tensors"):
        te.extern((3, 3), jnp.linalg.inv, [np.ones((3, 3))])
    with pytest.raises(te.ShapeError, match="as was said"):
        te.extern((3, 3), jnp.linalg.qr, [A])


def test_cross_entropy_explained(rng) -> None:
    """The label's one-hot row is a comparison, not a scatter."""
    found = te.explain(cross_entropy, normal(rng, 6, 3), np.zeros(6, "int32"))
    assert not found.scatters, found
