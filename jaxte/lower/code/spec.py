"""What recognisers return: a specification of the operation, or the reason for refusing.

A specification names the arrays that the operation takes as *elements over axes*: ``Array(axes, body)`` is the
array whose entry at ``axes`` is ``body``. The evaluator brings each of them about in its own way (a read of all axes
in order is the tensor itself, other affine reads are views, the rest is elementwise) and hands the nodes
of these operands to the specification's ``*_source`` function, which makes the operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, multiplied
from jaxte.lang.expr import ONE, Axis, Expr
from jaxte.lang.graphs import among
from jaxte.lang.operators import MULTIPLY
from jaxte.lang.walk import substitute
from jaxte.lower.arrays.elementwise import Apply, Name
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import Broadcast, Reshape
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.sets.affine import normal


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a recogniser does not offer its form; ``te.explain`` shows the reason."""

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Array:
    """The array over ``axes``, all of which start at 0, whose entry is ``body``.

    ``body`` may be a ``Reduce`` over further axes: the array is then a sum (or another reduction) on its own.
    """

    axes: tuple[Axis, ...]
    body: Expr

    @property
    def shape(self) -> tuple[Expr, ...]:
        return tuple(axis.hi for axis in self.axes)

    @property
    def dtype(self) -> str:
        return self.body.dtype


@dataclass(frozen=True, slots=True)
class Finish:
    """What is done to the result of an operation in the end: another shape, repeated to ``extents``, times ``scale``; None for nothing."""

    shape: tuple[Expr, ...] | None
    extents: tuple[Expr, ...] | None
    scale: Array | None

    @property
    def operands(self) -> tuple[Array, ...]:
        return () if self.scale is None else (self.scale,)

    def of(self, node: Node, operands: Sequence[Node]) -> Node:
        """``node`` finished, where the first of ``operands`` is the scale, if there is one."""
        if self.shape is not None:
            node = apply_steps(node, [Reshape(self.shape)])
        if self.extents is not None:
            node = Broadcast(node, self.extents)
        return node if self.scale is None else Apply(MULTIPLY, (operands[0], node))


def over_all(axes: Sequence[Axis], used: Sequence[Axis], outer: Sequence[Factor]) -> Finish:
    """From an array over ``used``, some of ``axes`` in their order, to one over all of them, times the factors ``outer``."""
    scale = array(axes, multiplied(outer)) if outer else None
    if all(among(a, used) for a in axes):
        return Finish(None, None, scale)
    shape = tuple(a.extent if among(a, used) else ONE for a in axes)
    return Finish(shape, tuple(a.extent for a in axes), scale)


class OfTwo:
    """A specification of an operation on ``lhs`` and ``rhs``, and of what is done to its result in the end."""

    __slots__ = ()
    lhs: Array
    rhs: Array
    finish: Finish

    @property
    def operands(self) -> tuple[Array, ...]:
        return (self.lhs, self.rhs, *self.finish.operands)


def array(axes: Sequence[Axis], body: Expr) -> Array:
    """``body`` over fresh axes that start at 0, one for each of ``axes``."""
    fresh = tuple(Axis(axis.name, 0, normal(axis.extent)) for axis in axes)
    shifted = {old: normal(new + old.lo) for old, new in zip(axes, fresh, strict=True)}
    return Array(fresh, substitute(body, shifted))


def on_names(arrays: Sequence[Array]) -> list[Node]:
    """Names of ``arrays``."""
    return [Name(f"operand_{n}", own.shape, (own.dtype, False)) for n, own in enumerate(arrays)]


class Dry:
    """Takes the place of what names nodes in statements, and has all that was named."""

    def __init__(self) -> None:
        self.named: dict[Node, Name] = {}

    def __call__(self, node: Node, target: str = "") -> Name:
        own = Name(target or f"step_{len(self.named)}", node.shape, node.kind)
        return self.named.setdefault(node, own)

    def roots(self, result: Node) -> Iterator[Node]:
        """What was named, and the result."""
        yield from self.named
        yield result
