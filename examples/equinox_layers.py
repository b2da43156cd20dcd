"""A model of someone else, in equinox, whose layers are replaced by thin modules that call ``te.ops``; nothing else changes.

The parameters, ``eqx.filter_jit``, ``eqx.filter_value_and_grad`` and ``jax.vmap`` over the batch stay what they are. Prints how far
values and gradients are apart, and the time of a gradient.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxte import ops

LARGEST_DIFFERENCE = 1e-4


# --- thin modules: each holds the layer that it stands for, and calls the operator with its numbers


class Conv(eqx.Module):
    layer: eqx.nn.Conv2d

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        own = self.layer
        y = ops.conv2d(x[None], own.weight, own.stride, own.padding, own.dilation, own.groups)
        return y[0] if own.bias is None else ops.add(y[0], own.bias)


class MaxPool(eqx.Module):
    layer: eqx.nn.MaxPool2d

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        own = self.layer
        return ops.max_pool2d(x[None], own.kernel_size, own.stride, own.padding)[0]


class AvgPool(eqx.Module):
    layer: eqx.nn.AvgPool2d

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        own = self.layer
        return ops.avg_pool2d(x[None], own.kernel_size, own.stride, own.padding)[0]


class Norm(eqx.Module):
    layer: eqx.nn.GroupNorm

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        own = self.layer
        return ops.group_norm(x[None], own.groups, own.weight, own.bias, eps=own.eps)[0]


def softmax(x: Any, *, key: Any = None) -> Any:
    return ops.softmax(x)


REPLACED: dict[type, Any] = {
    eqx.nn.Conv2d: Conv,
    eqx.nn.MaxPool2d: MaxPool,
    eqx.nn.AvgPool2d: AvgPool,
    eqx.nn.GroupNorm: Norm,
}


def with_jaxte(model: Any) -> Any:
    """``model`` with each layer that has an operator replaced."""

    def replaced(node: Any) -> Any:
        if isinstance(node, eqx.nn.Lambda) and node.fn is jax.nn.softmax:
            return eqx.nn.Lambda(softmax)
        return REPLACED[type(node)](node) if type(node) in REPLACED else node

    def whole(node: Any) -> bool:
        return type(node) in REPLACED or isinstance(node, eqx.nn.Lambda)

    return jax.tree.map(replaced, model, is_leaf=whole)


# --- the model, as its author wrote it


def someones_model(key: Any) -> Any:
    keys = jax.random.split(key, 4)
    return eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(1, 16, 3, padding=1, key=keys[0]),
            eqx.nn.GroupNorm(4, 16),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.Conv2d(16, 16, 3, padding=1, groups=16, key=keys[1]),
            eqx.nn.MaxPool2d(2, 2),
            eqx.nn.Conv2d(16, 32, 3, stride=2, padding=1, key=keys[2]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.AvgPool2d(2, 2),
            eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(32 * 4, 10, key=keys[3]),
            eqx.nn.Lambda(jax.nn.softmax),
        ]
    )


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss(model: Any, images: Any, labels: Any) -> Any:
    found = jax.vmap(model)(images)
    return -jnp.mean(jnp.log(found[jnp.arange(len(labels)), labels]))


def main() -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(64, 1, 16, 16)).astype("float32"), rng.integers(0, 10, 64)
    theirs = someones_model(jax.random.key(0))
    ours = with_jaxte(theirs)
    (first, of_ours), (second, of_theirs) = (loss(model, images, labels) for model in (ours, theirs))
    apart = [
        float(jnp.linalg.norm((a - b).ravel()) / jnp.linalg.norm(b.ravel()))
        for a, b in zip(jax.tree.leaves(of_ours), jax.tree.leaves(of_theirs), strict=True)
    ]
    print(f"loss: {first:.6f} with jaxte's layers, {second:.6f} with equinox's")
    print(f"largest relative difference of a gradient: {max(apart):.1e}")
    taken: dict[str, list[float]] = {"jaxte": [], "equinox": []}
    for _ in range(20):
        for name, model in (("jaxte", ours), ("equinox", theirs)):
            start = time.perf_counter()
            jax.block_until_ready(loss(model, images, labels))
            taken[name].append(time.perf_counter() - start)
    ms = {name: 1e3 * float(np.median(t)) for name, t in taken.items()}
    print(f"gradient: {ms['jaxte']:.2f} ms with jaxte's layers, {ms['equinox']:.2f} ms with equinox's")
    if not max(apart) <= LARGEST_DIFFERENCE:
        sys.exit(f"expected at most {LARGEST_DIFFERENCE}")


if __name__ == "__main__":
    main()
