"""What users hand to functions: dataclasses, modules of equinox with functions in them, typed keys."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te

X = np.arange(4, dtype="float32")
k = te.axis("k")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Scale:
    x: Any
    by: Any


class Layer(eqx.Module):
    weight: jax.Array
    times: int
    activation: Any

    @te.function
    def __call__(self, x):
        return te.compute(lambda i: self.times * te.sum(self.weight[i, k] * x[k], over=k))


def test_a_dataclass() -> None:
    scaled = te.function(lambda s: te.compute(lambda i: s.x[i] * s.by[()]))
    np.testing.assert_array_equal(scaled(Scale(X, np.float32(3))), 3 * X)


def test_a_module_with_a_function_among_its_fields() -> None:
    layer = Layer(jnp.ones((3, 4)), 2, jax.nn.relu)
    np.testing.assert_array_equal(eqx.filter_jit(lambda m, x: m(x))(layer, X), [12, 12, 12])
    gradient = eqx.filter_grad(lambda m: m(X).sum())(layer)
    np.testing.assert_array_equal(gradient.weight, np.broadcast_to(2 * X, (3, 4)))


def test_a_typed_key_enters_as_its_data() -> None:
    struct = jax.ShapeDtypeStruct((4,), "float32")

    @te.function
    def noisy(x, key):
        noise = te.extern(struct, lambda data: jax.random.normal(jax.random.wrap_key_data(data), (4,)), [key])
        return te.compute(x.shape, lambda i: x[i] + noise[i])

    key = jax.random.key(3)
    np.testing.assert_allclose(noisy(X, key), X + jax.random.normal(key, (4,)), rtol=1e-6)
    assert "jax.random" not in te.source(noisy, struct, jax.eval_shape(lambda: key))
