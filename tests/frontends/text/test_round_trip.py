"""What ``te.definitions`` writes of every function of the corpus, the suite and their adjoints, ``te.define`` reads back."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import jaxte as te
import lines
from harness.case import CORPUS, JAXTE, SUITE, load, names
from harness.inputs import draw
from jaxte.lang.graphs import among
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


def of_case(name: str) -> tuple[list[Tensor], list[Tensor], Sequence[Any]]:
    """The inputs, the outputs and the arrays of a case."""
    case = load(name)
    arrays = draw(case.inputs_at("tiny"))
    inputs = [te.placeholder(a.shape, a.dtype, f"arg{n}") for n, a in enumerate(arrays)]
    result = case.sides[JAXTE](*inputs)
    return inputs, list(result) if isinstance(result, tuple) else [result], arrays  # type: ignore[return-value]


def read_back(outputs: list[Tensor]) -> list[Tensor]:
    function = te.define(te.definitions(outputs))
    inputs = {t.name: t for t in topological_order(outputs) if not isinstance(t, Compute)}
    result = function(**inputs)
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", [*names(CORPUS), *names(SUITE)])
def test_definitions_are_read_back(name: str) -> None:
    inputs, outputs, arrays = of_case(name)
    if "…" in te.definitions(outputs):  # more than 40 of them
        with pytest.raises(
            te.DefinitionError, match=r"… stands for what te.formula and te.definitions leave out"
        ):
            read_back(outputs)
        return
    again = read_back(outputs)
    assert te.definitions(again) == te.definitions(outputs)
    if sum(a.size for a in arrays) < 200:  # interpreted, that is plain loops
        needed = topological_order(outputs)
        feeds = {t: a for t, a in zip(inputs, arrays, strict=True) if among(t, needed)}
        unread = [t for t in outputs if not any(among(t, s.inputs) for s in topological_order(outputs))]
        for own, expected in zip(again, unread, strict=True):
            np.testing.assert_allclose(
                te.interpret(own, feeds), te.interpret(expected, feeds), rtol=1e-5, atol=1e-6
            )


def test_adjoints_are_read_back() -> None:
    X, W = te.placeholder((8, 34, 16), name="X"), te.placeholder((3, 16, 32), name="W")
    k, c = te.indices("k c")
    Y = te.compute(lambda b, t, o: te.sum(X[b, 2 * t + k, c] * W[k, c, o], over=[k, c]), "Y")
    adjoints = list(te.differentiate(Y, [X, W], head=te.placeholder(Y.shape, name="H")))
    assert te.definitions(read_back(adjoints)) == te.definitions(adjoints)


def test_names_that_differ_by_apostrophes_and_inputs_of_the_same_name() -> None:
    u = te.placeholder((6,), name="u")
    i = te.reduce_axis((0, 6), "i")
    step = te.compute((6,), lambda i_: u[i_] + te.sum(u[i], axis=i), "u")
    twice = te.compute((6,), lambda i: step[i] * u[i], "u")
    assert te.definitions(twice).splitlines()[-1] == "u_2[i] = u_1[i] * u[i]  (i < 6)"
    assert te.definitions(read_back([twice])) == te.definitions(twice)
    primed = te.compute((6,), lambda i_: te.sum(u[i_] * u[i], axis=i), "v")
    text = te.formula(primed).replace("i_", "i'")
    assert te.formula(te.define(text)(u)) == text


def test_the_page_of_lines() -> None:
    """And its goal: the median formula is no longer than the median function in plain JAX."""
    assert lines.PAGE.read_text(encoding="utf-8") == lines.page(), "python benchmarks/lines.py"
    _, plain, formulas = zip(*lines.measured().values(), strict=True)
    assert statistics.median(formulas) <= statistics.median(plain)


@pytest.mark.parametrize(
    "name",
    ["my tensor", "layer.0.weight", "params['w']", "lambda", "over", "None", "2x", "__a", "x'", "é", "-"],
)
def test_names_that_are_no_names_of_formulas_are_written_as_such(name: str) -> None:
    """Two of them may be alike; axes have such names, too."""
    values = np.arange(4, dtype="float32")
    a, b = te.placeholder((4,), name=name), te.placeholder((4,), name=f"{name}")
    k = te.reduce_axis((0, 4), name)
    made = te.compute((4,), lambda i: a[i] - 2 * b[i] + te.sum(a[k], axis=k), name)
    read = te.define(te.definitions(made))
    expected = te.interpret(made, {a: values, b: values[::-1]})
    by_place = {t.name: v for t, v in ((a, values), (b, values[::-1]))}
    assert len(by_place) == 1  # of one name
    np.testing.assert_allclose(read(values, values[::-1].copy()), expected)


def test_long_subexpressions_are_written_and_read() -> None:
    x = te.placeholder((8,), name="x")
    Y = te.compute((8,), lambda i: te.exp(sum(te.maximum(x[i], 0.1 * n) / (n + 1) for n in range(100))), "Y")
    written = te.formula(Y)
    assert len(written) > 2000 and "…" not in written
    assert te.formula(te.define(written)(x)) == written
    with pytest.raises(
        te.DefinitionError, match=r"… stands for what te.formula and te.definitions leave out"
    ):
        te.define("Y[i] = x[i] + …")
