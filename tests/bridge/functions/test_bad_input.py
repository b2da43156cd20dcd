"""What is asked of JAX and cannot be: each error says what, where and the remedy."""

import jax
import jax.numpy as jnp
import pytest

import jaxte as te


@te.function
def smooth(x):
    return te.compute((x.shape[0] - 2,), lambda i: x[i] + x[i + 1] + x[i + 2], "y")


def exported(fn, size: str, **options):
    shape = jax.export.symbolic_shape(size, **options)
    return jax.export.export(jax.jit(fn))(jax.ShapeDtypeStruct(shape, "float32"))


@pytest.mark.parametrize("fn", [smooth, jax.grad(lambda x: smooth(x).sum())])
def test_a_size_that_may_be_too_small_is_told_with_its_constraint(fn) -> None:
    with pytest.raises(te.ShapeError, match=r'smooth is traced.*x: \(n,\).*constraints=\["n - 2 >= 0"\]'):
        exported(fn, "n")


def test_a_program_is_called_with_sizes_within_its_constraints() -> None:
    """What it is called with is looked at by JAX, which names the constraint, the argument and its size."""
    program = exported(smooth, "n", constraints=["n - 2 >= 0"])
    assert program.call(jnp.arange(4.0)).tolist() == [3, 6]
    assert program.call(jnp.arange(2.0)).shape == (0,)
    with pytest.raises(ValueError, match=r"constraint n - 2 >= 0.*'n' = 1 .*args\[0\].shape\[0\]"):
        program.call(jnp.ones(1))


@pytest.mark.parametrize(
    "transform", [jax.jit, lambda f: jax.grad(lambda t: f(t).sum()), jax.vmap, lambda f: f]
)
def test_arrays_that_a_definition_captures_are_to_be_arguments(transform) -> None:
    def captures(t):
        return te.function(lambda x: te.compute((3,), lambda i: x[i] * t[i]))(jnp.ones(3))

    batch = jnp.ones((2, 3)) if transform is jax.vmap else jnp.ones(3)
    with pytest.raises(te.DefinitionError, match=r"are arguments of its te\.function"):
        transform(captures)(batch)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda ct: {"x": ct}, "returns for x .*; return an array of shape"),
        (lambda ct: (ct, ct), "returns 2 cotangents for 1 inputs"),
        (lambda ct: (ct[:2],), "returns for x shape"),
        (lambda ct: ({"x": ct},), "returns for x .*; return an array of shape"),
    ],
)
def test_a_backward_function_that_returns_another_tree(returned, message: str) -> None:
    own = te.custom_gradient(lambda x: te.tanh(x))
    own.defgrad(lambda x: (jnp.tanh(x), None), lambda kept, ct: returned(ct), arrays=True)
    fn = te.function(lambda x: own(x))
    with pytest.raises(te.JaxteError, match=f"the backward function of the override of tanh {message}"):
        jax.grad(lambda x: fn(x).sum())(jnp.ones(4))
