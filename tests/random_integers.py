"""Random definitions that read at nested integer expressions: bits, quotients and remainders of each other, choices and extrema of them."""

from __future__ import annotations

import jaxte as te
from jaxte.lang.expr import Axis, Expr
from tests.choices import Choices
from tests.random_definitions import Definition

BITS = ("^", "^", "flip", ">>", "&", "|", "<<", "gray")
NESTED = ("//", "//", "%", "%", "//%")
OTHERS = ("+", "-", "*", "min", "max", "abs", "select")


def integers(choices: Choices, depth: int, axes: tuple[Axis, ...], bits: bool) -> Expr:
    """An expression of ``axes`` that is at least 0 at each of their values, with up to ``depth`` operations within each other."""
    if depth == 0:
        return choices.among(axes) * choices.among((1, 1, 1, 2, 3))
    one = integers(choices, depth - 1, axes, bits)
    other = integers(choices, choices.number(0, depth - 1), axes, bits)
    number = choices.number(1, 7)
    match choices.among((*NESTED, *OTHERS, *(BITS if bits else NESTED))):
        case "^":
            return one ^ other
        case "flip":
            return one ^ number
        case "gray":
            return one ^ (one >> 1)
        case ">>":
            return one >> choices.number(1, 2)
        case "<<":
            return one << 1
        case "&":
            return one & number
        case "|":
            return one | number
        case "//":
            return (one + choices.number(0, 2)) // choices.number(2, 5)
        case "%":
            return one % choices.number(2, 9)
        case "//%":
            return one // choices.number(2, 4) % choices.number(2, 5)
        case "-":
            return te.abs(one - other)
        case "*":
            return one * choices.number(2, 3)
        case "min":
            return te.minimum(one, other)
        case "max":
            return te.maximum(one, other)
        case "abs":
            return te.abs(one - number)
        case "select":
            return te.select(one % 2 == 0, one, other)
    return one + other


def within(choices: Choices, index: Expr, extent: int) -> Expr:
    """``index``, which is at least 0, in range of ``extent`` elements."""
    match choices.among(("%", "min", "%")):
        case "min":
            return te.minimum(index, extent - 1)
    return index % extent


def reading_at_integers(choices: Choices, bits: bool = True) -> Definition:
    """One tensor of up to 16 positions by one or two axes, and a sum over another in half of all cases, of reads at such expressions."""
    n = choices.among((8, 8, 16, 7, 5, 12))
    x = te.placeholder((n,), "float64", "X")
    w = te.placeholder((choices.among((4, 8, 6)),), "float64", "W")
    k = te.reduce_axis((0, choices.among((2, 4, 3))), "k")
    summed = choices.number(0, 1) == 1

    def read(source: te.Tensor, axes: tuple[Axis, ...]) -> Expr:
        depth = choices.number(1, 3)
        return source[within(choices, integers(choices, depth, axes, bits), int(source.shape[0]))]

    def body(*axes: Axis) -> Expr:
        own = (*axes, k) if summed else axes
        factor = (
            te.select(read(w, own) > 0.3, read(w, own), 0.5) if choices.number(0, 3) == 0 else read(w, own)
        )
        found = read(x, own) * factor
        if choices.number(0, 1):
            found = found + te.sin(read(x, own)) * read(x, axes)
        return te.sum(found, axis=k) if summed else found

    shape = choices.among(((8,), (16,), (13,), (4, 4), (3, 5)))
    return Definition(te.compute(shape, body, "T0"), choices.number(0, 2**16))
