"""Graphs as SVG: boxes in rows, with lines from each to those below that it leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

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
