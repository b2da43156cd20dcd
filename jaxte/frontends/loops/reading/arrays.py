"""Functions of NumPy that make arrays, or take them as a whole: each says what one element of its result is.

What NumPy makes a view is one here, too: its elements are those of the array itself, whoever writes them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from jaxte.frontends.loops.reading.elements import Elements
from jaxte.frontends.loops.reading.numpy_rules import (
    is_contiguous,
    refuse_truths,
    reshaped_strides,
    strides_of,
    viewed,
)
from jaxte.frontends.loops.reading.values import Block, check_extents, is_number, is_static, place_of, product
from jaxte.lang import functions
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Const, Expr, as_expr
from jaxte.lang.limits import MOST_PARTS
from jaxte.sets.affine import normal


class Arrays(Elements):
    """Reads functions of whole arrays."""

    @abstractmethod
    def summed(self, op: str, block: Block, count: int, node: Any) -> Any:
        """The reduction of the last ``count`` axes of ``block``."""

    @abstractmethod
    def prefixes(self, op: str, own: Block, place: int, node: Any) -> Block:
        """The reductions of all elements up to each along one axis."""

    def listed(self, values: Sequence[Any], node: Any) -> Block:
        """A list as an array."""
        if _are_numbers(values):
            return self.block(self.outside(np.array(values), "listed"), node)
        # Values that are no numbers, of a list that stands for an array: each is an alternative of its elements.
        if len(values) > MOST_PARTS:
            raise DefinitionError(
                f"a list of {len(values)} values as an array; make it by np.zeros, and write its elements"
            )
        parts = [self.listed(v, node) if isinstance(v, tuple) else self.as_operand(v, node) for v in values]
        inner = [p.shape if isinstance(p, Block) else () for p in parts]
        if any(list(map(normal, s)) != list(map(normal, inner[0])) for s in inner):
            raise DefinitionError("the values of a list are of different shapes")

        def element(at: Sequence[Expr]) -> Expr:
            return self.one_of(at[0], [partial(_element, p, at[1:]) for p in parts])

        return Block((as_expr(len(parts)), *inner[0]), element)

    def one_of(self, position: Expr, values: Sequence[Callable[[], Expr]]) -> Expr:
        """The value at ``position`` of several."""
        if isinstance(position, Const):
            return values[int(position.value)]()  # type: ignore[arg-type]
        return self.first_of([functions.equal(position, n) for n in range(len(values) - 1)], values)

    def first_of(self, tests: Sequence[Any], values: Sequence[Callable[[], Expr]]) -> Expr:
        """The value of the first of ``tests`` that holds, the last one where none does."""
        if not tests:
            return values[0]()
        return self.either(tests[0], values[0], lambda: self.first_of(tests[1:], values[1:]))

    def either(self, test: Any, taken: Callable[[], Expr], other: Callable[[], Expr]) -> Expr:
        """A choice by position, of which each side is evaluated where it is taken alone."""
        known = test.value if isinstance(test, Const) else test
        if not isinstance(known, Expr):
            return taken() if known else other()
        with self.recorder.inside(test):
            first = taken()
        with self.recorder.inside(functions.logical_not(test)):
            second = other()
        return functions.select(test, first, second)


def _element(own: Any, at: Sequence[Expr]) -> Expr:
    return own.element(at) if isinstance(own, Block) else as_expr(own)


def _are_numbers(values: Any) -> bool:
    """Whether nested lists hold plain numbers alone."""
    if isinstance(values, tuple):
        return bool(values) and all(map(_are_numbers, values))
    return is_number(values) and not isinstance(values, Expr)


def block_of(own: Any, name: str, rank: int | None = None) -> Block:
    if not isinstance(own, Block) or (rank is not None and len(own.shape) != rank):
        wanted = "an array" if rank is None else f"an array of {rank} axes"
        raise DefinitionError(f"np.{name} of {wanted} is known here")
    return own


# --- arrays that are made


def _eye(reader: Arrays, node: Any, N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Block:
    shape = (as_expr(N), as_expr(N if M is None else M))
    return Block(shape, lambda at: reader.either(
        functions.equal(at[1] - at[0], k), lambda: as_expr(1.0), lambda: as_expr(0.0)
    ))  # fmt: skip


def _arange(reader: Arrays, node: Any, *ends: Any, dtype: Any = None) -> Block:
    lo, hi, step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1)[:3]
    if not all(map(is_static, (lo, hi, step))) or isinstance(step, Expr):
        raise DefinitionError("np.arange of numbers and sizes is known here")
    if any(isinstance(e, Expr) for e in (lo, hi)):
        count = normal((as_expr(hi) - lo + (step - 1)) // step)
    else:
        count = as_expr(len(np.arange(lo, hi, step)))
    return Block((count,), lambda at: as_expr(lo + at[0] * step))


def _linspace(reader: Arrays, node: Any, start: Any, stop: Any, num: int = 50) -> Block:
    return Block((as_expr(num),), lambda at: as_expr(start + (stop - start) * (at[0] / max(num - 1, 1))))


def _joined(reader: Arrays, node: Any, parts: Any, axis: int = 0) -> Block:
    """``np.concatenate``."""
    own = [block_of(reader.as_operand(p, node), "concatenate") for p in parts]
    rank = len(own[0].shape)
    place = place_of(axis, rank)
    ends = [as_expr(0)]
    for part in own:
        if len(part.shape) != rank:
            raise DefinitionError(f"np.concatenate of arrays of {rank} and of {len(part.shape)} axes")
        for k, extent in enumerate(part.shape):
            if k != place:
                check_extents(own[0].shape[k], extent)
        ends.append(normal(ends[-1] + part.shape[place]))

    def element(at: Sequence[Expr]) -> Expr:
        def of(n: int) -> Expr:
            return own[n].element([normal(i - ends[n]) if k == place else i for k, i in enumerate(at)])

        tests = [functions.less(at[place], end) for end in ends[1:-1]]
        return reader.first_of(tests, [partial(of, n) for n in range(len(own))])

    shape = [ends[-1] if k == place else e for k, e in enumerate(own[0].shape)]
    return Block(tuple(shape), element)


def _stacked(reader: Arrays, node: Any, parts: Any, axis: int = 0) -> Block:
    own = reader.listed(tuple(parts), node)
    place = place_of(axis, len(own.shape))
    shape = list(own.shape[1:])
    shape.insert(place, own.shape[0])
    return Block(tuple(shape), lambda at: own.element([at[place], *at[:place], *at[place + 1 :]]))


# --- views


def _transpose(reader: Arrays, node: Any, a: Any, axes: Any = None) -> Block:
    own = block_of(a, "transpose")
    order = list(range(len(own.shape)))[::-1] if axes is None else [int(n) for n in axes]
    shape = [own.shape[n] for n in order]
    return viewed(own, shape, lambda at: [at[order.index(n)] for n in range(len(order))])


def _flip(reader: Arrays, node: Any, m: Any, axis: int | None = None) -> Block:
    own = block_of(m, "flip")
    places = range(len(own.shape)) if axis is None else [place_of(axis, len(own.shape))]
    return viewed(
        own, own.shape, lambda at: [own.shape[n] - 1 - i if n in places else i for n, i in enumerate(at)]
    )


def reshaped(reader: Arrays, node: Any, a: Any, *shape: Any) -> Block:
    own = block_of(a, "reshape")
    wanted = [as_expr(e) for e in (shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape)]
    size = product(own.shape)
    free = [n for n, e in enumerate(wanted) if isinstance(e, Const) and e.value == -1]
    if free:
        rest = product([e for n, e in enumerate(wanted) if n not in free])
        wanted[free[0]] = normal(size // rest)
    if normal(product(wanted) - size) is not as_expr(0):
        raise DefinitionError("np.reshape keeps the number of elements")

    def places(at: Sequence[Expr]) -> list[Expr]:
        flat = as_expr(0)
        for index, extent in zip(at, wanted, strict=True):
            flat = flat * extent + index
        found: list[Expr] = []
        for extent in own.shape[:0:-1]:
            found.append(normal(flat) % extent)
            flat = normal(flat) // extent
        return [*([flat] if own.shape else []), *found[::-1]]

    def element(at: Sequence[Expr]) -> Expr:
        return own.element([normal(i) for i in places(at)])

    known = strides_of(own)
    if known is None:
        return replace(own, shape=tuple(wanted), element=element, is_copied_at_times=True)
    strides = reshaped_strides(known, own.shape, wanted)
    if strides is None:
        return Block(tuple(wanted), element)
    return replace(own, shape=tuple(wanted), element=element, strides=strides)


def _ravel(reader: Arrays, node: Any, a: Any) -> Block:
    own = reshaped(reader, node, a, -1)
    return own if own.is_copied_at_times or is_contiguous(block_of(a, "ravel")) else _copy(own)


def _flatten(reader: Arrays, node: Any, a: Any) -> Block:
    return _copy(reshaped(reader, node, a, -1))


def _copy(own: Block) -> Block:
    return Block(own.shape, own.element)


def _diag(reader: Arrays, node: Any, v: Any, k: int = 0) -> Block:
    own = block_of(v, "diag")
    if len(own.shape) == 2:
        return diagonal(reader, node, own, k)
    size = normal(own.shape[0] + abs(k))
    first = max(k, 0)

    def element(at: Sequence[Expr]) -> Expr:
        test = functions.equal(at[1] - at[0], k)
        return reader.either(test, lambda: own.element([normal(at[1] - first)]), lambda: as_expr(0))

    return Block((size, size), element)


def diagonal(reader: Arrays, node: Any, a: Any, offset: int = 0) -> Block:
    own = block_of(a, "diagonal", 2)
    down, right = max(-offset, 0), max(offset, 0)
    length = functions.minimum(own.shape[0] - down, own.shape[1] - right)
    found = viewed(own, [normal(as_expr(length))], lambda at: [at[0] + down, at[0] + right])
    return replace(found, is_read_only=True)


# --- what elements are of a whole array


def _triangle(is_lower: bool) -> Callable[..., Block]:
    def made(reader: Arrays, node: Any, m: Any, k: int = 0) -> Block:
        own = block_of(m, "tril", 2)

        def element(at: Sequence[Expr]) -> Expr:
            test = at[1] - at[0] <= k if is_lower else at[1] - at[0] >= k
            return reader.either(test, lambda: own.element(at), lambda: as_expr(0))

        return Block(own.shape, element)

    return made


def _roll(reader: Arrays, node: Any, a: Any, shift: Any, axis: int | None = None) -> Block:
    own = block_of(a, "roll", 1 if axis is None else None)
    place = 0 if axis is None else place_of(axis, len(own.shape))
    return Block(own.shape, lambda at: own.element([
        normal((i - shift) % own.shape[place]) if n == place else i for n, i in enumerate(at)
    ]))  # fmt: skip


def _difference(reader: Arrays, node: Any, a: Any) -> Block:
    own = block_of(a, "diff")
    refuse_truths("np.diff", [own])

    def element(at: Sequence[Expr]) -> Expr:
        return own.element([*at[:-1], normal(at[-1] + 1)]) - own.element(at)

    return Block((*own.shape[:-1], normal(own.shape[-1] - 1)), element)


def _cross(reader: Arrays, node: Any, a: Any, b: Any) -> Block:
    u, v = block_of(a, "cross", 1), block_of(b, "cross", 1)

    def minor(n: int) -> Callable[[], Expr]:
        i, j = as_expr((n + 1) % 3), as_expr((n + 2) % 3)
        return lambda: u.element([i]) * v.element([j]) - u.element([j]) * v.element([i])

    return Block((as_expr(3),), lambda at: reader.one_of(at[0], [minor(n) for n in range(3)]))


MADE: dict[str, Callable[..., Any]] = {
    "eye": _eye, "identity": _eye, "arange": _arange, "linspace": _linspace, "concatenate": _joined, "stack": _stacked, "transpose": _transpose,
    "flip": _flip, "reshape": reshaped, "ravel": _ravel, "flatten": _flatten,
    "diag": _diag, "diagonal": diagonal, "tril": _triangle(True), "triu": _triangle(False), "roll": _roll, "diff": _difference, "cross": _cross,
}  # fmt: skip
