"""The formulas in emitted docstrings: tensors of one label are called as in the code."""

from __future__ import annotations

import jaxte as te
from jaxte.lang.expr import Axis
from jaxte.lang.text import definition_text
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


def test_axes_of_a_result_keep_their_names_and_sums_beside_each_other_share_theirs() -> None:
    x = te.placeholder((4, 5), name="x")
    i, i2, i3 = (te.reduce_axis((0, n), "i") for n in (4, 5, 4))
    own = Axis("i_", 0, 5)
    body = te.sum(x[i, own], axis=i) + te.sum(te.sum(x[i3, i2], axis=i2) * x[i3, own], axis=i3)
    text = "sum(x[i, i_] for i in [0, 4)) + sum(sum(x[i, i'] for i' in [0, 5)) * x[i, i_] for i in [0, 4))"
    assert definition_text("y", [own], body) == f"y[i_] = {text}"
    flat = te.compute((5,), lambda i: te.sum(x[i2 - 1, i], axis=i2, where=i2 > 0), "z")
    assert repr(flat) == "z[i] = sum(x[i' - 1, i] for i' in [0, 5) where i' > 0)"
    table, rows = te.placeholder((9, 3), name="T"), te.placeholder((6,), "int32", "I")
    picked = te.compute((6, 3), lambda b, d: table[rows[b], d], "E")
    (adjoint,) = te.differentiate(picked, [table], head=te.placeholder((6, 3), name="H"))
    assert repr(adjoint) == "dT[b, d] = sum(H[b', d] for b' in [0, 6) where I[b'] == b)"
