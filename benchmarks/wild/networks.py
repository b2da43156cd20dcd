"""Layers and losses of equinox, flax, haiku and optax."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import optax

from wild.registry import Call, integers, loss, normal

KEY = jax.random.key(0)


def of_module(module: Any, *inputs: Any, vmapped: bool = True) -> Call:
    """The mean square of what a module of equinox makes of each of its inputs."""
    params, static = eqx.partition(module, eqx.is_inexact_array)

    def f(params, *inputs):
        own = eqx.combine(params, static)
        return jnp.mean((jax.vmap(own) if vmapped else own)(*inputs) ** 2)

    return f, (params, *inputs)


def of_linen(module: nn.Module, x: jax.Array) -> Call:
    """The same of a module of flax."""
    return lambda params, x: jnp.mean(module.apply(params, x) ** 2), (module.init(KEY, x), x)


def of_haiku(build: Any, x: jax.Array) -> Call:
    """The same of a function of haiku's modules."""
    net = hk.without_apply_rng(hk.transform(build))
    return lambda params, x: jnp.mean(net.apply(params, x) ** 2), (net.init(KEY, x), x)


@loss("equinox", "a depthwise convolution and one of single points")
def equinox_depthwise() -> Call:
    layers = eqx.nn.Conv2d(16, 16, 3, padding=1, groups=16, key=KEY), eqx.nn.Conv2d(16, 32, 1, key=KEY)
    return of_module(
        eqx.nn.Sequential([layers[0], eqx.nn.Lambda(jax.nn.gelu), layers[1]]), normal(4, 16, 32, 32)
    )


@loss("equinox", "the embedding of patches, and a norm")
def equinox_patches() -> Call:
    embed = eqx.nn.Conv2d(3, 128, 16, 16, key=KEY)
    return of_module(
        eqx.nn.Sequential([embed, eqx.nn.LayerNorm((128, 8, 8)), eqx.nn.Lambda(jnp.tanh)]),
        normal(8, 3, 128, 128),
    )


@loss("equinox", "attention of four heads to the 16 positions on each side")
def equinox_window() -> Call:
    module = eqx.nn.MultiheadAttention(4, 64, key=KEY)
    near = jnp.abs(jnp.arange(512)[:, None] - jnp.arange(512)) <= 16
    params, static = eqx.partition(module, eqx.is_inexact_array)

    def f(params, x):
        return jnp.mean(eqx.combine(params, static)(x, x, x, mask=near) ** 2)

    return f, (params, normal(512, 64))


@loss("flax", "causal attention of four heads to 64 positions")
def flax_window() -> Call:
    module, x = nn.MultiHeadDotProductAttention(4, use_bias=False), normal(1, 1024, 64)
    before = jnp.arange(1024)[:, None] - jnp.arange(1024)
    near = ((before >= 0) & (before < 64))[None, None]
    return lambda params, x: jnp.mean(module.apply(params, x, mask=near) ** 2), (module.init(KEY, x), x)


@loss("equinox", "attention of four heads")
def equinox_attention() -> Call:
    own = eqx.nn.MultiheadAttention(4, 64, key=KEY)
    params, static = eqx.partition(own, eqx.is_inexact_array)

    def f(params, x):
        return jnp.mean(jax.vmap(lambda x: eqx.combine(params, static)(x, x, x))(x) ** 2)

    return f, (params, normal(4, 128, 64))


@loss("equinox", "a GRU over a batch of sequences")
def equinox_gru() -> Call:
    params, static = eqx.partition(eqx.nn.GRUCell(32, 64, key=KEY), eqx.is_inexact_array)

    def f(params, xs):
        cell = eqx.combine(params, static)
        own = lambda x: jax.lax.scan(lambda h, row: (cell(row, h), None), jnp.zeros(64), x)[0]
        return jnp.mean(jax.vmap(own)(xs) ** 2)

    return f, (params, normal(16, 60, 32))


