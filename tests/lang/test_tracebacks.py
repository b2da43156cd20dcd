"""Errors have the lines of their user alone: in tracebacks of Python, and in notebooks, where the message stands first."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxte as te
from jaxte.lang.errors import rendered

X, Y = te.placeholder((34,), name="X"), te.placeholder((35,), name="Y")


@te.function
def beyond(x: Any) -> Any:
    return te.compute((3,), lambda i: x[i + 1], "beyond")


ones = jnp.ones(3)
WRONG: dict[str, Callable[[], Any]] = {
    "compute": lambda: te.compute((34,), lambda i: X[i + 1], "Z"),
    "function": lambda: beyond(ones),
    "too many": lambda: beyond(ones, 1),
    "missing": lambda: te.compute(),
    "grad": lambda: te.grad(beyond)(ones),
    "jax.grad": lambda: jax.grad(lambda x: beyond(x).sum())(ones),
    "jit": lambda: jax.jit(beyond)(ones),
    "method": lambda: beyond.sparse_jacobian(ones),
    "source": lambda: te.source(beyond, ones),
    "compare": lambda: te.compare(beyond, lambda x: x, ones),
    "einsum": lambda: te.einsum("b -> d", ones),
    "define": lambda: te.define("Y[i] = foo(x[i])"),
    "operator": lambda: te.ops.conv2d(jnp.ones((3, 3)), ones),
    "tensors": lambda: X + Y,
    "evaluate": lambda: te.evaluate(te.compute(lambda i: X[i]), {X: ones}),
}


def files_of(wrong: Callable[[], Any]) -> list[str]:
    with pytest.raises(te.JaxteError) as caught:
        wrong()
    return [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("name", WRONG)
def test_no_line_of_jaxte(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [file for file in files_of(WRONG[name]) if "/jaxte/" in file and "/tests/" not in file]
    monkeypatch.setenv("JAXTE_TRACEBACKS", "full")
    assert [file for file in files_of(WRONG[name]) if "/jaxte/" in file and "/tests/" not in file]


def test_a_notebook_shows_the_message_first() -> None:
    def cell(text: str) -> CodeType:
        return compile(text, "/nowhere/cell.py", "exec")

    scope: dict[str, Any] = {"te": te, "X": X}
    exec(cell("def shifted():\n    return te.compute((34,), lambda i: X[i + 1], 'Z')"), scope)
    with pytest.raises(te.RangeError) as caught:
        exec(cell("shifted()"), scope)
    lines = rendered(caught.value)
    assert lines[0].startswith("RangeError: X[i + 1] reads X[34] at i=33")
    assert [line.splitlines()[0] for line in lines[1:3]] == ["  cell, line 2, in shifted", "  cell, line 1"]
    assert caught.value._render_traceback_()[0] == lines[0]
