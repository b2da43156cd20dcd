"""A small transformer with rotary positions and sliding-window attention, on the documentation that comes with Python.

Written with ``te.ops`` alone, and beside it the same in equinox and optax. Prints how far the losses are apart, the time of a step and
its memory, and draws both curves.
"""

from __future__ import annotations

from collections.abc import Iterator
from pydoc_data.topics import topics
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import beside
import jaxte as te
from jaxte import ops

LAYERS, HEADS, DEPTH, LENGTH, WINDOW = 2, 4, 64, 256, 32
BATCH, RATE, BASE = 4, 2e-3, 10_000.0


# --- in te.ops


def rotated(x: Any, cosine: Any, sine: Any) -> Any:
    """Each pair of numbers, half the depth apart, turned by an angle that grows with the position."""
    first, second = ops.split(x, 2, -1)
    turned = ops.concatenate([ops.negative(second), first], -1)
    return ops.add(ops.multiply(x, cosine), ops.multiply(turned, sine))


def heads_apart(x: Any) -> Any:
    """(N, T, D) as (N, heads, T, D / heads)."""
    batch, length, depth = x.shape
    return ops.transpose(ops.reshape(x, (batch, length, HEADS, depth // HEADS)), (0, 2, 1, 3))


def attended(x: Any, params: Any, cosine: Any, sine: Any) -> Any:
    q, k, v = (heads_apart(ops.dense(x, params[name])) for name in ("query", "key", "value"))
    found = ops.attention(rotated(q, cosine, sine), rotated(k, cosine, sine), v, window=(WINDOW, 0))
    return ops.dense(ops.reshape(ops.transpose(found, (0, 2, 1, 3)), x.shape), params["result"])


def network(params: Any, text: Any, cosine: Any, sine: Any) -> Any:
    """The logits of the next character, from the characters before it."""
    x = ops.embedding(text, params["embedding"])
    for block in params["blocks"]:
        x = ops.add(x, attended(ops.rms_norm(x, block["before"], eps=1e-5), block, cosine, sine))
        inner = ops.gelu(ops.dense(ops.rms_norm(x, block["between"], eps=1e-5), block["wide"]))
        x = ops.add(x, ops.dense(inner, block["narrow"]))
    return ops.dense(ops.rms_norm(x, params["last"], eps=1e-5), params["head"])


@te.function
def loss(params: Any, text: Any, following: Any, cosine: Any, sine: Any) -> Any:
    logits = network(params, text, cosine, sine)
    rows = ops.reshape(logits, (-1, logits.shape[-1]))
    return ops.cross_entropy_with_logits(rows, ops.one_hot(ops.reshape(following, -1), logits.shape[-1]))


def value_and_grad(params: Any, carried: Any, text: Any, following: Any) -> Any:
    value, grads = te.value_and_grad(loss)(params, text, following, *angles())
    return (value, carried), grads


def angles() -> tuple[Any, Any]:
    """Cosine and sine for each position and each number of a head."""
    half = np.arange(DEPTH // HEADS // 2)
    turns = np.arange(LENGTH)[:, None] / BASE ** (2 * half * HEADS / DEPTH)
    both = np.concatenate([turns, turns], 1)
    return np.cos(both).astype("float32"), np.sin(both).astype("float32")


# --- in equinox


class Block(eqx.Module):
    before: eqx.nn.RMSNorm
    between: eqx.nn.RMSNorm
    query: eqx.nn.Linear
    key: eqx.nn.Linear
    value: eqx.nn.Linear
    result: eqx.nn.Linear
    wide: eqx.nn.Linear
    narrow: eqx.nn.Linear
    rotary: eqx.nn.RotaryPositionalEmbedding

    def __init__(self, key: Any) -> None:
        self.before, self.between = (eqx.nn.RMSNorm(DEPTH, use_bias=False) for _ in range(2))
        keys = jax.random.split(key, 6)
        square = [eqx.nn.Linear(DEPTH, DEPTH, use_bias=False, key=k) for k in keys[:4]]
        self.query, self.key, self.value, self.result = square
        self.wide = eqx.nn.Linear(DEPTH, 4 * DEPTH, use_bias=False, key=keys[4])
        self.narrow = eqx.nn.Linear(4 * DEPTH, DEPTH, use_bias=False, key=keys[5])
        self.rotary = eqx.nn.RotaryPositionalEmbedding(DEPTH // HEADS, BASE)

    def __call__(self, x: Any) -> Any:
        y = jax.vmap(self.before)(x)
        q, k, v = (
            jax.vmap(layer)(y).reshape(-1, HEADS, DEPTH // HEADS)
            for layer in (self.query, self.key, self.value)
        )
        q, k = (jax.vmap(self.rotary, 1, 1)(e) for e in (q, k))
        found = jax.nn.dot_product_attention(q, k, v, local_window_size=(WINDOW, 0))
        x = x + jax.vmap(self.result)(found.reshape(x.shape))
        return x + jax.vmap(self.narrow)(jax.nn.gelu(jax.vmap(self.wide)(jax.vmap(self.between)(x))))


class Network(eqx.Module):
    embedding: eqx.nn.Embedding
    blocks: list[Block]
    last: eqx.nn.RMSNorm
    head: eqx.nn.Linear

    def __init__(self, characters: int, key: Any) -> None:
        first, last, *keys = jax.random.split(key, LAYERS + 2)
        self.embedding = eqx.nn.Embedding(characters, DEPTH, key=first)
        self.blocks = [Block(k) for k in keys]
        self.last = eqx.nn.RMSNorm(DEPTH, use_bias=False)
        self.head = eqx.nn.Linear(DEPTH, characters, use_bias=False, key=last)

    def __call__(self, text: Any) -> Any:
        x = jax.vmap(self.embedding)(text)
        for block in self.blocks:
            x = block(x)
        return jax.vmap(lambda e: self.head(self.last(e)))(x)


def plain_value_and_grad(static: Any) -> Any:
    def value(params: Any, carried: Any, text: Any, following: Any) -> Any:
        logits = jax.vmap(eqx.combine(params, static))(text)
        return optax.softmax_cross_entropy_with_integer_labels(logits, following).mean(), carried

    return jax.value_and_grad(value, has_aux=True)


def parameters(model: Network) -> Any:
    """The same numbers as a dict, the way the network in te.ops takes them."""
    names = [n for n in Block.__annotations__ if n != "rotary"]
    return {
        "embedding": model.embedding.weight,
        "blocks": [{name: getattr(block, name).weight for name in names} for block in model.blocks],
        "last": model.last.weight,
        "head": model.head.weight,
    }


# --- data and report


def load() -> tuple[np.ndarray, int]:
    """Python's help topics as numbers of characters, and how many characters there are."""
    text = "\n".join(topics[name] for name in sorted(topics))
    text = text.encode("ascii", "ignore").decode()
    alphabet = {c: n for n, c in enumerate(sorted(set(text)))}
    return np.array([alphabet[c] for c in text], np.int32), len(alphabet)


def batches(text: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    while True:
        parts = rng.integers(0, len(text) - LENGTH - 1, BATCH)[:, None] + np.arange(LENGTH)
        yield text[parts], text[parts + 1]


def main() -> None:
    given = beside.options(__doc__ or "", 300, "window_transformer.png")
    rng = np.random.default_rng(0)
    text, characters = load()
    batch = next(batches(text, rng))
    model = Network(characters, jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_inexact_array)
    sides = [
        beside.side("jaxte", value_and_grad, parameters(model), jnp.zeros(()), batch, RATE),
        beside.side("equinox", plain_value_and_grad(static), params, jnp.zeros(()), batch, RATE),
    ]
    beside.train(sides, batches(text, rng), given.steps)
    equal = beside.report(sides, batch, given.rounds)
    beside.draw(sides, "Transformer on Python's help topics", given.picture)
    beside.finish(equal)


if __name__ == "__main__":
    main()
