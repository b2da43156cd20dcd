"""What a step of planning gives is verified: a step that loses an axis, a dtype or an end of a tensor is named."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis, Call, Expr, Read
from jaxte.lang.operators import MULTIPLY
from jaxte.lang.rules import RuleError
from jaxte.lang.walk import rewrite
from jaxte.planning import graph


def _further(body: Expr) -> Expr:
    return rewrite(body, lambda n: Read(n.tensor, [n.indices[0] + 1]) if isinstance(n, Read) else n)


def _without_factor(body: Expr) -> Expr:
    loose = Axis("loose", 0, 4)
    return rewrite(body, lambda n: n.args[0] * loose if isinstance(n, Call) and n.op is MULTIPLY else n)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda body: te.cast(body, "float64"), "float64 stands for float32"),
        (_without_factor, "loose is bound by nothing"),
    ],
)
def test_a_fault_of_a_step_is_named(
    broken: Callable[[Expr], Expr], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = replace(graph.PLAIN[0], apply=lambda body, at: broken(body))
    monkeypatch.setattr(graph, "PLAIN", (step, *graph.PLAIN[1:]))
    fn = te.function(lambda x: te.compute((4,), lambda i: x[i] * 2.0, "y"))
    with pytest.raises(RuleError, match=rf"plain conditions: {message}.*without='plain conditions'"):
        fn(np.ones(4, "float32"))
    other = te.function(lambda x: te.compute((4,), lambda i: x[i] * 2.0, "y"), without="plain conditions")
    np.testing.assert_array_equal(other(np.ones(4, "float32")), 2)


def test_a_read_that_leaves_its_tensor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    step = replace(graph.PAIRS, apply=lambda own, at: own.renewed(_further(own.body)))
    monkeypatch.setattr(graph, "PAIRS", step)
    fn = te.function(lambda x: te.compute((4,), lambda i: x[i] * 2.0, "y"))
    with pytest.raises(RuleError, match=r"(?s)pairs: x\[i \+ 1\] reads x\[4\] at i=3"):
        fn(np.ones(4, "float32"))
