"""Leaves of pytrees: what they are called in emitted code, and in errors of definitions; functions made of text are pickled."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import jaxte as te


@te.function
def layer(model: dict[str, list[te.Tensor]], x: te.Tensor) -> te.Tensor:
    k = te.axis("k")
    w, b = model["a layer"]
    return te.compute(lambda i: te.sum(w[i, k] * x[k], over=k) + b[i], "layer")


def test_names_and_paths() -> None:
    w, b, x = np.ones((2, 3), "float32"), np.ones(2, "float32"), np.ones(3, "float32")
    assert "def forward(model_a_layer_0, model_a_layer_1, x):" in te.source(layer, {"a layer": [w, b]}, x)
    with pytest.raises(
        te.ShapeError, match=r"(?s)model_a_layer_1\[i\].*, model_a_layer_1 is model\['a layer'\]\[1\]\)$"
    ):
        layer({"a layer": [w, x]}, x[:2])
    with pytest.raises(te.ShapeError) as found:
        te.function(lambda x, y: te.compute(lambda i: x[i] + y[i], "y"))(x, b)
    assert " is " not in str(found.value)


def test_functions_of_text_are_pickled() -> None:
    kept = pickle.loads(pickle.dumps(te.define("Y[i] = sum[k < n](x[i + k])", n=2)))
    np.testing.assert_array_equal(kept(np.arange(4, dtype="float32")), [1, 3, 5])


def test_a_stack_has_an_expression_for_each_value_of_its_axis() -> None:
    x = te.placeholder((3,), name="x")
    for extent in (1, 3):
        with pytest.raises(
            te.DefinitionError, match=rf"te\.stack joins 2 expressions, and c has {extent} values"
        ):
            te.compute((3, extent), lambda i, c: te.stack([x[i], 2 * x[i]], axis=c))
