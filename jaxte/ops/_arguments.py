"""The types of what operators are given beside their operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from jaxte.tensors.shapes import Extent

PerAxis: TypeAlias = int | Sequence[int]  # one number for all axes of a window, or one for each
Padding: TypeAlias = int | str | Sequence[int | Sequence[int]]
Widths: TypeAlias = int | Sequence[int] | Sequence[Sequence[int]]
PairedAxes: TypeAlias = int | Sequence[int | Sequence[int]]
ShapeLike: TypeAlias = Extent | Sequence[Extent]
