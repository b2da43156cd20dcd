"""What an array of a jaxpr is while it is raised: the expression of one element, until a reader asks for a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from jaxte.frontends.jaxpr.values.positions import replaced
from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce, as_expr, cast
from jaxte.lang.graphs import identical
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.walk import postorder
from jaxte.tensors.tensor import Compute, Tensor

_LETTERS = "ijklmnpqrst"


class Kind(IntEnum):
    """How an element reads tensors, from what composes with everything to what composes with nothing.

    NUMBER: it reads none. PLAIN: one, at the axes themselves in some order, as transposed or broadcast arrays are. VIEW: one, at
    other indices, or none where a condition on positions fails. LINEAR: a sum of multiples of views. POINTWISE: any function of
    tensors. REDUCED: a reduction.
    """

    NUMBER = 0
    PLAIN = 1
    VIEW = 2
    LINEAR = 3
    POINTWISE = 4
    REDUCED = 5


class Value:
    """An array as the expression ``body`` of its element at ``axes``.

    Attributes:
        known: the array itself, where it does not depend on the arguments.
    """

    def __init__(
        self, shape: Sequence[int], dtype: str, label: str, axes: tuple[Axis, ...], body: Expr
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.label = label
        self.axes = axes
        self.body = body
        self.known: Any = None
        self.kind = kind_of(body)

    def knowing(self, array: Any) -> Value:
        """This array, whose content is ``array``."""
        self.known = array
        return self

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, indices: Any) -> Expr:
        """The element at ``indices``, one index expression for each axis."""
        listed = indices if isinstance(indices, tuple) else (indices,)
        table = {a: as_expr(i) for a, i in zip(self.axes, listed, strict=True)}
        return replaced(self.body, table)

    def tensor(self) -> Tensor:
        """The array as a tensor of its own, which its readers share from now on."""
        if isinstance(self.body, Read) and identical(self.body.indices, positions(self.axes)):
            read: Any = self.body.tensor
            if read.shape == self.shape:
                return read  # type: ignore[no-any-return]
        return self.computed()

    def computed(self) -> Tensor:
        """The array as a new tensor, even where it is an element of another one."""
        made = Compute(self.label, self.axes, self.body)
        self.become(made)
        return made

    def become(self, tensor: Tensor) -> None:
        """From now on this array is ``tensor``, which has the same elements."""
        self.axes = axes_of(self.shape)
        self.body = Read(tensor, positions(self.axes))
        self.kind = Kind.PLAIN


def axes_of(shape: Sequence[int]) -> tuple[Axis, ...]:
    """New axes over ``shape``."""
    names = (_LETTERS[n] if n < len(_LETTERS) else f"i{n}" for n in range(len(shape)))
    return tuple(Axis(name, 0, extent) for name, extent in zip(names, shape, strict=True))


def positions(axes: Sequence[Axis]) -> tuple[Expr, ...]:
    """The index at each of ``axes``: 0 where there is one point only."""
    return tuple(ZERO if a.hi is as_expr(1) else a for a in axes)


def defined(shape: Sequence[int], dtype: str, label: str, element: Callable[..., Any]) -> Value:
    """The array whose element is ``element(*indices)``, as ``dtype``."""
    axes = axes_of(shape)
    return Value(shape, dtype, label, axes, typed(as_expr(element(*positions(axes))), dtype))


def typed(body: Expr, dtype: str) -> Expr:
    """``body`` as ``dtype``, not weak."""
    if body.dtype == dtype and not body.weak:
        return body
    if isinstance(body, Const) and (is_float(dtype) or body.dtype == dtype):
        return Const(float(body.value) if is_float(dtype) else body.value, dtype)  # type: ignore[arg-type]
    return cast(body, dtype)  # type: ignore[no-any-return]


def of_tensor(tensor: Any, label: str | None = None) -> Value:
    """``tensor`` as an array."""
    axes = axes_of(tensor.shape)
    return Value(tensor.shape, tensor.dtype, label or tensor.name, axes, Read(tensor, positions(axes)))


def kind_of(body: Expr) -> Kind:
    """How ``body`` reads tensors."""
    if isinstance(body, Reduce):
        return Kind.REDUCED
    kinds: dict[Expr, Kind] = {}
    for node in postorder(body):
        kinds[node] = _kind(node, kinds)
    return kinds[body]


def _kind(node: Expr, kinds: dict[Expr, Kind]) -> Kind:
    below = [kinds[child] for child in node.children]
    if isinstance(node, Reduce):
        return Kind.REDUCED
    if isinstance(node, Read):
        if max(below, default=Kind.NUMBER) > Kind.NUMBER:
            return Kind.POINTWISE
        bare = [i for i in node.indices if not isinstance(i, Const)]
        distinct = len(set(bare)) == len(bare) and all(isinstance(i, Axis) for i in bare)
        return Kind.PLAIN if distinct and _whole(node) else Kind.VIEW
    highest = max(below, default=Kind.NUMBER)
    if not isinstance(node, Call) or highest == Kind.NUMBER:
        return highest
    match node.op:
        case op if op is ADD or op is SUBTRACT or op is NEGATIVE:
            return max(highest, Kind.LINEAR)
        case op if op is MULTIPLY and min(below) == Kind.NUMBER:
            return max(highest, Kind.LINEAR)
        case op if op is DIVIDE and below[1] == Kind.NUMBER:
            return max(highest, Kind.LINEAR)
        case op if op is SELECT and below[0] == Kind.NUMBER and highest <= Kind.LINEAR:
            return max(highest, Kind.VIEW)
    return Kind.POINTWISE


def _whole(read: Read) -> bool:
    """Whether every axis of the tensor is read over all of its extent, or at its only position."""
    for index, extent in zip(read.indices, read.tensor.shape, strict=True):
        size = index.extent if isinstance(index, Axis) else as_expr(1)
        if size is not as_expr(extent):
            return False
    return True