@loss("equinox", "maximum and average pools")
def equinox_pools() -> Call:
    def f(x):
        own = eqx.nn.AvgPool2d(3, 1)(eqx.nn.MaxPool2d(2, 2)(x))
        return jnp.sum(own**2)

    return lambda x: jnp.sum(jax.vmap(f)(x)), (normal(8, 16, 64, 64),)


@loss("equinox", "a transposed convolution with strides")
def equinox_transposed() -> Call:
    own = eqx.nn.ConvTranspose2d(16, 8, 4, 2, padding=1, key=KEY)
    return of_module(own, normal(4, 16, 32, 32))


@loss("flax", "a block of ConvNeXt")
def flax_convnext() -> Call:
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.Conv(32, (7, 7), feature_group_count=32)(x)
            return x + nn.Dense(32)(nn.gelu(nn.Dense(128)(nn.LayerNorm()(y))))

    return of_linen(Block(), normal(4, 32, 32, 32))


@loss("flax", "an inverted residual with squeeze and excitation")
def flax_inverted_residual() -> Call:
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.relu6(nn.Conv(64, (1, 1))(x))
            y = nn.relu6(nn.Conv(64, (3, 3), feature_group_count=64)(y))
            gate = nn.sigmoid(nn.Dense(64)(nn.relu(nn.Dense(8)(y.mean((1, 2))))))
            return x + nn.Conv(16, (1, 1))(y * gate[:, None, None])

    return of_linen(Block(), normal(4, 28, 28, 16))


@loss("flax", "a transformer block with a causal mask")
def flax_transformer() -> Call:
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            mask = nn.make_causal_mask(x[..., 0])
            x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x), mask=mask)
            return x + nn.Dense(64)(nn.gelu(nn.Dense(256)(nn.LayerNorm()(x))))

    return of_linen(Block(), normal(4, 128, 64))


