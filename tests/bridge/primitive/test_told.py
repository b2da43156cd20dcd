"""What costs many times what it has to is said: by a warning, in te.explain, and by an error before 100 GB are asked for."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.bridge.primitive.told import told
from jaxte.lower.program.plan import lower

F32 = np.dtype("float32")


def close_pairs(n: int) -> tuple[list[te.Tensor], te.Tensor]:
    """A sum over pairs that are equal by data: a comparison of each with each."""
    a, b, x = (
        te.placeholder((n,), "int32", "a"),
        te.placeholder((n,), "int32", "b"),
        te.placeholder((n,), name="x"),
    )
    j = te.reduce_axis((0, n), "j")
    near = lambda i: te.abs(a[i] - b[j]) < 2  # noqa: E731
    return [a, b, x], te.compute((n,), lambda i: te.sum(x[j], axis=j, where=near(i)), "near")


def band(n: int) -> tuple[list[te.Tensor], te.Tensor]:
    """Columns near the diagonal by a condition that no form takes apart: a mask over n x n."""
    x = te.placeholder((n, n), name="x")
    j = te.reduce_axis((0, n), "j")
    inside = lambda i: te.abs((i * 7) % n - j) < 2  # noqa: E731
    return [x], te.compute((n,), lambda i: te.sum(te.exp(x[i, j]), axis=j, where=inside(i)), "band")


def test_a_dense_form_is_warned_of_once() -> None:
    inputs, y = band(1200)
    program = lower("forward", inputs, [y])
    (choice,) = program.choices
    assert choice.verdict is not None and choice.verdict.is_dense
    with pytest.warns(te.PerformanceWarning, match=r"band .* is dense, \d+ times the points that count"):
        told("f", program)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told("f", program)


def test_the_report_opens_with_it() -> None:
    inputs, y = band(1300)
    fn = te.function(inputs, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", te.PerformanceWarning)
        report = fn.explain(jax.ShapeDtypeStruct((1300, 1300), F32))
    text = str(report)
    assert "band: dense" in text.splitlines()[1] and "% 1300" in text.splitlines()[1]
    assert "no scatter" not in text and report.verdicts["band"].counting < 10 * 1300


def test_small_and_ordinary_definitions_are_not_told_of() -> None:
    inputs, y = close_pairs(50)
    x, w = te.placeholder((2, 12, 12, 4), name="x"), te.placeholder((3, 3, 4, 8), name="w")
    k, m, c = (te.reduce_axis((0, e), n) for e, n in ((3, "k"), (3, "m"), (4, "c")))
    conv = te.compute(
        (2, 10, 10, 8),
        lambda b, i, j, o: te.sum(x[b, i + k, j + m, c] * w[k, m, c, o], axis=(k, m, c)),
        "conv",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given, tensor in ((inputs, y), ([x, w], conv)):
            assert "what its definition asks for" in str(te.explain(tensor)).splitlines()[1]
            told("f", lower("forward", given, [tensor]))


def test_a_hundred_gigabytes_are_refused_by_name() -> None:
    x = te.placeholder((200_000,), name="x")
    distance = te.compute((200_000, 200_000), lambda i, j: te.exp(-((x[i] - x[j]) ** 2)), "distance")
    with pytest.raises(MemoryError, match=r"distance needs an array of 160,000,000,000 bytes"):
        lower("forward", [x], [distance])
    with pytest.raises(te.JaxteError, match="max_memory"):
        lower("forward", [x], [distance])
