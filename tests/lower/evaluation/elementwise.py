"""The values of names, numbers and constant arrays, and of operations on each element by itself."""

from __future__ import annotations

import numpy as np

from jaxte.lower.arrays import elementwise
from jaxte.lower.arrays.node import ArrayError
from jaxte.meaning.rounding import converted, operated, storage
from tests.lower.evaluation.frame import Frame, Rules, Value


def _name(node: elementwise.Name, at: Frame) -> Value:
    if node.identifier == "None":
        return None
    if node.identifier not in at.names:
        raise ArrayError(f"{node.identifier} is read before it is assigned")
    return at.names[node.identifier]


def _number(node: elementwise.Number, at: Frame) -> Value:
    return np.array(node.value, storage(node.kind))


def _size(node: elementwise.Size, at: Frame) -> Value:
    return np.array(at.size(node.extent))


def _typed(node: elementwise.Typed, at: Frame) -> Value:
    return converted(at.value(node.number), node.kind)


def _full(node: elementwise.Full, at: Frame) -> Value:
    number = converted(at.value(node.number), node.kind)
    return np.full(at.shape(node.extents), number, number.dtype)


def _literal(node: elementwise.Literal, at: Frame) -> Value:
    return np.array(node.numbers, storage(node.kind)).reshape(at.shape(node.extents))


def _arange(node: elementwise.Arange, at: Frame) -> Value:
    return np.arange(node.start, at.size(node.stop), node.step).astype(storage(node.kind))


def _apply(node: elementwise.Apply, at: Frame) -> Value:
    return np.asarray(operated(node.op, at.values(node.args), [a.kind for a in node.args], node.kind))


def _cast(node: elementwise.Cast, at: Frame) -> Value:
    return converted(at.value(node.array), node.kind)


def _kept(node: elementwise.Kept, at: Frame) -> Value:
    return at.value(node.array)


RULES: Rules = {
    elementwise.Name: _name,
    elementwise.Number: _number,
    elementwise.Size: _size,
    elementwise.Typed: _typed,
    elementwise.Full: _full,
    elementwise.Literal: _literal,
    elementwise.Arange: _arange,
    elementwise.Apply: _apply,
    elementwise.Cast: _cast,
    elementwise.Kept: _kept,
}