@loss("flax", "embeddings of tokens and positions, and logits by the same table")
def flax_embedding() -> Call:
    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            table = nn.Embed(1000, 64)
            x = table(tokens) + self.param("positions", nn.initializers.normal(), (128, 64))
            return table.attend(nn.LayerNorm()(x))

    model, tokens = Model(), integers(1000, 4, 128)

    def f(params, tokens):
        logits = model.apply(params, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

    return f, (model.init(KEY, tokens), tokens)


@loss("flax", "windows of a shifted window transformer")
def flax_windows() -> Call:
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            b, h, w, c = x.shape
            x = jnp.roll(x, (-4, -4), (1, 2))
            rows = x.reshape(b, h // 8, 8, w // 8, 8, c).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 64, c)
            rows = nn.MultiHeadDotProductAttention(4)(rows)
            x = rows.reshape(b, h // 8, w // 8, 8, 8, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
            return jnp.roll(x, (4, 4), (1, 2))

    return of_linen(Block(), normal(2, 32, 32, 32))


@loss("flax", "an LSTM over a sequence")
def flax_lstm() -> Call:
    return of_linen(nn.RNN(nn.OptimizedLSTMCell(64)), normal(1, 200, 32))


@loss("flax", "a group norm and a convolution with circular pads")
def flax_circular() -> Call:
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Conv(16, (3, 3), padding="CIRCULAR")(nn.silu(nn.GroupNorm(4)(x)))

    return of_linen(Block(), normal(4, 32, 32, 16))


@loss("haiku", "a separable convolution and a pool")
def haiku_separable() -> Call:
    def build(x):
        return hk.max_pool(jax.nn.relu(hk.SeparableDepthwiseConv2D(1, 5)(x)), (2, 2), (2, 2), "SAME")

    return of_haiku(build, normal(4, 48, 48, 24))


@loss("haiku", "average pools of several sizes")
def haiku_pyramid() -> Call:
    def build(x):
        return jnp.stack([hk.avg_pool(x, (n, n, 1), (1, 1, 1), "SAME") for n in (3, 5, 9)])

    net = hk.without_apply_rng(hk.transform(build))
    return lambda x: jnp.mean(net.apply({}, x) ** 2), (normal(4, 64, 64, 8),)


@loss("haiku", "a causal convolution in one dimension with dilations")
def haiku_wavenet() -> Call:
    def build(x):
        for rate in (1, 2, 4, 8):
            x = x + jnp.tanh(hk.Conv1D(16, 2, rate=rate, padding=hk.pad.causal)(x))
        return x

    return of_haiku(build, normal(4, 512, 16))


@loss("haiku", "a vanilla recurrent network over a batch")
def haiku_rnn() -> Call:
    def build(x):
        core = hk.VanillaRNN(64)
        return hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))[0]

    return of_haiku(build, normal(60, 16, 32))


@loss("optax", "connectionist temporal classification")
def optax_ctc() -> Call:
    labels = integers(19, 8, 12) + 1

    def f(logits):
        return jnp.mean(optax.ctc_loss(logits, jnp.zeros((8, 50)), labels, jnp.zeros((8, 12))))

    return f, (normal(8, 50, 20),)


@loss("optax", "cosine similarities of all pairs, and a contrastive loss")
def optax_contrastive() -> Call:
    def f(a, b):
        scores = jax.vmap(lambda x: jax.vmap(lambda y: optax.cosine_similarity(x, y, epsilon=1e-6))(b))(a)
        return optax.softmax_cross_entropy_with_integer_labels(10 * scores, jnp.arange(len(a))).mean()

    return f, (normal(256, 64), normal(256, 64, seed=1))


@loss("optax", "Huber's loss of differences of neighbours")
def optax_huber() -> Call:
    def f(x, y):
        smooth = sum(jnp.sum(optax.huber_loss(jnp.diff(x, axis=a), delta=0.1)) for a in (0, 1))
        return jnp.sum((x - y) ** 2) + smooth

    return f, (normal(512, 512), normal(512, 512, seed=1))


@loss("optax", "a focal loss")
def optax_focal() -> Call:
    labels = (normal(512, 80, seed=1) > 1).astype("float32")
    return lambda logits: optax.sigmoid_focal_loss(logits, labels).mean(), (normal(512, 80),)


@loss("equinox", "a convolution in three dimensions, and adaptive pools")
def equinox_volume() -> Call:
    layer = eqx.nn.Conv3d(2, 4, 3, padding=1, key=KEY)
    pool = eqx.nn.AdaptiveAvgPool3d(4)

    def f(weight, x):
        own = eqx.tree_at(lambda m: m.weight, layer, weight)
        return jnp.mean(pool(jax.nn.silu(own(x))) ** 2)

    return f, (layer.weight, normal(2, 24, 24, 24))


@loss("optax", "normalized temperatures of pairs, and margins of triplets")
def optax_triplets() -> Call:
    labels = jnp.repeat(jnp.arange(32), 4)

    def f(x):
        triplets = optax.losses.triplet_margin_loss(x[:42], x[42:84], x[84:126])
        return optax.losses.ntxent(x, labels) + jnp.mean(triplets)

    return f, (normal(128, 64),)


@loss("haiku", "two transposed convolutions in one dimension")
def haiku_transposed() -> Call:
    def build(x):
        return hk.Conv1DTranspose(8, 4, 2)(jax.nn.gelu(hk.Conv1DTranspose(16, 4, 2)(x)))

    return of_haiku(build, normal(8, 256, 8))


@loss("optax", "overlaps of segmentations, and entropies with a polynomial")
def optax_overlaps() -> Call:
    masks = jax.nn.one_hot(integers(4, 8, 64, 64), 4)

    def f(x):
        own = jax.nn.softmax(x)
        both = jnp.sum(own * masks, (1, 2))
        sums = jnp.sum(own, (1, 2)) + jnp.sum(masks, (1, 2))
        entropies = optax.losses.poly_loss_cross_entropy(x.reshape(-1, 4), masks.reshape(-1, 4))
        return jnp.mean(1 - (2 * both + 1) / (sums + 1)) + jnp.mean(entropies)

    return f, (normal(8, 64, 64, 4),)
