"""Tables of weights that are Kronecker products: one small matrix for each digit of the positions that number their rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from jaxte.lang.expr import ZERO, Axis, Call, Expr
from jaxte.lang.limits import BLOCK, CASES, FEW, LARGE_TABLE, POSITIONS
from jaxte.lang.walk import rewrite
from jaxte.sets.intervals import known
from jaxte.sets.tabulate import tabulated


def table_of(weights: Sequence[Expr], outer: Axis, inner: Axis) -> np.ndarray | None:
    """The product of ``weights`` for each position of ``outer`` (rows) and ``inner``; None where they are not 0, 1 and -1, not known, or have one digit."""
    rows, columns = known(outer.extent), known(inner.extent)
    starts = outer.lo is ZERO and known(inner.lo) == 0
    if rows is None or columns is None or not starts or not 1 < rows * columns <= LARGE_TABLE:
        return None
    plain = [rewrite(weight, _without_cast) for weight in weights]
    both = gcd(rows, columns)
    few = next(n for n in range(min(both, BLOCK), 0, -1) if both % n == 0)
    first = _values(plain, {outer: np.arange(few), inner: np.arange(few)})
    if first is None or not first.any() or len(digits_of(first)) < 2:
        return None  # no table that has no digits is made in whole
    step = max(1, POSITIONS // columns)
    parts = [
        _values(plain, {outer: np.arange(start, min(start + step, rows)), inner: np.arange(columns)})
        for start in range(0, rows, step)
    ]
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if len(found) == len(parts) else None


def _values(weights: Sequence[Expr], at: dict[Axis, np.ndarray]) -> np.ndarray | None:
    """The product of ``weights`` at all pairs of the positions of two axes; None where one is not 0, 1 or -1, or not known."""
    (outer, rows), (inner, columns) = at.items()
    grid: dict[Expr, np.ndarray] = {outer: rows[:, None], inner: columns[None, :]}
    found = np.ones((len(rows), len(columns)), "int8")
    for weight in weights:
        own = tabulated(weight, grid)
        if own is None or (own.dtype != bool and (np.abs(own) > 1).any()):
            return None
        if (own != own.astype("int8")).any():
            return None
        found = found * own.astype("int8")
    return found


def _without_cast(node: Expr) -> Expr:
    return node.args[0] if isinstance(node, Call) and node.op.name == "cast" else node


def digits_of(table: np.ndarray) -> list[np.ndarray]:
    """The matrices that ``table`` is the Kronecker product of, from the lowest digit on."""
    found: list[np.ndarray] = []
    while (split := _lowest(table)) is not None:
        table, low = split
        found.append(low)
    return [*found, table]


def _lowest(table: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """What is left of ``table`` without its lowest digit, and the weights of that; None where it has one digit."""
    for base in range(2, CASES + 1):
        (rows, rest), (columns, left) = (divmod(n, base) for n in table.shape)
        if rest or left or rows * columns == 0 or rows * columns == 1:
            continue
        blocks = table.reshape(rows, base, columns, base).transpose(0, 2, 1, 3).reshape(rows * columns, -1)
        row, column = divmod(int((blocks != 0).argmax()), base * base)
        if not blocks[row, column]:
            return None
        low, high = blocks[row], blocks[:, column] * blocks[row, column]
        if np.array_equal(np.multiply.outer(high, low), blocks):
            return high.reshape(rows, columns), low.reshape(base, base)
    return None


def joined(digits: Sequence[np.ndarray]) -> list[np.ndarray]:
    """``digits`` with short ones beside each other as one, which is one loop."""
    found: list[np.ndarray] = []
    for digit in digits:
        if found and len(found[-1]) * len(digit) <= FEW:
            found[-1] = np.kron(digit, found[-1])
        else:
            found.append(digit)
    return found
