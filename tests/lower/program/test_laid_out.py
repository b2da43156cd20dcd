"""What XLA writes to memory before it reduces it is counted, and told of where it is out of proportion."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.code.choice import Verdict
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from tests.xla_counts import Fused

F32 = np.dtype("float32")
Definition = tuple[list[te.Tensor], te.Tensor]


def squared_differences(n: int) -> Definition:
    """Of an image and its shifts within windows of 11 x 11."""
    x = te.placeholder((n, n), name="x")
    k, m = te.reduce_axis((0, 11), "k"), te.reduce_axis((0, 11), "m")
    centre = lambda i, j: x[i + 5, j + 5]  # noqa: E731
    return [x], te.compute(
        (n - 10, n - 10), lambda i, j: te.sum((x[i + k, j + m] - centre(i, j)) ** 2, (k, m)), "squares"
    )


def written_out(n: int) -> Definition:
    """The same as a sum of Python's over one axis."""
    x, k = te.placeholder((n, n), name="x"), te.reduce_axis((0, 11), "k")
    return [x], te.compute(
        (n - 10, n - 10),
        lambda i, j: sum(te.sum((x[i + k, j + m] - x[i + 5, j + 5]) ** 2, k) for m in range(11)),
        "squares",
    )


def greatest_in_windows(n: int) -> Definition:
    """Of a sequence and weights by place in the window, an eighth of the sequence long."""
    x, w, k = (
        te.placeholder((n,), name="x"),
        te.placeholder((n // 8,), name="w"),
        te.reduce_axis((0, n // 8), "k"),
    )
    return [x, w], te.compute((n - n // 8 + 1,), lambda i: te.max(x[i + k] + w[k], k), "greatest")


def max_plus(n: int) -> Definition:
    x, y, j = te.placeholder((n,), name="x"), te.placeholder((n,), name="y"), te.reduce_axis((0, n), "j")
    inside = lambda i: te.logical_and(i - j >= 0, i - j < n)  # noqa: E731
    return [x, y], te.compute((2 * n - 1,), lambda i: te.max(x[j] + y[i - j], j, where=inside(i)), "max_plus")


def triples(n: int) -> Definition:
    x, j, k = te.placeholder((n,), name="x"), te.reduce_axis((0, n), "j"), te.reduce_axis((0, n), "k")
    value = lambda i: te.exp(-((x[i] - x[j]) ** 2) - (x[j] - x[k]) ** 2)  # noqa: E731
    return [x], te.compute((n,), lambda i: te.sum(value(i), (j, k)), "triples")


LAID_OUT: dict[str, tuple[Callable[[int], Definition], int, int, int]] = {
    # definition, a size that is told of and the bytes held there, a size to compile
    "squared differences": (squared_differences, 512, 11 * 502 * 11 * 502 * 4, 128),
    "greatest in windows": (greatest_in_windows, 8000, 7001 * 1000 * 4, 2048),
}


def verdict(definition: Definition, platform: str = "cpu") -> Verdict:
    inputs, y = definition
    found = lower("forward", inputs, [y], Policy(platform=platform)).choices[-1].verdict
    assert found is not None
    return found


@pytest.mark.parametrize("name", LAID_OUT)
def test_what_reductions_lay_out_is_counted(name: str) -> None:
    define, n, held, _ = LAID_OUT[name]
    own = verdict(define(n))
    assert own.is_large and own.held == held
    assert "a sum of Python's" in own.remedy
    assert not verdict(define(n), "gpu").is_large  # fused there


@pytest.mark.parametrize("name", LAID_OUT)
def test_the_count_is_what_xla_holds(name: str) -> None:
    define, _, _, n = LAID_OUT[name]
    inputs, y = define(n)
    args = [jax.ShapeDtypeStruct(t.shape, F32) for t in inputs]
    compiled = Fused(jax.jit(te.function(inputs, y)).lower(*args)).memory_analysis()
    assert 0.9 < compiled.temp_size_in_bytes / verdict((inputs, y)).held < 1.1


def test_what_runs_in_steps_holds_nothing() -> None:
    inputs, y = max_plus(2048)
    choice = lower("forward", inputs, [y], Policy()).choices[-1]
    assert choice.form == "steps of j" and choice.verdict is None


def test_what_is_fused_is_not_counted() -> None:
    assert verdict(written_out(512)).held < 2**20
    assert verdict(triples(512)).held == 0
    x, j = te.placeholder((2048,), name="x"), te.reduce_axis((0, 2048), "j")  # longer rows are held in tiles
    chosen = te.compute((2048,), lambda j: te.select(x[j] < 0, x[j], 0.0), "chosen")
    y = te.compute((2048,), lambda i: te.sum(te.exp(x[i] - chosen[j]), j), "y")
    assert verdict(([x], y)).held < 2**20


def both_passes(save: str) -> list[str]:
    """What is warned of where values and gradients are compiled together, each sum as one loop of XLA's."""
    inputs, y = triples(256)
    fn = te.function(inputs, y, save=save, forms={"*": "sum"})

    def both(h: jax.Array, x: jax.Array) -> object:
        value, pullback = jax.vjp(fn, x)
        return value, pullback(h)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        jax.jit(both).lower(*[jax.ShapeDtypeStruct((256,), F32)] * 2)
    report = fn.explain(jax.ShapeDtypeStruct((256,), F32))
    largest = max(v.held for v in report.verdicts.values())
    assert (largest == 256**3 * 4) == (save == "auto")
    return [str(w.message) for w in told if w.category is te.PerformanceWarning]


def test_what_both_passes_reduce_is_counted_once_they_are_compiled_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where JAX's transpose is faster by estimate; nothing is warned of where it is not."""
    assert both_passes("auto") == []
    monkeypatch.setattr("jaxte.bridge.price.programs.Beside.is_ahead", False)
    monkeypatch.setattr("jaxte.bridge.primitive.told._told", set())
    (told,) = both_passes("auto")
    assert f"{256**3 * 4:,} bytes held, out of proportion" in told
    assert "triples: dtriples_pairs" in told and 'save="nothing"' in told
    assert both_passes("nothing") == []


def test_choices_are_counted_where_no_tiles_take_them() -> None:
    x, j = te.placeholder((512,), name="x"), te.reduce_axis((0, 512), "j")
    y = te.compute((512,), lambda i: te.sum(te.select(x[i] < x[j], te.exp(x[i] - x[j]), 0.5), j), "y")
    compiled = Fused(jax.jit(te.function([x], y)).lower(jax.ShapeDtypeStruct((512,), F32)))
    assert verdict(([x], y)).held == 512 * 512 * 4
    assert 0.9 < compiled.memory_analysis().temp_size_in_bytes / (512 * 512 * 4) < 1.1
