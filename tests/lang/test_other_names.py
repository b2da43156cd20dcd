"""Names of other libraries lead to those of jaxte."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import jaxte as te
from jaxte.lang import errors

X = te.placeholder((3,), name="X")


def test_what_is_meant_exists_and_what_is_not_does_not() -> None:
    for table, module in ((errors.PUBLIC, te), (errors.OPERATORS, te.ops)):
        for other, own in table.items():
            assert own in module.__all__
            with pytest.raises(AttributeError, match=rf"no attribute '{other}'; did you mean (te\.)?{own}\?"):
                getattr(module, other)
    callables = [te.norm, *(getattr(te.ops, name) for name in te.ops.__all__)]
    parameters = {p for fn in callables for p in inspect.signature(fn).parameters}
    for other, own in errors.PARAMETERS.items():
        assert own in parameters, (other, own)


def test_parameters_of_other_libraries() -> None:
    x, w = np.ones((1, 3, 8, 8), "float32"), np.ones((4, 3, 3, 3), "float32")
    for call, meant in (
        (lambda: te.ops.conv2d(x, w, stride=2), "strides"),
        (lambda: te.ops.conv2d(x, w, data_format="NHWC"), "layout"),
        (lambda: te.ops.softmax(x, dim=1), "axis"),
        (lambda: te.ops.sum(x, axis=1, keepdim=True), "keepdims"),
    ):
        with pytest.raises(te.ArgumentError, match=rf"did you mean {meant}=\?"):
            call()


def test_elements_are_not_assigned() -> None:
    with pytest.raises(te.DefinitionError, match=r"the elements of X .* te\.select\(i == 0, a, b\)"):
        X[0] = 1.0


def test_lists_of_numbers_are_no_tensors() -> None:
    first = te.function(lambda a: te.compute(lambda i: a[i, 0], "first"))
    with pytest.raises(te.DefinitionError, match=r"no Tensor: list indices .*jnp\.asarray\(\[1\.0, 2\.0\]\)"):
        first([[1.0, 2.0], [3.0, 4.0]])


def test_one_definition_of_a_result_is_a_formula() -> None:
    x, h = te.placeholder((3,), name="x"), te.placeholder((3,), name="h")
    y = te.compute((3,), lambda i: 2.0 * x[i], "y")
    assert te.formula(te.differentiate(y, [x], head=h)) == "dx[i] = h[i] * 2  (i < 3)"
    with pytest.raises(te.ArgumentError, match=r"te\.definitions writes several"):
        te.formula([x, y])
