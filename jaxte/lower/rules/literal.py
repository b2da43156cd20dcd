"""Choices among a few numbers by position as the array of these: ``te.constant``, and tables that are written with ``te.select``."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.expr import Call, Expr, as_expr
from jaxte.lang.operators import NEGATIVE, SELECT
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.leaves import Literal
from jaxte.lower.arrays.leaves import Numbers as Rows
from jaxte.sets.intervals import known
from jaxte.sets.tabulate import tabulated
from jaxte.tensors.tensor import LONGEST_LITERAL, Compute


def literal_of(tensor: Compute) -> Literal | None:
    """The elements of ``tensor`` where they are few, and choices among numbers that positions alone decide; else None."""
    extents = [known(e) for e in map(as_expr, tensor.shape)]
    sizes = [e for e in extents if e is not None]
    if len(sizes) < len(extents) or not 1 < int(np.prod(sizes)) <= LONGEST_LITERAL:
        return None
    if not _is_choice(tensor.body) or tensor.dtype in dtypes.COMPLEX:
        return None
    grid = np.indices(sizes)
    values = tabulated(tensor.body, dict(zip(tensor.axes, grid, strict=True)))
    if values is None:
        return None
    shape = tuple(as_expr(e) for e in tensor.shape)
    return Literal(shape, _rows(np.broadcast_to(values, sizes).tolist()), tensor.dtype)


def _is_choice(body: Expr) -> bool:
    """Whether ``body`` chooses, and computes nothing that would be rounded."""
    calls = [node for node in postorder(body) if isinstance(node, Call)]
    rounded = [n for n in calls if dtypes.is_inexact(n.dtype) and n.op not in (SELECT, NEGATIVE)]
    return not rounded and any(n.op is SELECT for n in calls)


def _rows(numbers: Any) -> Rows:
    return tuple(map(_rows, numbers)) if isinstance(numbers, list) else numbers
