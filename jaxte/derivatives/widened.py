"""Copies of a graph: in float64, the same definitions over inputs of double precision; or as it is, without the derivatives that were given for its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jaxte.lang import dtypes
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, Reducer, Symbol, cast
from jaxte.lang.walk import rewrite, substitute
from jaxte.tensors.inputs import Placeholder, placeholder
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Extern, Tensor

Kind = Callable[[str], str]
"""The dtype that stands for another."""


def widened(tensors: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """A tensor of double precision for each that ``tensors`` need. Results of functions of arrays stay as precise as they are."""
    return _copied(tensors, _wide)


def without_overrides(tensors: Sequence[Tensor]) -> list[Tensor]:
    """``tensors``, over the same inputs, with the derivatives that follow from their definitions."""
    made = _copied(tensors, lambda dtype: dtype)
    return [made[t] for t in tensors]


def _copied(tensors: Sequence[Tensor], kind: Kind) -> dict[Tensor, Tensor]:
    table: dict[Tensor, Tensor] = {}
    for tensor in topological_order(tensors):
        if tensor not in table:
            _add(tensor, table, kind)
    return table


def _add(tensor: Tensor, table: dict[Tensor, Tensor], kind: Kind) -> None:
    if isinstance(tensor, Compute):
        body = rewrite(tensor.body, lambda node: _node(node, table, kind))
        table[tensor] = Compute(tensor.name, tensor.axes, body)
    elif isinstance(tensor, Recurrent):
        table.update(zip(tensor.group.tensors, _recurrence(tensor.group, table, kind).tensors, strict=True))
    elif isinstance(tensor, Extern):
        inputs = [table[t] for t in tensor.inputs]
        table[tensor] = Extern(
            tensor.name, tensor.shape, tensor.dtype, tensor.fn, inputs, tensor.position, tensor.group
        )
    elif kind(tensor.dtype) == tensor.dtype and isinstance(tensor, Placeholder):
        table[tensor] = tensor
    else:
        table[tensor] = placeholder(tensor.shape, kind(tensor.dtype), tensor.name, tensor.facts or None)


def _recurrence(group: Recurrence, table: Mapping[Tensor, Tensor], kind: Kind) -> Recurrence:
    states = tuple(State(s.name, s.shape, kind(s.dtype)) for s in group.states)
    inner: dict[Tensor, Tensor] = dict(table)
    inner.update(zip(group.states, states, strict=True))
    for tensor in group.inside:
        _add(tensor, inner, kind)
    definitions = [inner[t] for t in group.definitions]
    own = tuple(t for t in definitions if isinstance(t, Compute))
    return Recurrence(states, own, group.places, group.reverse)


def _wide(dtype: str) -> str:
    if dtypes.is_complex(dtype):
        return "complex128"
    return "float64" if dtypes.is_inexact(dtype) else dtype


def _node(node: Expr, table: Mapping[Tensor, Tensor], kind: Kind) -> Expr:
    match node:
        case Read(tensor, indices):
            return Read(table[tensor], indices)
        case Const(value) if not node.weak:
            return Const(value, kind(node.dtype))
        case Call(op, (operand,)) if op.name == "cast":
            return cast(operand, kind(node.dtype))
        case Reduce(reducer, exprs, axes, where, position):
            return Reduce(_reducer(reducer, kind), exprs, axes, where, position)
    return node


def _reducer(reducer: Reducer, kind: Kind) -> Reducer:
    symbols = {s: Symbol(s.name, kind(s.dtype)) for s in (*reducer.lhs, *reducer.rhs)}
    lhs, rhs = (tuple(symbols[s] for s in side) for side in (reducer.lhs, reducer.rhs))
    results = tuple(rewrite(substitute(e, symbols), lambda n: _node(n, {}, kind)) for e in reducer.results)
    identity = tuple(rewrite(e, lambda n: _node(n, {}, kind)) for e in reducer.identity)
    return Reducer(reducer.name, reducer.label, reducer.ties, lhs, rhs, results, identity)
