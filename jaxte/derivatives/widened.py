"""A graph in float64: the same definitions over inputs of double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.lang import dtypes
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, Reducer, Symbol, cast
from jaxte.lang.walk import rewrite, substitute
from jaxte.tensors.graph import topological_order
from jaxte.tensors.inputs import placeholder
from jaxte.tensors.tensor import Compute, Extern, Tensor


def widened(tensors: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """A tensor of double precision for each that ``tensors`` need. Results of functions of arrays stay as precise as they are."""
    table: dict[Tensor, Tensor] = {}
    for tensor in topological_order(tensors):
        table[tensor] = _tensor(tensor, table)
    return table


def _tensor(tensor: Tensor, table: Mapping[Tensor, Tensor]) -> Tensor:
    if isinstance(tensor, Compute):
        body = rewrite(tensor.body, lambda node: _node(node, table))
        return Compute(tensor.name, tensor.axes, body)
    if isinstance(tensor, Extern):
        inputs = [table[t] for t in tensor.inputs]
        return Extern(
            tensor.name, tensor.shape, tensor.dtype, tensor.fn, inputs, tensor.position, tensor.group
        )
    return placeholder(tensor.shape, _wide(tensor.dtype), tensor.name, tensor.facts or None)


def _wide(dtype: str) -> str:
    if dtypes.is_complex(dtype):
        return "complex128"
    return "float64" if dtypes.is_inexact(dtype) else dtype


def _node(node: Expr, table: Mapping[Tensor, Tensor]) -> Expr:
    match node:
        case Read(tensor, indices):
            return Read(table[tensor], indices)
        case Const(value) if not node.weak:
            return Const(value, _wide(node.dtype))
        case Call(op, (operand,)) if op.name == "cast":
            return cast(operand, _wide(node.dtype))
        case Reduce(reducer, exprs, axes, where, position):
            return Reduce(_reducer(reducer), exprs, axes, where, position)
    return node


def _reducer(reducer: Reducer) -> Reducer:
    symbols = {s: Symbol(s.name, _wide(s.dtype)) for s in (*reducer.lhs, *reducer.rhs)}
    lhs, rhs = (tuple(symbols[s] for s in side) for side in (reducer.lhs, reducer.rhs))
    results = tuple(rewrite(substitute(e, symbols), lambda n: _node(n, {})) for e in reducer.results)
    identity = tuple(rewrite(e, lambda n: _node(n, {})) for e in reducer.identity)
    return Reducer(reducer.name, reducer.label, reducer.ties, lhs, rhs, results, identity)
