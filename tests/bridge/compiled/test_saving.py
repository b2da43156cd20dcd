"""What is kept for the backward pass: the choices of ``save=``, what XLA says of the memory, and the two passes by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.agreement import QUICK


def network(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Layers ``h -> tanh(h w)``."""
    rows, n = x.shape
    h = x
    for layer in range(w.shape[0]):
        k = te.reduce_axis((0, n), f"k{layer}")
        z = te.compute(
            (rows, n),
            lambda i, j, h=h, k=k, layer=layer: te.sum(h[i, k] * w[layer, k, j], axis=k),
            f"z{layer}",
        )
        h = te.compute((rows, n), lambda i, j, z=z: te.tanh(z[i, j]), f"h{layer}")
    i, j = te.reduce_axis((0, rows), "i"), te.reduce_axis((0, n), "j")
    return te.compute((), lambda: te.sum(h[i, j] * h[i, j], axis=[i, j]), "loss")


def plain(x: Any, w: Any) -> Any:
    for one in w:
        x = jnp.tanh(x @ one)
    return jnp.sum(x * x)


RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((8, 4)).astype("f"), RNG.standard_normal((3, 4, 4)).astype("f")
LAYER = 8 * 4 * 4  # bytes of an activation


def kept(save: Any, builder: Any = network, *args: Any) -> dict[str, int | None]:
    """The residuals between inputs and outputs, with their bytes."""
    explained = te.explain(te.function(builder, save=save), *(args or (X, W)))
    return {s.tensor.name: s.bytes for s in explained.saved if s.again}


def test_the_modes() -> None:
    assert kept("nothing") == {}
    assert kept("all") == {"h0": LAYER, "h1": LAYER, "h2": LAYER}
    assert kept("auto") == {"h0": LAYER, "h1": LAYER, "h2": LAYER}
    assert set(kept("single_use")) == {"h0", "h1", "h2"}
    assert set(kept(["h1"])) == {"h1"}
    assert set(kept({"h1": False})) == {"h0", "h2"}
    assert set(kept({"z1": True})) == {"h0", "h1", "h2"}  # nothing is kept that is not read
    assert set(kept({"h1": False, "z1": True})) == {"h0", "z1", "h2"}


