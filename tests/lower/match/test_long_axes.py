"""Relations of windows along axes of a million positions: they are tried at a few points, not at all."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.lower.match.affine_relation import Relation
from jaxte.lower.match.index_terms import Form
from jaxte.lower.match.window_relation import relate_quasi_affine
from jaxte.sets.affine import linear
from jaxte.sets.domain import IntegerSet


def transposed(n: int, taps: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A transposed convolution of stride 2, as people write it down."""
    x, w = te.placeholder((n, 4), name="x"), te.placeholder((taps, 4, 8), name="w")
    k, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, 4), "c")
    even = lambda t: (t + k) % 2 == 0  # noqa: E731
    y = te.compute(
        (2 * n - taps, 8),
        lambda t, o: te.sum(x[(t + k) // 2, c] * w[k, c, o], axis=[k, c], where=even(t)),
        "y",
    )
    return x, w, y


@pytest.mark.parametrize("n", [20, 10**6])
def test_a_relation_is_the_same_however_long_the_axis_is(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    t, k = te.reduce_axis((0, 2 * n), "t"), te.reduce_axis((0, 6), "k")
    forms = [Form(linear(e), (), None, None) for e in ((t + k) // 2, k)]
    monkeypatch.setattr(IntegerSet, "points", None)
    found = relate_quasi_affine(t, k, *forms, ((t + k) % 2 == 0,))  # type: ignore[arg-type]
    assert isinstance(found, Relation)
    assert (found.alpha, found.gamma, found.beta) == (2, 1, 1)


def test_long_sequences_are_convolutions_as_short_ones_are() -> None:
    x, w, y = transposed(10**5, 6)
    assert "conv_general_dilated" in te.source(te.function([x, w], y))
    x, w, y = transposed(12, 6)
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(t.shape).astype("float32") for t in (x, w)]
    expected = te.interpret(y, dict(zip((x, w), values, strict=True)))
    np.testing.assert_allclose(te.function([x, w], y)(*values), expected, rtol=1e-4, atol=1e-5)
