"""What random graphs mix with recurrences: positions that are data or extrema, tables, windows with every kind of edge, combiners, counts, overrides.

Each is a definition over rows and columns of two elements that are read, ``a(t, c)`` and ``b(t, c)``, and of three drawn numbers below 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jaxte as te
from jaxte.tensors.tensor import Tensor

Element = Callable[[Any, Any], Any]
Shape = tuple[Any, Any]
CIRCLE = te.comm_reducer(lambda p, q: p + q + p * q, lambda t: te.const(0.0, t), name="circle")
LARGEST = te.comm_reducer(
    lambda p, q: (te.select(p[1] >= q[1], p[0], q[0]), te.maximum(p[1], q[1])),
    lambda s, t: (te.const(-1, s), te.const(float("-inf"), t)),
    name="largest",
)
LINEAR = te.comm_reducer(
    lambda first, then: (first[0] * then[0], then[0] * first[1] + then[1]),
    lambda s, t: (te.const(1, s), te.const(0, t)),
    name="linear",
)


def by_data(shape: Shape, a: Element, b: Element, numbers: Sequence[int], name: str) -> Tensor:
    """A gather at positions that are computed, held in range."""
    last = te.cast(shape[0] - 1, "float64")
    at = te.compute(
        shape, lambda t, c: te.cast(te.floor(te.minimum(2 * te.abs(b(t, c)), last)), "int32"), f"{name}_at"
    )
    return te.compute(shape, lambda t, c: te.sin(a(at[t, c], c)) * b(at[t, 0], c), name)


def by_extremum(shape: Shape, a: Element, b: Element, numbers: Sequence[int], name: str) -> Tensor:
    """What stands where a column is largest, or least, of elements that repeat each other."""
    j = te.reduce_axis((0, shape[0]), "j")
    arg = te.argmax if numbers[0] % 2 else te.argmin
    at = te.compute((shape[1],), lambda c: arg(a(j // 2 if numbers[1] else j, c), axis=j), f"{name}_at")
    return te.compute(shape, lambda t, c: b(at[c], c) + te.select(at[c] <= t, a(t, c), 0.5), name)


def by_table(shape: Shape, a: Element, b: Element, numbers: Sequence[int], name: str) -> Tensor:
    """Products of positions, quotients and remainders of a flat one; of sizes that are numbers alone."""
    n, m = shape

    def body(t: Any, c: Any) -> Any:
        flat = (t * m + c + numbers[0]) % (n * m) if numbers[1] % 2 else c * n + t
        return a(flat // m, flat % m) * b(t * (t + 1) // 2 % n, te.minimum(c ^ 1, m - 1))

    return te.compute(shape, body, name)


def window(shape: Shape, a: Element, b: Element, numbers: Sequence[int], name: str) -> Tensor:
    """A sum or an extremum along rows, dilated, reduced or strided, with zeros, ends, reflections or the other end around."""
    n, (edge, way, stride) = shape[0], numbers
    k = te.reduce_axis((0, 3), "k")

    def body(t: Any, c: Any) -> Any:
        at = (1 + stride % 2) * t + (1 + way % 2) * k - 1
        held = te.minimum(te.maximum(at, 0), n - 1)
        inside = (at >= 0) & (at < n)
        once = te.abs(
            te.minimum(at, 2 * n - 2 - at)
        )  # reflected once at each end, which is too little of a stride
        reflected = te.minimum(once, n - 1)
        index = (held, at % n, reflected, at)[edge]
        element = te.select(inside, a(at, c), 0.0) if edge == 3 else a(index, c)
        return te.sum(element * (0.5 + 0.1 * k), axis=k) if way < 3 else te.max(element, axis=k) * b(t, c)

    return te.compute(shape, body, name)


def running(shape: Shape, a: Element, b: Element, numbers: Sequence[int], name: str) -> Tensor:
    """A reduction over the rows so far, over those that follow, or over some of them."""
    j = te.reduce_axis((0, shape[0]), "j")

    def body(t: Any, c: Any) -> Any:
        where = (j <= t, j >= t, (j <= t) & (j > t - 3), j < t)[numbers[0]]
        element = te.tanh(a(j, c)) * 0.4
        match numbers[1]:
            case 0:
                return te.maximum(te.max(element, axis=j, where=where), -2.0) * b(t, c)
            case 1:
                return te.prod(element + 1.0, axis=j, where=where) - b(t, c)
            case 2:
                return CIRCLE(element, axis=j, where=where) + b(t, c)
        return LINEAR((element, b(j, c)), axis=j, where=j <= t)[1]

    return te.compute(shape, body, name)


def combined(shape: Shape, a: Element, b: Element, numbers: Sequence[int], name: str) -> Tensor:
    """A combiner, or a softmax, over all rows; of elements that may all be equal."""
    j = te.reduce_axis((0, shape[0]), "j")
    if numbers[0] == 3:
        scores = lambda t, c: te.softmax(a(j, c) * b(t, c) + 0.1 * j, axis=j)  # noqa: E731
        return te.compute(shape, lambda t, c: te.sum(scores(t, c) * b(j, c), axis=j), name)
    if numbers[0] == 2:
        best = te.compute((shape[1],), lambda c: LARGEST((j, a(j, c)), axis=j), f"{name}_best")[1]
    else:
        best = te.compute((shape[1],), lambda c: CIRCLE(0.3 * te.tanh(a(j, c)), axis=j), f"{name}_best")
    return te.compute(shape, lambda t, c: best[c] * b(t, c), name)


def counted(shape: Shape, a: Element, b: Element, numbers: Sequence[int], name: str) -> Tensor:
    """How many rows in turn are positive, in a recurrence of integers, as a factor and as a position."""
    dtype = ("int32", "uint8", "int32", "int64")[numbers[0]]
    lag, zero = 1 + numbers[1] % 3, te.const(0, dtype)

    def step(s: Any, t: Any, c: Any) -> Any:
        before = te.select(t >= lag, s[t - lag, (c + 1) % shape[1]], zero)
        return te.select(a(t, c) > 0.1137, before + te.const(1, dtype), zero)

    run = te.recurrence(shape, step, name=f"{name}_run", dtype=dtype)
    at = lambda t, c: te.minimum(te.cast(run[t, c], "int32"), shape[0] - 1)  # noqa: E731
    return te.compute(
        shape, lambda t, c: a(at(t, c), c) + 0.2 * te.cast(run[t, c], "float64") * b(t, c), name
    )


def passed(shape: Shape, a: Element, b: Element, numbers: Sequence[int], name: str) -> Tensor:
    """A tensor whose adjoint is given: the one that it has."""
    own = te.compute(shape, lambda t, c: a(t, c) * te.sin(b(t, c)), f"{name}_own")
    if numbers[0] % 2:
        return te.scale_gradient(own, 1.0)
    return te.straight_through(te.compute(shape, lambda t, c: 1.0 * own[t, c], name), own)


MIXED: dict[str, Callable[[Shape, Element, Element, Sequence[int], str], Tensor]] = {
    "by data": by_data,
    "by extremum": by_extremum,
    "by table": by_table,
    "window": window,
    "running": running,
    "combined": combined,
    "counted": counted,
    "passed": passed,
}
