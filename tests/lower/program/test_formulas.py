"""The formulas in emitted docstrings: tensors of one label are called as in the code."""

from __future__ import annotations

import jaxte as te
from jaxte.lower.program.plan import lower


def test_tensors_of_one_label_are_told_apart() -> None:
    x, k = te.placeholder((8,), name="x"), te.reduce_axis((0, 3), "k")
    first = te.compute((6,), lambda i: te.sum(x[i + k], axis=k), "x")
    second = te.compute((6,), lambda i: te.exp(first[i]) * first[(i + 1) % 6], "x")
    y = te.compute((6,), lambda i: second[i] * first[i] * x[i], "y")
    program = lower("forward", [x], [y])
    names = {statement.target for statement in program.statements if hasattr(statement, "target")}
    assert {"x_1", "x_2"} <= names
    assert program.formulas == (
        "x_1[i] = sum(x[i + k] for k in [0, 3))",
        "x_2[i] = exp(x_1[i]) * x_1[(i + 1) % 6]",
        "y[i] = x_2[i] * x_1[i] * x[i]",
    )


def test_labels_that_differ_stay() -> None:
    x = te.placeholder((4,), name="a tensor")
    y = te.compute((4,), lambda i: x[i] * 2, "y")
    assert lower("forward", [x], [y]).formulas == ("y[i] = a tensor[i] * 2",)
