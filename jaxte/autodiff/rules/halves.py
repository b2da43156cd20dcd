"""The product of all factors but one, for each of them, by halves.

    y = prod over k < n of x[k]:    p[k] = x[k] * x[k + h] for k < h,  h = ceil(n / 2);   y = prod over k < h of p[k]
    all but x[k]  =  (all but p[k mod h]) * (the other one of its pair)

All but ``p[k]`` are found in the same way, down to a pair, of which each is what the other one leaves. 4 n products in 2 log n loops, in each of
which no position waits for another one. Nothing is divided, so that it is exact with zeros among the factors. What stands before a factor times what
stands behind it are 3 n products, of which each waits for the one before it, or is computed again for all behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from jaxte.algebra.sums import operations
from jaxte.autodiff.terms.beside import beside
from jaxte.autodiff.terms.places import fresh
from jaxte.lang.expr import Axis, Expr, Read, call, cast
from jaxte.lang.limits import WORTH_A_TENSOR
from jaxte.lang.operators import LESS, SELECT
from jaxte.lang.walk import substitute
from jaxte.tensors.tensor import Compute

Element = Callable[[Expr], Expr]  # at a position from 0, of the axes that the product has


def all_but_one(
    tensor: Compute, sides: tuple[Sequence[Axis], Sequence[Axis]], factor: Element, length: int
) -> Element:
    """The product of all but the factor at a position, as elements of tensors beside ``tensor``.

    Args:
        tensor: the product.
        sides: its axes, which stand before and behind the position in what is made.
        factor: what is multiplied.
        length: how many factors there are.
    """

    def made(label: str, size: int, element: Element) -> Element:
        """Reads of a tensor of ``size`` positions."""
        front, behind = sides
        order = " and ".join(",".join(a.name for a in side) for side in sides)

        def make() -> Compute:
            outer, table = fresh([*front, *behind])
            here = Axis("factor", 0, size)
            body = substitute(element(here), table)
            value = cast(body, tensor.dtype) if body.weak or body.dtype != tensor.dtype else body
            return Compute(
                f"{label}_{tensor.name}", (*outer[: len(front)], here, *outer[len(front) :]), value
            )

        own = beside(tensor, f"{label} {size} {order}", make)
        return lambda position: Read(own, (*front, position, *behind))

    one = factor(Axis("factor", 0, length))
    again = not one.reduces and operations(one) < WORTH_A_TENSOR
    level = factor if again else made("factor", length, factor)
    levels = [(length, level)]
    while (size := levels[-1][0]) > 2:
        half = (size + 1) // 2
        levels.append((half, made("pairs", half, partial(_pair, levels[-1][1], size))))
    size, level = levels.pop()
    others = made("others", size, partial(_others, None, level, size))
    for size, level in reversed(levels):
        others = made("others", size, partial(_others, others, level, size))
    return others


def _pair(level: Element, size: int, at: Expr) -> Expr:
    """The product of the factors at ``at`` and half of ``size`` behind it."""
    return level(at) * _later(level, size, at)


def _later(level: Element, size: int, at: Expr) -> Expr:
    """The factor half of ``size`` behind ``at``, a position of the first half; 1 where there is none."""
    there = at + (size + 1) // 2
    return level(there) if size % 2 == 0 else call(SELECT, call(LESS, there, size), level(there), 1.0)


def _others(above: Element | None, level: Element, size: int, at: Expr) -> Expr:
    """All but the factor at ``at``, from all but the pair that it is of, which are ``above``; alone, a pair leaves nothing."""
    half = (size + 1) // 2
    first, second = _later(level, size, at), level(at - half)
    if above is not None:
        first, second = above(at) * first, above(at - half) * second
    return call(SELECT, call(LESS, at, half), first, second)