@pytest.mark.parametrize("save", ["nothing", "all", "single_use", 2 * LAYER, ["h1"], {"h0": False}])
def test_gradients_are_the_same_whatever_is_kept(save: Any) -> None:
    fn = te.function(network, save=save)
    for found, expected in zip(jax.grad(fn, (0, 1))(X, W), jax.grad(plain, (0, 1))(X, W), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    many = jax.vmap(jax.grad(fn), in_axes=(0, None))(np.stack([X, X + 1]), W)
    np.testing.assert_allclose(many[0], jax.grad(plain)(X, W), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jax.jvp(fn, (X, W), (X, W))[1], jax.jvp(plain, (X, W), (X, W))[1], rtol=1e-4)


def test_a_budget_is_used_for_what_costs_most() -> None:
    def uneven(x, w):
        k = te.reduce_axis((0, 4), "k")
        product = te.compute((8, 4), lambda i, j: te.sum(x[i, k] * w[0, k, j], axis=k), "product")
        cheap = te.compute((8, 4), lambda i, j: te.sin(x[i, j]), "cheap")
        return te.compute((8, 4), lambda i, j: te.exp(product[i, j]) * te.exp(cheap[i, j]), "out")

    assert set(kept(LAYER, uneven)) == {"product"}
    assert set(kept(2 * LAYER, uneven)) == {"product", "cheap"}
    assert kept(0, uneven) == {}
    two = kept(2 * LAYER)
    assert sum(two.values()) <= 2 * LAYER and len(two) == 2


def test_what_is_kept_is_listed_with_its_cost_before_anything_runs() -> None:
    n = te.var("n")
    x, w = te.placeholder((n, 4), name="x"), te.placeholder((3, 4, 4), name="w")
    explained = te.explain(te.function([x, w], network(x, w), save="all"))
    found = {s.tensor.name: (s.size, s.again) for s in explained.saved}
    assert found["h0"][0] == "16 * n"
    # the product: four times a multiplication and a sum, and the sum's own; then the tanh
    assert found["h0"][1].endswith("* n")
    assert "h0 float32(n, 4): 16 * n bytes, " in str(explained) and "operations to compute again" in str(
        explained
    )
    assert found["w"] == ("192", "")


def test_errors() -> None:
    with pytest.raises(te.LoweringError, match=r"save= has nowhere, which is no tensor.*h0"):
        kept(["nowhere"])
    with pytest.raises(te.LoweringError, match=r"save is 'some'; give \"auto\""):
        te.function(network, save="some")
    with pytest.raises(te.LoweringError, match=r"no number of bytes"):
        te.function(network, save=-1)
    with pytest.raises(te.LoweringError, match=r"save has "):
        te.function(network, save={"h0": 3})
    own = te.custom_gradient(lambda x: te.tanh(x))
    own.defgrad(lambda x: (None, jnp.tanh(x)), lambda y, ct: (ct * (1 - y * y),), arrays=True)
    with pytest.raises(te.LoweringError, match=r"save=10 bytes is below the 128 .*residuals_tanh"):
        kept(10, lambda x: own(x), X)
    with pytest.raises(te.DefinitionError, match=r"save= of network"):
        x, w = te.placeholder((8, 4), name="x"), te.placeholder((3, 4, 4), name="w")
        te.function(network, save="all")(x, w)


def test_xla_computes_again_what_is_not_kept() -> None:
    """Behind a barrier: else XLA would find that both passes compute the same, and keep it."""
    w = RNG.standard_normal((8, 64, 64)).astype("f")
    x = RNG.standard_normal((256, 64)).astype("f")
    counts = {}
    for save in ("all", "nothing"):
        fn = te.function(network, save=save)
        text = jax.jit(jax.value_and_grad(fn)).lower(x, w).compile(compiler_options=QUICK).as_text()
        counts[save] = text.count("tanh(")
    assert counts["nothing"] > counts["all"]


def memory(fn: Any, *arrays: Any) -> tuple[int, int]:
    """What XLA says: bytes that the forward pass returns beside its results, and bytes that the backward pass takes beside the heads."""
    graph = te.function(fn)._graph(arrays, {})
    back = graph.backward
    given = [a.nbytes for a in arrays]

    def analysed(program: Any, tensors: Any) -> Any:
        shapes = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in tensors]
        return jax.jit(program).lower(*shapes).compile(compiler_options=QUICK).memory_analysis()

    saving, forward = (analysed(p, graph.inputs) for p in (back.saving, graph.program))
    made = graph.backward.backward(back.perturbed, graph.with_head)
    backward = analysed(made, made.inputs)
    heads = sum(int(np.prod(h.shape)) * 4 for h in back.heads)
    assert forward.argument_size_in_bytes <= sum(given)
    return (
        saving.output_size_in_bytes - forward.output_size_in_bytes,
        backward.argument_size_in_bytes - heads,
    )


def test_the_memory_of_both_passes() -> None:
    """Softmax keeps its result alone, layer norm two numbers for each row, layers their activations, a stack of convolutions its sums; no input is copied."""
    x = RNG.standard_normal((64, 128)).astype("f")
    table = 16  # at most, of a pointer for each result
    rows = 2 * 64 * 4
    kept_bytes, read = memory(te.ops.softmax, x)
    assert kept_bytes == 0 and read <= x.nbytes
    kept_bytes, read = memory(lambda x: te.ops.layer_norm(x), x)
    assert rows <= kept_bytes <= rows + 2 * table and read <= x.nbytes + rows
    kept_bytes, read = memory(network, X, W)
    assert 3 * LAYER <= kept_bytes <= 3 * LAYER + 4 * table and read <= X.nbytes + W.nbytes + 3 * LAYER

    def convolutions(x, w):
        for layer in range(3):
            k = te.reduce_axis((0, 3), "k")
            extent = x.shape[0] - 2
            y = te.compute(
                (extent,),
                lambda i, x=x, k=k, layer=layer: te.sum(x[i + k] * w[layer, k], axis=k),
                f"c{layer}",
            )
            x = te.compute((extent,), lambda i, y=y: te.relu(y[i]), f"r{layer}")
        return x

    signal, taps = RNG.standard_normal(64).astype("f"), RNG.standard_normal((3, 3)).astype("f")
    sums = (62 + 60 + 58) * 4
    kept_bytes, read = memory(convolutions, signal, taps)
    assert sums <= kept_bytes <= sums + 4 * table and read <= signal.nbytes + taps.nbytes + sums


