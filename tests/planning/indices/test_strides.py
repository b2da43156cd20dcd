"""Strided windows that are multiplied by a matrix are frames and one product: what is emitted, and values."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.planning.indices.strides import Frames
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute
from tests.agreement import interpreted
from tests.xla_counts import Fused


def window(length: int, hop: int, columns: int, weighted: bool = False, start: int = 0) -> Any:
    def build(x: te.Tensor, c: te.Tensor, w: te.Tensor) -> te.Tensor:
        t = te.reduce_axis((0, length), "t")
        frames = (int(x.shape[1]) - length - start) // hop + 1

        def element(b: te.Expr, i: te.Expr, f: te.Expr) -> te.Expr:
            read = x[b, hop * i + t + start]
            return te.sum((read * w[t] if weighted else read) * c[t, f], axis=t)

        return te.compute((x.shape[0], frames, columns), element, "y")

    return build


#: length of the window, hop, columns, weights on it, where it starts
CASES = {
    "a quarter": (64, 16, 33, False, 0),
    "no multiple": (40, 16, 21, False, 0),
    "weighted": (32, 8, 17, True, 0),
    "from an offset": (48, 24, 16, False, 5),
}


@pytest.mark.parametrize("name", CASES)
def test_forms_and_values(name: str, rng: np.random.Generator) -> None:
    length, hop, columns, weighted, start = CASES[name]
    build = window(*CASES[name])
    arrays = [rng.standard_normal(s).astype("float32") for s in ((2, 200), (length, columns), (length,))]
    fn = te.function(lambda x, c, w: build(x, c, w))
    text = fn.source(*arrays)
    assert "conv_general" not in text and ".at[" not in text and "x_frames" in text
    h = rng.standard_normal((2, (200 - length - start) // hop + 1, columns)).astype("float32")

    def reference(x: Any, c: Any, w: Any) -> Any:
        at = start + hop * np.arange(h.shape[1])[:, None] + np.arange(length)
        return jax.numpy.einsum("bit,t,tf->bif", x[:, at], w if weighted else w * 0 + 1, c)

    def both(f: Any) -> Any:
        def run(h: Any, *a: Any) -> Any:
            value, pull = jax.vjp(f, *a)
            return value, *pull(h)

        compiled = Fused(jax.jit(run).lower(h, *arrays))
        return compiled(h, *arrays), compiled.cost_analysis()["flops"]

    found, flops = both(fn)
    expected, theirs = both(reference)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-4)
    assert flops <= 1.1 * theirs


def _has_frames(y: Compute) -> bool:
    return any(isinstance(t, Frames) for t in topological_order(planned([y])))


def test_few_columns_and_channels_stay_one_sum() -> None:
    x, c = te.placeholder((2, 200), name="x"), te.placeholder((32, 2), name="c")
    t, k = te.reduce_axis((0, 32), "t"), te.reduce_axis((0, 3), "k")
    few = te.compute((2, 22, 2), lambda b, i, f: te.sum(x[b, 8 * i + t] * c[t, f], axis=t), "few")
    assert not _has_frames(few)
    z, w = te.placeholder((2, 200, 3), name="z"), te.placeholder((32, 3, 64), name="w")
    channels = te.compute(
        (2, 22, 64), lambda b, i, f: te.sum(z[b, 8 * i + t, k] * w[t, k, f], axis=(t, k)), "channels"
    )
    assert not _has_frames(channels)


def test_windows_side_by_side_are_a_view() -> None:
    x, c = te.placeholder((2, 192), name="x"), te.placeholder((32, 20), name="c")
    t = te.reduce_axis((0, 32), "t")
    y = te.compute((2, 6, 20), lambda b, i, f: te.sum(x[b, 32 * i + t] * c[t, f], axis=t), "y")
    assert not _has_frames(y) and "x.reshape(2, 6, 32)" in te.source(y)


def test_functions_of_windows_are_of_frames_and_convolutions_stay() -> None:
    x, w = te.placeholder((2, 200), name="x"), te.placeholder((40,), name="w")
    t = te.reduce_axis((0, 40), "t")
    energy = te.compute((2, 11), lambda b, i: te.sum((w[t] * x[b, 16 * i + t]) ** 2, axis=t), "y")
    assert "x_frames" in te.source(energy) and "arange" not in te.source(energy)
    filtered = te.compute((2, 11), lambda b, i: te.sum(w[t] * x[b, 16 * i + t], axis=t), "y")
    assert "x_frames" not in te.source(filtered)


def added_where_they_overlap(v: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Frames of four hops, windowed, each added where it stands."""
    (n, f, _), hop = v.shape, int(w.shape[0]) // 4
    k = te.reduce_axis((0, 4), "k")

    def element(b: te.Expr, i: te.Expr) -> te.Expr:
        at = i // hop - k
        inside = v[b, at, i % hop + k * hop] * w[i % hop + k * hop]
        return te.sum(te.select((at >= 0) & (at < f), inside, 0.0), axis=k)

    return te.compute((n, (int(f) + 3) * hop), element, "y")


