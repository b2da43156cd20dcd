"""A residual network with batch norm, depthwise and strided convolutions and pools, on the scikit-learn digits.

Written with ``te.ops`` alone, and beside it the same in equinox and optax. Prints how far the losses are apart, the time of a step,
its memory and the test accuracy, and draws both curves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

import beside
import jaxte as te
from jaxte import ops

CLASSES, BATCH, RATE, MOMENTUM = 10, 128, 2e-3, 0.9
NARROW, WIDE = 16, 32
# name: kernel (outputs, inputs of a group, rows, columns), stride, groups; each is followed by a batch norm
CONVOLUTIONS = {
    "stem": ((NARROW, 1, 3, 3), 1, 1),
    "inner": ((NARROW, NARROW, 3, 3), 1, 1),
    "depthwise": ((NARROW, 1, 3, 3), 1, NARROW),
    "strided": ((NARROW, 1, 3, 3), 2, NARROW),
    "pointwise": ((WIDE, NARROW, 1, 1), 1, 1),
    "shortcut": ((WIDE, NARROW, 1, 1), 1, 1),
}


# --- in te.ops


def layer(x: Any, name: str, params: Any, found: dict[str, Any], running: Any) -> Any:
    """A convolution and a batch norm; the statistics of the batch go to ``found``, or are those that are given."""
    kernel, stride, groups = CONVOLUTIONS[name]
    own = params[name]
    y = ops.conv2d(x, own["kernel"], stride, kernel[2] // 2, groups=groups)
    if running is not None:
        return ops.batch_norm(y, own["gamma"], own["beta"], *running[name])
    y, *found[name] = ops.batch_norm(y, own["gamma"], own["beta"], training=True)
    return y


def network(params: Any, images: Any, running: Any = None) -> tuple[Any, dict[str, Any]]:
    """The logits, and the mean and variance of each batch norm."""
    found: dict[str, Any] = {}

    def conv(x: Any, name: str) -> Any:
        return layer(x, name, params, found, running)

    x = ops.relu(conv(images, "stem"))
    x = ops.relu(ops.add(x, conv(ops.relu(conv(x, "inner")), "depthwise")))
    straight = conv(ops.relu(conv(x, "strided")), "pointwise")
    x = ops.relu(ops.add(straight, conv(ops.avg_pool2d(x, 2), "shortcut")))
    x = ops.global_avg_pool2d(ops.max_pool2d(x, 2))
    return ops.dense(ops.flatten(x), params["head"]["weight"], params["head"]["bias"]), found


@te.function
def loss(params: Any, images: Any, targets: Any) -> Any:
    logits, found = network(params, images)
    return ops.cross_entropy_with_logits(logits, targets), found


@te.function
def logits(params: Any, images: Any, running: Any) -> Any:
    return network(params, images, running)[0]


def value_and_grad(params: Any, running: Any, images: Any, targets: Any) -> Any:
    (value, found), grads = te.value_and_grad(loss, has_aux=True)(params, images, targets)
    running = jax.tree.map(lambda old, new: MOMENTUM * old + (1 - MOMENTUM) * new, running, found)
    return (value, running), grads


# --- in equinox


class Layer(eqx.Module):
    conv: eqx.nn.Conv2d
    norm: eqx.nn.BatchNorm

    def __init__(self, name: str, key: Any) -> None:
        (outputs, inputs, size, _), stride, groups = CONVOLUTIONS[name]
        self.conv = eqx.nn.Conv2d(
            inputs * groups, outputs, size, stride, size // 2, groups=groups, use_bias=False, key=key
        )
        self.norm = eqx.nn.BatchNorm(outputs, "batch", eps=1e-5, momentum=MOMENTUM, mode="batch")

    def __call__(self, x: Any, state: Any) -> tuple[Any, Any]:
        return self.norm(self.conv(x), state)


class Network(eqx.Module):
    layers: dict[str, Layer]
    head: eqx.nn.Linear

    def __init__(self, key: Any) -> None:
        *keys, last = jax.random.split(key, len(CONVOLUTIONS) + 1)
        self.layers = {name: Layer(name, k) for name, k in zip(CONVOLUTIONS, keys, strict=True)}
        self.head = eqx.nn.Linear(WIDE, CLASSES, key=last)

    def __call__(self, image: Any, state: Any) -> tuple[Any, Any]:
        x, state = self.layers["stem"](image, state)
        x = jax.nn.relu(x)
        y, state = self.layers["inner"](x, state)
        y, state = self.layers["depthwise"](jax.nn.relu(y), state)
        x = jax.nn.relu(x + y)
        y, state = self.layers["strided"](x, state)
        y, state = self.layers["pointwise"](jax.nn.relu(y), state)
        z, state = self.layers["shortcut"](eqx.nn.AvgPool2d(2, 2)(x), state)
        x = eqx.nn.MaxPool2d(2, 2)(jax.nn.relu(y + z))
        return self.head(x.mean((1, 2))), state


def plain_value_and_grad(static: Any) -> Any:
    def value(params: Any, state: Any, images: Any, targets: Any) -> Any:
        model = eqx.combine(params, static)
        batched = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        found, state = batched(images, state)
        return optax.softmax_cross_entropy(found, targets).mean(), state

    return jax.value_and_grad(value, has_aux=True)


def parameters(model: Network) -> Any:
    """The same numbers as a dict, the way the network in te.ops takes them."""
    found = {
        name: {"kernel": own.conv.weight, "gamma": own.norm.weight, "beta": own.norm.bias}
        for name, own in model.layers.items()
    }
    return found | {"head": {"weight": model.head.weight, "bias": model.head.bias}}


# --- data and report


def load(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images as (N, 1, 8, 8) in 0 to 1, and one-hot targets: for training, and a fifth for testing."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).reshape(-1, 1, 8, 8).astype("float32")
    targets = np.eye(CLASSES, dtype="float32")[labels]
    parts = np.split(rng.permutation(len(images)), [len(images) * 4 // 5])
    return [(images[part], targets[part]) for part in parts]


def batches(images: np.ndarray, targets: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    while True:
        chosen = rng.permutation(len(images))[:BATCH]
        yield images[chosen], targets[chosen]


def main() -> None:
    given = beside.options(__doc__ or "", 300, "residual_digits.png")
    rng = np.random.default_rng(0)
    training, (test_images, test_targets) = load(rng)
    batch = next(batches(*training, rng))
    model, state = eqx.nn.make_with_state(Network)(jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_inexact_array)
    own = parameters(model)
    running = {n: [jnp.zeros(k[0]), jnp.ones(k[0])] for n, (k, _, _) in CONVOLUTIONS.items()}
    sides = [
        beside.side("jaxte", value_and_grad, own, running, batch, RATE),
        beside.side("equinox", plain_value_and_grad(static), params, state, batch, RATE),
    ]
    beside.train(sides, batches(*training, rng), given.steps)
    equal = beside.report(sides, batch, given.rounds)
    trained, statistics, _ = sides[0].state
    right = np.argmax(logits(trained, test_images, statistics), 1) == np.argmax(test_targets, 1)
    print(f"test accuracy: {100 * float(np.mean(right)):.2f} %")
    beside.draw(sides, "Residual network on the digits", given.picture)
    beside.finish(equal)


if __name__ == "__main__":
    main()
