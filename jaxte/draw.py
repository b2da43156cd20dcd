"""Pictures: patterns and reads with matplotlib (the extra ``draw``), graphs as diagrams, and as SVG in rows."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from jaxte.bridge.compiled.sparse import SparseJacobian, jacobian
from jaxte.lang.checks import described, no_attribute, one_of_type, several
from jaxte.lang.errors import ArgumentError, JaxteError
from jaxte.show.boxes import Box, drawn
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

# what stands around a label in Mermaid's text: tensors that are computed, inputs, functions of arrays
_SIDES = {"computed": ("[", "]"), "input": ("([", "])"), "array": ("[[", "]]")}


class Diagram(str):
    """The text of a diagram in Mermaid, which GitHub and this site draw; notebooks show :meth:`svg`."""

    def __new__(cls, mermaid: str, boxes: Sequence[Box]) -> Self:
        return super().__new__(cls, mermaid)

    def __init__(self, mermaid: str, boxes: Sequence[Box]) -> None:
        self._boxes = boxes

    def svg(self) -> str:
        """The diagram as SVG."""
        return drawn(self._boxes)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": str(self)}


def diagram(tensors: Sequence[Tensor]) -> Diagram:
    """What ``tensors`` are computed from."""
    shown = topological_order(tensors)
    numbers = {tensor: number for number, tensor in enumerate(shown)}
    boxes = [
        Box(f"{t.name} {shape_text(t.shape)}", _kind(t), tuple(dict.fromkeys(numbers[s] for s in t.inputs)))
        for t in shown
    ]
    lines = ["graph TD"]
    for number, box in enumerate(boxes):
        left, right = _SIDES[box.kind]
        lines.append(f'    t{number}{left}"{_harmless(box.label)}"{right}')
    lines += [f"    t{source} --> t{target}" for target, box in enumerate(boxes) for source in box.sources]
    return Diagram("\n".join(lines), boxes)


def _kind(tensor: Tensor) -> str:
    return "computed" if isinstance(tensor, Compute) else "array" if tensor.inputs else "input"


def _harmless(label: str) -> str:
    return "".join(c if c.isalnum() or c in "_ '(),*+-" else f"#{ord(c)};" for c in label)


plt: Any
try:
    import matplotlib.pyplot as plt
except ImportError:  # what needs it says so
    plt = None


class SparseMatrix(Protocol):
    """What ``jax.experimental.sparse.BCOO`` has: a row for each element that is stored."""

    @property
    def indices(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def spy(matrix: SparseJacobian | SparseMatrix, ax: Any = None) -> Any:
    """The pattern of a sparse Jacobian, rows down and columns across, as axes of matplotlib.

    Args:
        matrix: what ``te.jacobian(..., sparse=True)`` returns, or a ``BCOO``, a matrix of more axes row by row.
        ax: axes to draw into; new ones if not given.

    Example:
        >>> te.draw.spy(te.jacobian(Y, X, sparse=True)).figure.savefig("pattern.png")
    """
    rows, columns, shape = _pattern(matrix)
    ax = _axes(ax)
    size = 72 * ax.figure.get_size_inches().min() / max(*shape, 1)  # a square of a cell, in points
    ax.plot(columns, rows, linestyle="", marker="s", markersize=max(0.5, 0.7 * size), color="black")
    ax.set_xlim(-0.5, shape[1] - 0.5)
    ax.set_ylim(shape[0] - 0.5, -0.5)
    ax.set_aspect("equal")
    ax.set_title(f"{shape[0]:,} x {shape[1]:,}, {len(rows):,} elements")
    return ax


def reads(output: Tensor, tensor: Tensor, position: int | tuple[int, ...], ax: Any = None) -> Any:
    """The elements of ``tensor``, of one axis or two, that the element of ``output`` at ``position`` depends on, through all tensors in between.

    Args:
        output: a Tensor of a graph with known sizes.
        tensor: another, which it is computed from.
        position: one integer for each axis of ``output``.
        ax: axes to draw into; new ones if not given.

    Example:
        >>> te.draw.reads(Y, X, (3, 4)).figure.savefig("reads.png")
    """
    for given in (output, tensor):
        one_of_type(given, Tensor, "what te.draw.reads looks at", "Tensors")
    if isinstance(position, int):
        position = (position,)
    if not 1 <= tensor.ndim <= 2:
        raise ArgumentError(
            f"te.draw.reads of {tensor.name} with {tensor.ndim} axes; give a tensor of one or two"
        )
    if len(position) != output.ndim or not all(
        isinstance(p, Integral) and 0 <= p < n for p, n in zip(position, output.shape, strict=False)
    ):
        raise ArgumentError(
            f"te.draw.reads: {output!r} has no element at {position!r}; give one position for each axis"
        )
    rows, columns, _ = _pattern(jacobian(output, tensor, sparse=True))
    here = np.ravel_multi_index(position, output.shape) if position else 0
    read = np.asarray(columns)[np.asarray(rows) == here]
    shape: Any = tensor.shape if tensor.ndim == 2 else (1, *tensor.shape)
    picture = np.isin(np.arange(np.prod(shape)), read).astype(int).reshape(shape)
    ax = _axes(ax)
    ax.imshow(picture, cmap="Blues", vmin=0, vmax=1.5)
    ax.set_xticks(np.arange(-0.5, picture.shape[1]), minor=True)
    ax.set_yticks(np.arange(-0.5, picture.shape[0]), minor=True)
    if tensor.ndim == 1:
        ax.set_yticks([])
    ax.grid(which="minor", color="gray", linewidth=0.5)
    ax.set_title(
        f"{output.name}[{', '.join(map(str, position))}] reads {picture.sum()} elements of {tensor.name}"
    )
    return ax


def graph(tensors: Tensor | Sequence[Tensor]) -> Diagram:
    """What ``tensors`` are computed from, as a diagram: inputs are rounded, functions of arrays have thick sides.

    Needs no matplotlib. A notebook shows the diagram as SVG; its text is Mermaid's, which GitHub and this site draw.

    Args:
        tensors: a Tensor, or several.

    Example:
        >>> print(te.draw.graph(Y))
    """
    return diagram(several(tensors, Tensor, "what te.draw.graph draws", "a Tensor, or several"))


def _axes(ax: Any) -> Any:
    """``ax``, or new axes of matplotlib."""
    if ax is not None:
        return ax
    if plt is None:
        raise JaxteError("te.draw needs matplotlib for this picture: pip install 'jaxte[draw]'")
    return plt.subplots()[1]


def _pattern(matrix: Any) -> tuple[Any, Any, tuple[int, int]]:
    if isinstance(matrix, SparseJacobian):
        indices = matrix.structure.flat_indices
        return indices[:, 0], indices[:, 1], matrix.structure.matrix_shape
    if getattr(matrix, "indices", None) is not None and len(matrix.shape) == 2:
        return matrix.indices[:, 0], matrix.indices[:, 1], matrix.shape
    raise ArgumentError(
        f"te.draw.spy of {described(matrix)}; give what te.jacobian(..., sparse=True) returns, or a BCOO of rows and columns"
    )


if not TYPE_CHECKING:  # to which every name that is not above is an error

    def __getattr__(name: str) -> Any:
        raise no_attribute("jaxte.draw", name, ["graph", "reads", "spy"])
