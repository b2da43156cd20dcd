"""Programs as users write them: mypy, which ``make test`` runs, knows the types that are asserted here, and finds the mistakes that are marked."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, assert_type, get_args

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Float, TypeCheckError, jaxtyped

import jaxte as te
from jaxte.bridge.functions.function import GraphFunction

X = te.placeholder((8, 34), name="X")
W = te.placeholder((3,), name="W")


@te.function
def smooth(x: te.Tensor, w: te.Tensor, scale: float = 1.0) -> te.Tensor:
    k = te.axis("k")
    assert_type(k, te.Axis)
    assert_type(k + 1, te.Expr)
    assert_type(2 * k, te.Expr)
    assert_type(k < 3, te.Expr)
    assert_type(-x[0, k] / 2.0, te.Expr)
    y = te.compute(lambda b, t: te.sum(x[b, t + k] * w[k], over=k), "y")
    assert_type(y, te.Compute)
    return te.compute(y.shape, lambda b, t: scale * te.tanh(y[b, t]), "z")


@te.function(static_argnames="n", save="nothing")
def windows(x: te.Tensor, n: int) -> tuple[te.Tensor, te.Tensor]:
    k = te.reduce_axis((0, n), "k")
    m = te.compute((x.shape[0],), lambda i: te.max(x[i, k], axis=k))
    return m, te.compute((x.shape[0],), lambda i: te.min(x[i, k], axis=k))


def loss(x: jax.Array) -> jax.Array:
    return jnp.sum(smooth(x, jnp.ones(3)) ** 2)


def test_functions() -> None:
    x = jnp.ones((8, 34))
    assert_type(smooth(x, jnp.ones(3)), jax.Array)
    assert_type(smooth(X, W, scale=2.0), te.Tensor)
    assert_type(windows(x, n=3), tuple[jax.Array, jax.Array])
    assert_type(te.function([X, W], smooth(X, W)), GraphFunction[jax.Array])
    assert smooth(x, jnp.ones(3)).shape == (8, 32)
    assert windows(x, n=3)[0].shape == (8,)


Params = dict[str, jax.Array]


def fit(params: Params, x: jax.Array, scale: float = 1.0) -> jax.Array:
    return scale * jnp.sum((x * params["w"]) ** 2)


def fit_with_name(params: Params, x: jax.Array) -> tuple[jax.Array, str]:
    return fit(params, x), "fit"


def test_a_gradient_has_the_parameters_of_its_function_and_the_type_of_its_argument() -> None:
    x = jnp.ones((8, 34))
    p = {"w": x}
    assert_type(te.grad(loss)(x), jax.Array)
    assert_type(te.grad(fit)(p, x, scale=2.0), Params)
    assert_type(te.grad(fit, 1)(p, x), jax.Array)
    assert_type(te.grad(fit, argnums=(0, 1))(p, x), tuple[Params, jax.Array])
    assert_type(te.grad(fit_with_name, has_aux=True)(p, x), tuple[Params, str])
    assert_type(te.value_and_grad(fit)(p, x), tuple[jax.Array, Params])
    assert_type(te.value_and_grad(fit_with_name, has_aux=True)(p, x), tuple[tuple[jax.Array, str], Params])
    assert_type(te.grad(te.adjoint(fit))(p, x), Params)
    assert_type(te.grad(total)(x), jax.Array)
    assert_type(te.value_and_grad(total)(x), tuple[jax.Array, jax.Array])
    assert te.grad(lambda q: jnp.sum(q["w"] ** 2))(p)["w"].shape == x.shape  # whose argument may be anything
    with pytest.raises(TypeError):
        te.grad(fit)(p)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        te.grad(fit)(p, x, scal=2.0)  # type: ignore[call-arg]


@te.function
def total(x: te.Tensor) -> te.Tensor:
    i, j = te.axis("i"), te.axis("j")
    return te.compute((), lambda: te.sum(x[i, j] ** 2, over=[i, j]))


def test_vjp_and_its_kin() -> None:
    x = jnp.ones((8, 34))
    p = {"w": x}
    value, pull = te.vjp(fit, p, x)
    assert_type(value, jax.Array)
    assert_type(pull(value), tuple[Params, jax.Array])
    assert_type(te.vjp(fit_with_name, p, x, has_aux=True)[2], str)
    assert_type(te.vjp(smooth, x, jnp.ones(3))[1](jnp.ones((8, 32))), tuple[jax.Array, ...])
    assert_type(te.jvp(fit, (p, x), (p, x)), tuple[jax.Array, jax.Array])
    assert_type(te.linearize(fit, p, x)[1](p, x), jax.Array)

    def turned(u: jax.Array) -> jax.Array:
        return u * jnp.roll(u, 1)

    u = jnp.arange(4.0)
    assert_type(te.jacobian(turned)(u), jax.Array)
    assert_type(te.hessian(loss)(jnp.ones((2, 4))), jax.Array)
    assert_type(te.diagonal(turned)(u), jax.Array)
    assert_type(te.jacobian(turned, sparse="diagonals")(u), dict[int, jax.Array])


def test_functions_without_annotations_give_arrays_for_arrays() -> None:
    plain = te.function(lambda u: te.compute(u.shape, lambda i: 2 * u[i]))
    assert_type(plain(jnp.ones(3)), jax.Array)
    pair = te.function(lambda u: {"twice": te.compute(u.shape, lambda i: 2 * u[i])})
    assert_type(pair(jnp.ones(3)), dict[str, jax.Array])
    assert pair(jnp.ones(3))["twice"].shape == (3,)


def test_explanations() -> None:
    x = jnp.ones((8, 34))
    assert te.explain(te.grad(loss), x).kept is not None
    assert te.explain(te.adjoint(loss), x).regions is not None
    assert te.explain(smooth, x, jnp.ones(3)).choices
    assert not hasattr(te.explain(smooth, x, jnp.ones(3)), "regions")


def test_formulas() -> None:
    x = jnp.ones(3)
    double = te.define("y[i] = 2 * x[i]")
    assert_type(double(x), jax.Array)
    assert_type(double(te.placeholder((3,), name="x")), te.Tensor)
    both: te.Formulas[tuple[jax.Array, jax.Array]] = te.define("y[i] = 2 * x[i]\nz[i] = 3 * x[i]")
    assert_type(both(x), tuple[jax.Array, jax.Array])
    y, z = both(x)
    assert (y.shape, z.shape) == ((3,), (3,))


def test_expressions_and_tensors() -> None:
    i = te.reduce_axis((0, 8), "i")
    assert_type(X[i, 0] + 1, te.Expr)
    assert_type(1 + X[i, 0] ** 2, te.Expr)
    assert_type((i > 0) & (i < 5), te.Expr)
    assert_type(i == 3, te.Expr)
    assert_type(te.exp(X[i, 0]), te.Expr)
    assert_type(te.maximum(X[i, 0], 0.0), te.Expr)
    assert_type(te.select(i > 3, X[i, 0], 0.0), te.Expr)
    assert_type(te.clip(X[i, 0], 0.0, 1.0), te.Expr)
    assert_type(te.leaky_relu(X), te.Tensor)
    assert_type(te.where(X > 0, X, 0.0), te.Tensor)
    assert_type(te.logical_and(X > 0, X < 1), te.Tensor)
    assert_type(te.sum(X[i, 0], axis=i), te.Expr)
    assert_type(2.0 * X, te.Tensor)
    assert_type(X + X, te.Tensor)
    assert_type(te.exp(X), te.Tensor)
    assert_type(te.maximum(X, 0.0), te.Tensor)
    assert_type(te.compute((3,), lambda j: (X[0, j], X[1, j])), tuple[te.Compute, ...])
    assert_type(te.einsum("b (t+k), k -> b t", X, W), te.Tensor)
    assert_type(te.einsum("i -> ", jnp.ones(3)), jax.Array)


def test_mistakes_are_found() -> None:
    with pytest.raises(te.JaxteError):
        te.compute((3,), 5)  # type: ignore[call-overload]
    with pytest.raises(AttributeError):
        te.softmaxx(X)  # type: ignore[attr-defined]
    with pytest.raises(te.JaxteError):
        te.axis(3)  # type: ignore[arg-type]
    with pytest.raises(te.JaxteError):
        te.placeholder((3,))[0] + "a"  # type: ignore[operator]


def test_results_have_types() -> None:
    x = jnp.ones(3)
    H = te.placeholder((8, 34), name="H")
    Y = te.compute((8, 34), lambda b, t: X[b, t] ** 2, "Y")

    def half(y: te.Tensor, t: te.Expr) -> te.Expr:
        return 0.5 * y[t - 1]

    line = te.recurrence((5,), half, init=1.0)
    assert_type(line, te.Tensor)
    assert_type(te.recurrence((5,), lambda p, q, t: (q[t - 1], p[t]), init=1.0), tuple[te.Tensor, ...])
    assert_type(te.jacobian(Y, X), te.Tensor)
    assert_type(te.jacobian(Y, [X, X]), list[te.Tensor])
    assert_type(te.jacobian(Y, X, sparse=True), te.SparseJacobian)
    assert_type(te.jacobian(line, [te.placeholder(())]), list[te.Tensor])
    assert_type(te.stack([X, X]), te.Tensor)
    assert_type(te.stack([x, x], axis=1), jax.Array)
    assert_type(te.concatenate([x, x]), jax.Array)
    te.compute((3, 2), lambda i, c: assert_type(te.stack([X[0, i], 2.0], axis=c), te.Expr))
    assert_type(te.differentiate(Y, [X], H)[0], te.Tensor)
    assert_type(te.jvp(Y, X, H), te.Tensor)
    assert_type(te.evaluate(line, {}), jax.Array)
    assert_type(te.evaluate([line, line], {}), list[jax.Array])
    assert_type(te.function([X], Y)(jnp.ones((8, 34))), jax.Array)
    assert_type(te.function({"x": X}, {"y": Y})(x=jnp.ones((8, 34))), dict[str, jax.Array])
    assert_type(te.extern((3,), jnp.cumsum, [te.placeholder((3,))]), te.Tensor)


def test_operators_keep_their_signatures() -> None:
    images, w = te.placeholder((1, 3, 8, 8)), te.placeholder((4, 3, 3, 3))
    assert_type(te.ops.conv2d(images, w, strides=2, padding=1), te.Tensor)
    assert_type(te.ops.conv2d(jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3))), jax.Array)
    assert_type(te.ops.relu(images), te.Tensor)
    assert_type(te.ops.add(jnp.ones(3), 2.0), jax.Array)
    assert_type(te.ops.top_k(jnp.ones(3), 2), tuple[jax.Array, jax.Array])
    assert_type(te.ops.batch_norm(images, None, None, training=True), tuple[te.Tensor, te.Tensor, te.Tensor])
    assert_type(te.ops.einsum("i,i->", jnp.ones(3), jnp.ones(3)), jax.Array)


class Layer:
    @te.function(static_argnames="self")
    def twice(self, x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda b, t: 2 * x[b, t])


def test_methods_and_decorators() -> None:
    assert_type(Layer().twice(X), te.Tensor)
    assert_type(Layer().twice(jnp.ones((8, 34))), jax.Array)
    raised = te.adjoint(loss)
    assert_type(raised(jnp.ones((8, 34))), jax.Array)

    @te.custom_gradient
    def rounded(x: te.Tensor) -> te.Tensor:
        return te.round(x)

    rounded.defgrad(lambda x: (te.round(x), ()), lambda kept, head: (head,))
    assert_type(rounded(X), te.Tensor)
    assert_type(rounded(jnp.ones((8, 34))), jax.Array)
    assert rounded(x=jnp.float32([0.4, 0.6])).tolist() == [0, 1]


# Why a public name has Any in its signature: a checker infers what stands there, or nothing can be said of it.
WITH_ANY = {
    "Extern": "what a function of JAX takes and returns",
    "Formulas": "what a builder takes and returns, and the names of a text",
    "evaluate": "the keys of a Mapping are invariant, and both tensors and names are keys",
    "extern": "a pytree of shapes gives a pytree of Tensors",
    "function": "a pytree of Tensors gives a pytree of arrays",
    "interpret": "the keys of a Mapping are invariant",
    "reads": "axes of matplotlib, which is an extra",
    "spy": "axes of matplotlib, which is an extra",
}


def test_help_shows_types() -> None:
    """Functions with overloads have the union of these in ``inspect.signature`` and ``help()``, as an editor does; nothing is left without a type."""
    listed = {module: module.__all__ for module in (te, te.ops)}
    listed |= {te.facts: ["within", "finite", "permutation", "sorted", "unique", "symmetric_adjacency"]}
    listed |= {te.draw: ["spy", "reads", "graph"], te.testing: ["check_grads", "compare"]}
    found = set()
    for module, name in ((module, name) for module, names in listed.items() for name in names):
        value = getattr(module, name)
        if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
            continue
        signature = inspect.signature(value)
        kinds = [str(p.annotation) for p in signature.parameters.values()]
        kinds += [] if inspect.isclass(value) else [str(signature.return_annotation)]
        assert str(signature.empty) not in kinds, f"{name}: {signature}"
        if any(re.search(r"\bAny\b", kind) for kind in kinds):
            found.add(name)
    assert found == WITH_ANY.keys()
    shown = inspect.signature(te.compute)
    assert shown.return_annotation == "Compute | tuple[Compute, ...]"
    assert inspect.signature(te.exp).return_annotation == "Result | ArrayT | Expr"
    assert "Sequence[Tensor | None]" in inspect.signature(te.gradient).parameters["head"].annotation


Checker = Callable[[Callable[..., Any]], Callable[..., Any]]


def of_instances(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A type checker of arguments in a few lines, as beartype is one in many."""
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = signature.parameters[name].annotation
            assert not get_args(hint) or any(isinstance(value, kind) for kind in get_args(hint))
        return fn(*args, **kwargs)

    return call


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("checker", [None, of_instances])
def test_jaxtyping_in_either_order(outer: bool, checker: Checker | None) -> None:
    def builder(x: Any, w: Any) -> Any:
        return te.compute(lambda i: x[i] * w[i])

    kinds: dict[str, Any] = dict.fromkeys(("x", "w"), Float[te.Tensor | jax.Array, "n"])
    builder.__annotations__ = kinds
    wrap: Any = functools.partial(jaxtyped, typechecker=checker)
    function: Any = wrap(te.function(builder)) if outer else te.function(wrap(builder))
    assert function(jnp.ones(5), jnp.ones(5)).shape == (5,)
    with pytest.raises((TypeCheckError, te.JaxteError)):
        function(jnp.ones(5), jnp.ones(4))
