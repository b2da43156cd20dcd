"""Runs what a recogniser found: its operands by the interpreter, its operation by the emitted source in JAX."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxte.autodiff.terms.support import LatticeSum
from jaxte.lang.expr import Call, Expr, Read, Reduce, Var
from jaxte.lang.graphs import among
from jaxte.lang.operators import SELECT
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.lines import APART, FIRST
from jaxte.lower.printing.printer import Printer
from jaxte.meaning.interpret import interpret
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

NAMES = ("A", "B", "C", "D", "E")


def feeds(rng: np.random.Generator, *tensors: Tensor) -> dict[Tensor, np.ndarray]:
    return {t: rng.standard_normal(t.shape).astype(t.dtype) for t in tensors}


def operands(spec: Any, arrays: Mapping[Tensor, np.ndarray]) -> dict[str, Any]:
    """The operands of ``spec`` under the names that ``NAMES`` gives them."""
    found = {}
    for name, operand in zip(NAMES, spec.operands, strict=False):
        tensor = Compute(name, operand.axes, operand.body)
        needed = topological_order([tensor])
        found[name] = jnp.asarray(interpret(tensor, {t: a for t, a in arrays.items() if among(t, needed)}))
        assert found[name].shape == tuple(map(int, operand.shape))
    return found


def nodes(spec: Any, names: Sequence[str] = NAMES) -> list[Node]:
    """The operands of ``spec`` as arrays that have names."""
    return [Name(n, tuple(o.shape), (o.dtype, False)) for n, o in zip(names, spec.operands, strict=False)]


def text_of(node: Node, **sizes: Var) -> str:
    """The text of a node; ``sizes`` are the symbolic sizes in it."""
    return Printer({size: name for name, size in sizes.items()}).text(node)


class Steps:
    """Statements under way: gives nodes names, and has the lines."""

    def __init__(self, **sizes: Var) -> None:
        self.printer = Printer({size: name for name, size in sizes.items()})
        self.lines: list[str] = []

    def __call__(self, node: Node, target: str = "") -> Name:
        target = target or f"Y_{len(self.lines) + 2}"
        self.lines.append(f"{target} = {self.printer.text(node)}")
        return Name(target, node.shape, node.kind)


def run(source: str | list[str], spec: Any, arrays: Mapping[Tensor, np.ndarray]) -> np.ndarray:
    """The value of an emitted expression, or of ``Y`` after emitted statements."""
    modules: dict[str, Any] = {
        "jnp": jnp,
        "lax": lax,
        "functools": functools,
        APART: lambda x: x,
        FIRST: lambda x: x,
    }
    scope = modules | operands(spec, arrays)
    if isinstance(source, str):
        return np.asarray(eval(source, scope))
    exec("\n".join(source), scope)
    return np.asarray(scope["Y"])


def split_guard(body: Expr) -> tuple[Reduce, tuple[Expr, ...]]:
    """The reduction of an adjoint and the condition that it stands behind."""
    if isinstance(body, Call) and body.op is SELECT:
        assert isinstance(body.args[1], Reduce)
        return body.args[1], (body.args[0],)
    assert isinstance(body, Reduce)
    return body, ()


def sum_of(tensor: Compute) -> Compute:
    """The tensor of the sums that ``tensor`` puts at multiples, among zeros; itself if it is none of these."""
    match tensor.body:
        case Call(op, (_, Read(LatticeSum() as inner, _), _)) if op is SELECT:
            return inner
    return tensor


def check(
    tensor: Compute,
    source: str | list[str],
    spec: Any,
    arrays: Mapping[Tensor, np.ndarray],
    tolerance: float = 1e-5,
) -> None:
    """What was emitted against the meaning of ``tensor``."""
    expected = interpret(tensor, arrays)
    found = run(source, spec, arrays)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