def plain_added(v: Any, w: Any) -> Any:
    (n, f, _), hop = v.shape, w.shape[0] // 4
    parts = (v * w).reshape(n, f, 4, hop)
    pad = jax.numpy.pad
    return sum(pad(parts[:, :, k], ((0, 0), (k, 3 - k), (0, 0))) for k in range(4)).reshape(n, -1)


ROWS: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...]]] = {
    "added": (added_where_they_overlap, plain_added, ((2, 9, 32), (32,))),
    "matched": (
        lambda x, v: te.compute(
            (24,), lambda t: te.sum(x[8 * (i := te.reduce_axis((0, 10), "i")) + t] * v[i, t], axis=i), "y"
        ),
        lambda x, v: sum(x[8 * i : 8 * i + 24] * v[i] for i in range(10)),
        ((96,), (10, 24)),
    ),
    "of two in a batch": (
        lambda x, v: te.compute(
            (32, 3),
            lambda t, c: te.sum(
                x[(b := te.reduce_axis((0, 2), "b")), 16 * (i := te.reduce_axis((0, 5), "i")) + t + 3, c]
                * v[b, i, t, c],
                axis=(b, i),
            ),
            "y",
        ),
        lambda x, v: sum(x[b, 16 * i + 3 : 16 * i + 35] * v[b, i] for b in range(2) for i in range(5)),
        ((2, 99, 3), (2, 5, 32, 3)),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_summed_beside_an_array_of_as_many_elements(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes = ROWS[name]
    inputs = [te.placeholder(s, "float64", name=n) for n, s in zip("vw", shapes, strict=True)]
    y = build(*inputs)
    head = te.placeholder(y.shape, "float64", name="head")
    outputs = [y, *te.differentiate(y, inputs, head)]
    text = te.source(outputs)
    assert "_frames" in text and "conv_general" not in text and ".at[" not in text and "arange" not in text
    feeds = {t: rng.standard_normal(t.shape) for t in (*inputs, head)}
    with jax.enable_x64(True):
        expected, pull = jax.vjp(plain, *(feeds[t] for t in inputs))
        wanted = [expected, *pull(jax.numpy.asarray(feeds[head]))]
        emitted = te.function([*inputs, head], outputs)(*feeds.values())
    for t, own, other in zip(outputs, emitted, wanted, strict=True):
        np.testing.assert_allclose(interpreted(t, feeds), other, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)


def test_frames_that_overlap_are_slices_of_one_array() -> None:
    v, w = te.placeholder((2, 9, 32), name="v"), te.placeholder((32,), name="w")
    text = te.source(added_where_they_overlap(v, w))
    assert "v_padded" in text and text.count("jnp.pad") == 1
