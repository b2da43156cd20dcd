"""Models of flax and equinox, where these are installed."""

from __future__ import annotations

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np

from raised.registry import EXAMPLES, Example

if importlib.util.find_spec("equinox"):
    import equinox as eqx

    class Convolutions(eqx.Module):
        first: eqx.nn.Conv2d
        second: eqx.nn.Conv2d
        pool: eqx.nn.MaxPool2d
        last: eqx.nn.Linear

        def __init__(self, key):
            a, b, c = jax.random.split(key, 3)
            self.first = eqx.nn.Conv2d(1, 8, 3, padding=1, key=a)
            self.second = eqx.nn.Conv2d(8, 8, 5, padding=2, groups=8, key=b)
            self.pool = eqx.nn.MaxPool2d(2, 2)
            self.last = eqx.nn.Linear(8 * 14 * 14, 10, key=c)

        def __call__(self, x):
            x = self.pool(jax.nn.relu(self.second(jax.nn.relu(self.first(x)))))
            return jax.nn.log_softmax(self.last(x.reshape(-1)))

    def equinox_cnn(params, x):
        static = eqx.partition(Convolutions(jax.random.key(0)), eqx.is_inexact_array)[1]
        return jax.vmap(eqx.combine(params, static))(x)

    def _equinox(rng: np.random.Generator):
        params = eqx.filter(Convolutions(jax.random.key(0)), eqx.is_inexact_array)
        return params, rng.normal(size=(16, 1, 28, 28)).astype("float32")

    EXAMPLES["equinox_cnn"] = Example("equinox_cnn", "network", equinox_cnn, _equinox)

if importlib.util.find_spec("flax"):
    from flax import linen as nn

    class FlaxCNN(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Conv(16, (3, 3))(x))
            x = nn.avg_pool(x, (2, 2), strides=(2, 2))
            x = nn.relu(nn.Conv(16, (3, 3), feature_group_count=16)(x))
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
            return nn.Dense(10)(x.reshape(x.shape[0], -1))

    def flax_cnn(params, x):
        return FlaxCNN().apply(params, x)

    def _flax(rng: np.random.Generator):
        x = rng.normal(size=(16, 28, 28, 1)).astype("float32")
        return FlaxCNN().init(jax.random.key(0), jnp.asarray(x)), x

    EXAMPLES["flax_cnn"] = Example("flax_cnn", "network", flax_cnn, _flax)