def test_two_passes_by_hand() -> None:
    def pair(x, w):
        k = te.reduce_axis((0, 4), "k")
        product = te.compute((8, 4), lambda i, j: te.sum(x[i, k] * w[0, k, j], axis=k), "product")
        hidden = te.compute((8, 4), lambda i, j: te.tanh(product[i, j]), "hidden")
        return {
            "y": te.compute((8, 4), lambda i, j: hidden[i, j] * 2, "y"),
            "n": te.compute((8,), lambda i: i, "n"),
        }

    fn = te.function(pair)
    _, saved = jax.jit(fn.forward_with_residuals)(X, W)
    assert set(saved) == {"x", "w", "hidden"} or set(saved) == {"x", "w", "y"}
    names = fn.gradient_names(X, W)
    assert names.inputs == {"x": "dx", "w": "dw"} and list(names.outputs) == ["y"]
    gradients = jax.jit(fn.backward)(saved, {"y": np.ones((8, 4), "f"), "n": np.zeros(8, "i4")})
    expected = jax.grad(lambda x, w: 2 * jnp.sum(jnp.tanh(x @ w[0])), (0, 1))(X, W)
    for found, own in zip((gradients["dx"], gradients["dw"]), expected, strict=True):
        np.testing.assert_allclose(found, own, rtol=1e-4, atol=1e-5)
    by_name = fn.backward(saved, {names.outputs["y"]: np.ones((8, 4), "f")})
    np.testing.assert_allclose(by_name["dx"], gradients["dx"])
    np.testing.assert_allclose(fn.intermediates(X, W)["hidden"], np.tanh(X @ W[0]), rtol=1e-5)
    assert list(fn.intermediates(X, W, names=["product"])) == ["product"]
    with pytest.raises(te.FeedError, match=r"no intermediate nothing; it has n, product, hidden, y"):
        fn.intermediates(X, W, names=["nothing"])
    with pytest.raises(te.FeedError, match=r"cotangents of pair.*by name \(H"):
        fn.backward(saved, np.ones(3))
    with pytest.raises(te.ArgumentError, match=r"residuals of pair"):
        fn.backward([X], X)


def _padded(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 5), "k")
    p = te.compute((12,), lambda i: te.select((i >= 2) & (i < 10), x[i - 2], 0.0), "p")
    return te.compute((8,), lambda i: te.sum(p[i + k] * te.sin(p[i + k]), axis=k), "y")


def _two_results(x: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    h = te.compute((8,), lambda i: te.exp(x[i]), "h")
    return te.compute((8,), lambda i: te.sin(h[i]), "y"), h


@pytest.mark.parametrize(("builder", "name"), [(_two_results, "h"), (_two_results, "x"), (_padded, "p")])
def test_what_is_in_memory_anyway_or_nowhere_may_be_named(builder: Any, name: str) -> None:
    """Outputs, inputs, and a tensor that the plan computes within its reader."""
    x = np.linspace(0.1, 1.0, 8, dtype="float32")

    def loss(fn: Any) -> Any:
        return lambda x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(fn(x)))

    expected = jax.grad(loss(te.function(builder)))(x)
    for save in ([name], {name: True}, {name: False}):
        np.testing.assert_allclose(jax.grad(loss(te.function(builder, save=save)))(x), expected, rtol=1e-6)


def test_names_that_are_not_there_are_told_when_the_function_is_built() -> None:
    with pytest.raises(te.LoweringError, match=r"save= has z, which is no tensor.*it has x, h, y"):
        te.function(_two_results, save=["z"])(np.ones(8, "float32"))
