"""Functions of tables among whose rows data choose: see ``mechanisms.py``."""

from __future__ import annotations

import jaxte as te
from jaxte.tensors.tensor import Tensor
from tests.lower.mechanism_functions import summed


def categories(effect: Tensor, at: Tensor) -> Tensor:
    """Effects of ten categories of each of several features, on several outputs."""
    (j,) = summed(j=at.shape[1])
    shape = at.shape[0], effect.shape[1]
    return te.compute(shape, lambda n, c: te.sum(effect[j, c, at[n, j]], axis=j), "y")


def positions_on_a_board(value: Tensor, pieces: Tensor) -> Tensor:
    """Features of a board, whose fields hold one of twelve pieces or none, which is -1."""
    (s,) = summed(s=pieces.shape[1])
    shape = pieces.shape[0], value.shape[2]
    held = lambda b: pieces[b, s] >= 0  # noqa: E731
    return te.compute(shape, lambda b, f: te.sum(value[pieces[b, s], s, f], axis=s, where=held(b)), "y")


def quantised(book: Tensor, code: Tensor) -> Tensor:
    """Scores of vectors that are kept as one of sixteen entries of a book for each part, for several queries."""
    (m,) = summed(m=code.shape[1])
    shape = book.shape[1], code.shape[0]
    return te.compute(shape, lambda q, n: te.sum(book[m, q, code[n, m]] * 0.125, axis=m), "y")
