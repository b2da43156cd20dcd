"""What is kept for the way back: in every mode the gradient is the same, and nothing is kept that no adjoint reads."""

from __future__ import annotations

import re

import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_agrees
from tests.loops.tapes import TAPES

pytestmark = pytest.mark.usefixtures("x64")
OF_ALL_KINDS = [
    "use_forward_value_when_taped",
    "tape_across_loops",
    "reduce_mul_then_used",
    "use_tape_in_cond",
]


@pytest.mark.parametrize("save", ["all", "nothing", "single_use", 96])
@pytest.mark.parametrize("name", OF_ALL_KINDS)
def test_all_modes_agree(name: str, save: str | int) -> None:
    kernel = TAPES[name]
    assert_agrees(kernel.run, kernel.make(np.random.default_rng(0)), save=save)


def _kept(name: str, save: str) -> tuple[list[str], str]:
    """What the function that goes back is given, the heads not among it, and its text."""
    kernel = TAPES[name]
    text = str(te.source(te.loops(kernel.run, save=save), *kernel.make(np.random.default_rng(0))))
    (given,) = re.findall(r"def backward\((.*?)\):", text)
    body = text[text.index("def backward(") : text.index("def _fwd(")].split('"""')[-1]
    return [n for n in given.split(", ") if not n.startswith("H")], body


@pytest.mark.parametrize("name", [n for n in TAPES if n != "no_deps"])
def test_everything_kept_is_read(name: str) -> None:
    kept, body = _kept(name, "auto")
    assert [n for n in kept if not re.search(rf"\b{n}\b", body)] == []


def test_modes_keep_what_they_say() -> None:
    assert _kept("no_unused_tape", "all")[0] == []  # linear: no adjoint reads a value
    assert _kept("use_forward_value_when_taped", "nothing")[0] == ["x"]
    assert _kept("use_forward_value_when_taped", "all")[0] == ["t"]


def test_gradients_by_what_is_no_input() -> None:
    x, other = te.placeholder((3,), name="x"), te.placeholder((2,), name="other")
    y = te.compute((3,), lambda i: x[i] ** 2, "y")
    (none,) = te.differentiate(y, [other])
    assert none.shape == (3, 2)
    np.testing.assert_array_equal(te.interpret([none], {})[0], np.zeros((3, 2)))
    with pytest.raises(te.JaxteError, match="to argument 1: it is called with 1 arguments"):
        te.grad(te.loops(TAPES["reduce_mul"].run), argnums=1)(np.ones(3))
