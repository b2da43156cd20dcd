"""Pictures: patterns and reads with matplotlib (the extra ``draw``), graphs as diagrams, and as SVG in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from jaxte.bridge.compiled.sparse import SparseJacobian, jacobian
from jaxte.lang.checks import described, no_attribute, one_of_type, several
from jaxte.lang.errors import ArgumentError, JaxteError
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


_HEIGHT, _GAP, _STEP = 28, 22, 66  # pixels: of a box, between the boxes of a row, and from row to row
_LETTER, _MARGIN = 7.4, 12  # pixels
_SWEEPS = 4  # down and up again, after which no crossing goes away
# boxes have a colour of their own and lines are gray, so that both are seen on light and on dark pages
_FILLS = {"computed": "#e8eaf6", "input": "#e0f2e9", "array": "#fdeedc"}


@dataclass(frozen=True)
class Box:
    """A node: its label, whether it is "computed", an "input" or a function of an "array", and the numbers of what it reads."""

    label: str
    kind: str
    sources: tuple[int, ...]


@dataclass
class _Point:
    """A box in its row, or a place that a line passes through on its way to a further row."""

    row: int
    width: float
    above: list[_Point]
    box: Box | None = None
    x: float = 0.0

    def move_to(self, x: float) -> None:
        """Puts the middle of the point at ``x`` of its row."""
        self.x = x


def drawn(boxes: Sequence[Box]) -> str:
    """The diagram; boxes come after what they read."""
    rows, points = _in_rows(boxes)
    _place(rows)
    left = min((p.x - p.width / 2 for row in rows for p in row), default=0.0) - _MARGIN
    right = max((p.x + p.width / 2 for row in rows for p in row), default=0.0) + _MARGIN
    size = round(right - left), len(rows) * _STEP - (_STEP - _HEIGHT) + 2 * _MARGIN
    lines = [_line(above, p) for row in rows for p in row for above in p.above]
    shapes = [_shape(p) for p in points]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" style="max-width:100%" '
        f'viewBox="{left:.0f} {-_MARGIN} {size[0]} {size[1]}" font-family="sans-serif" font-size="13" text-anchor="middle">'
        f"{''.join(lines)}{''.join(shapes)}</svg>"
    )


def _in_rows(boxes: Sequence[Box]) -> tuple[list[list[_Point]], list[_Point]]:
    """The points of each row, and those of the boxes. An input stands right above the first box that reads it."""
    depth: list[int] = []
    for box in boxes:
        depth.append(1 + max((depth[s] for s in box.sources), default=-1))
    for n, box in enumerate(boxes):
        readers = [depth[m] for m, other in enumerate(boxes) if n in other.sources]
        if not box.sources and readers:
            depth[n] = min(readers) - 1
    rows: list[list[_Point]] = [[] for _ in range(1 + max(depth, default=-1))]
    points: list[_Point] = []
    for n, box in enumerate(boxes):
        point = _Point(depth[n], _LETTER * len(box.label) + 20, [], box)
        rows[depth[n]].append(point)
        points.append(point)
    for n, box in enumerate(boxes):
        for source in box.sources:
            before = points[source]
            for row in range(depth[source] + 1, depth[n]):
                through = _Point(row, 8.0, [before])
                rows[row].append(through)
                before = through
            points[n].above.append(before)
    return rows, points


def _place(rows: Sequence[list[_Point]]) -> None:
    """Positions along each row: points are put near those that they are joined to, by turns from above and from below."""
    below: dict[int, list[_Point]] = {}
    for row in rows:
        for point in row:
            for above in point.above:
                below.setdefault(id(above), []).append(point)
    for row in rows:
        _spread(row, [0.0] * len(row))
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            joined = [p.above if down else below.get(id(p), []) for p in row]
            wanted = [
                sum(q.x for q in own) / len(own) if own else p.x for p, own in zip(row, joined, strict=True)
            ]
            order = sorted(range(len(row)), key=lambda n: wanted[n])
            row[:] = [row[n] for n in order]
            _spread(row, [wanted[n] for n in order])


def _spread(row: Sequence[_Point], wanted: Sequence[float]) -> None:
    """Gives the points of a row their positions in order, without overlap, with the mean of those that are wanted."""
    at = 0.0
    for n, (point, want) in enumerate(zip(row, wanted, strict=True)):
        at = want if n == 0 else max(want, at + row[n - 1].width / 2 + _GAP + point.width / 2)
        point.move_to(at)
    if row:
        shift = sum(w - p.x for w, p in zip(wanted, row, strict=True)) / len(row)
        for point in row:
            point.move_to(point.x + shift)


def _line(above: _Point, point: _Point) -> str:
    top = above.row * _STEP + (_HEIGHT if above.box else _HEIGHT / 2)
    end = point.row * _STEP + (-5 if point.box else _HEIGHT / 2)
    middle = (top + end) / 2
    curve = f"M{above.x:.1f},{top:g}C{above.x:.1f},{middle:g} {point.x:.1f},{middle:g} {point.x:.1f},{end:g}"
    head = f'<path d="M{point.x - 4:.1f},{end:g}h8l-4,5z" fill="#888"/>' if point.box else ""
    return f'<path d="{curve}" fill="none" stroke="#888"/>{head}'


def _shape(point: _Point) -> str:
    assert point.box is not None
    box, top = point.box, point.row * _STEP
    radius = _HEIGHT / 2 if box.kind == "input" else 3
    double = 3 if box.kind == "array" else 1
    return (
        f'<rect x="{point.x - point.width / 2:.1f}" y="{top}" width="{point.width:.1f}" height="{_HEIGHT}" rx="{radius:g}" '
        f'fill="{_FILLS[box.kind]}" stroke="#888" stroke-width="{double}"/>'
        f'<text x="{point.x:.1f}" y="{top + _HEIGHT / 2 + 4.5:g}" fill="#1a1a1a">{escape(box.label)}</text>'
    )
