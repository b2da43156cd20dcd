"""The kinds of tensors that planning takes out of definitions, and that others tell from what a user defined."""

from __future__ import annotations

from jaxte.tensors.tensor import Compute


class PartialSum(Compute):
    """A sum over some axes of a larger sum, or a reduction at the terms of its indices."""

    __slots__ = ()


class Rows(Compute):
    """Rows of a tensor at positions that are data."""

    __slots__ = ()
