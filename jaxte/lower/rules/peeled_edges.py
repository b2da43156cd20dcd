"""Edges peeled off: the interior, where nothing is out of range, and the few positions around it, each computed by itself.

``u[i, j] + u[i - 1, j] + u[i + 1, j]`` with zeros outside is slices of ``u`` for all rows but the first and the last. So nothing
is put around ``u`` and no copy of it is made; what is left are two rows with fewer terms. Each of the pieces is the same body
over a part of the axes: the guards are decided there, and reads that wrap around are plain slices. The pieces are written
into their places of one array, which XLA does without a copy. Of the piece that is written first, into zeros, it makes a pad around what computes
it: a loop with a condition, which is as fast as without it where LLVM may compute the piece for the pads too, and many times slower where it may not, because
the piece reads a number that is not known, or calls ``tanh`` or ``rsqrt``. Such an interior is written last. So is that of a short line, whose pads are asked for
at each element and not once for a row: a piece that is written into others also stays on one core, and to hand so few elements to several takes longer than to compute them.

Bodies with reductions are not taken apart: windows and convolutions have padding of their own. Neither are choices by remainders, which
repeat nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Expr, Read
from jaxte.lang.limits import LARGE_RESULT, MOST_WRITTEN
from jaxte.lang.operators import FLOOR_DIVIDE, MAXIMUM, MINIMUM, MOD
from jaxte.lang.walk import all_of, free_axes, postorder, reads_data, reads_of
from jaxte.lower.arrays.data import Updated
from jaxte.lower.arrays.elementwise import Full, Number
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.assignment import Assignment
from jaxte.lower.body.candidates import Candidate, Chosen, chosen
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value, name_of
from jaxte.lower.cost.policy import Policy, signature
from jaxte.lower.cost.work import Work, points
from jaxte.lower.rules.interleaved import is_interleaved
from jaxte.lower.views.interior import Cuts, interior_cuts
from jaxte.lower.views.scope import Scope, Widths, is_inside
from jaxte.sets.intervals import extent_of, known
from jaxte.tensors.inputs import Head
from jaxte.tensors.tensor import Compute, Tensor

PEELED, SURROUNDED = "peeled edges", "surrounded by zeros"
_EDGE = 6  # reads and writes of an element of an edge: slices of few elements, padded one by one
_CALLED = ("tanh", "rsqrt")  # written out by XLA with choices of its own
_NOT_STRAIGHT = (MOD, FLOOR_DIVIDE, MINIMUM, MAXIMUM)


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a tensor that ``scope`` is over, and the position at which it begins in each axis."""

    scope: Scope
    start: tuple[int, ...]
    name: str


@dataclass(frozen=True)
class Peeling:
    """What may become of a body with edges: the pieces in which to compute it, and what that was chosen among."""

    pieces: tuple[Piece, ...] = ()
    choice: Chosen | None = None

    @property
    def is_chosen(self) -> bool:
        return self.choice is not None and self.choice.candidate.form == PEELED


def peeled(root: Expr, own: Assignment, policy: Policy, scope: Scope) -> Peeling:
    """The pieces in which to compute ``root``, the interior first, beside computing it at once.

    Args:
        root: the body.
        own: the tensor that is lowered; ``padded`` are the tensors that it would read with zeros around them.
        policy: how forms are chosen.
        scope: over all axes.
    """
    reads, axes = reads_of(root), own.axes
    if own.in_tiles or not may_have_edges(reads, own.padded):
        return Peeling()
    if root.reduces or reads_data(root):
        return Peeling()
    cuts = interior_cuts(root, reads, axes, scope)
    if not cuts or len(reads) * (1 + 2 * len(cuts)) > MOST_WRITTEN:
        return Peeling()
    pieces = tuple(_pieces(axes, cuts, scope))
    if not all(is_inside(read, pieces[0].scope) for read in reads) or is_interleaved(root, scope):
        return Peeling()
    return Peeling(pieces, choice_of_pieces(root, own, policy, axes, cuts))


def may_have_edges(reads: Sequence[Read], padded: Mapping[Tensor, Widths]) -> bool:
    """Whether one of ``reads`` is of a tensor with zeros around it, wraps around, or repeats elements."""
    return any(r.tensor in padded or any(map(_divides, r.indices)) for r in reads)


def choice_of_pieces(root: Expr, own: Assignment, policy: Policy, axes: Sequence[Axis], cuts: Cuts) -> Chosen:
    """Whether what ``cuts`` take off the ``axes`` of ``root`` is computed by itself, or all of it at once.

    What is summed is an array too, over the interior: a loop that adds up such a product computes it as slowly as it finds its elements.
    """
    copies = _work_at_once(own.padded, reads_of(root))
    at_once = copies if policy.facts.tests_pads else _work_of_pieces(root.dtype, axes, {})
    offers = [
        Candidate(SURROUNDED, at_once, None),
        Candidate(PEELED, _work_of_pieces(root.dtype, axes, cuts), None),
    ]
    return chosen(policy, own.name, offers, signature(axes, root, kind=PEELED))


def _divides(index: Expr) -> bool:
    """Whether an index is more than a sum of axes, as one that wraps around is."""
    return any(isinstance(node, Call) and node.op in _NOT_STRAIGHT for node in postorder(index))


def _pieces(axes: Sequence[Axis], cuts: Cuts, scope: Scope) -> Iterator[Piece]:
    """The interior, and the faces before and after it: of the first axis whole, of the others what earlier ones leave."""
    faces: list[Piece] = []
    start = dict.fromkeys(axes, 0)
    for axis, (before, after) in cuts.items():
        extent = known(axis.hi) or 0
        for first, count in ((0, before), (extent - after, after)):
            if count:
                face = _part(scope, axis, first, count)
                faces.append(Piece(face, tuple((start | {axis: first}).values()), "edge"))
        scope = _part(scope, axis, before, extent - before - after)
        start[axis] = before
    yield Piece(scope, tuple(start.values()), "interior")
    yield from faces


def _part(scope: Scope, axis: Axis, first: int, count: int) -> Scope:
    part = Axis(axis.name, 0, count)
    return scope.replace(axis, part + first, [part], deeper=0)


# --- what it costs


def _work_at_once(padded: Mapping[Tensor, Widths], reads: Sequence[Read]) -> Work:
    """A copy of each tensor with zeros around it; where reads wrap around or repeat elements, one of what each of them reads."""
    copies = [_bytes(tensor, widths) for tensor, widths in padded.items()]
    copies += [
        max(_bytes(read.tensor, ()), points(free_axes(read)) * dtypes.width(read.dtype))
        for read in reads
        if any(_divides(index) for index in read.indices)
    ]
    return Work(stream=2 * sum(copies), kernel=len(copies), temporaries=max(copies))


def _bytes(tensor: Tensor, widths: Widths) -> float:
    sizes = [extent_of(extent) for extent in tensor.shape]
    around = widths or ((0, 0),) * len(sizes)
    wide = [size + before + after for size, (before, after) in zip(sizes, around, strict=True)]
    return float(prod(wide) * dtypes.width(tensor.dtype))


def _work_of_pieces(dtype: str, axes: Sequence[Axis], cuts: Cuts) -> Work:
    """The array that the pieces are written into, and the edges, of which each reads and writes a few rows."""
    width, whole = dtypes.width(dtype), points(axes)
    inside = prod(extent_of(a.extent) - sum(cuts.get(a, (0, 0))) for a in axes)
    faces = sum(1 for before, after in cuts.values() for count in (before, after) if count)
    edges = width * (whole - inside)
    return Work(stream=width * whole + _EDGE * edges, kernel=1 + faces, temporaries=float(edges))


# --- text


def write_pieces(body: Body, root: Expr, axes: Sequence[Axis], dtype: str, pieces: Sequence[Piece]) -> None:
    """Assigns each piece, then the tensor of ``dtype`` that they are written into."""
    body.report.note(PEELED)
    # The interior of a short line is written last, which keeps it on one core (kuramoto_sivashinsky); of 2**16 elements two are faster.
    is_short_line = len(axes) == 1 and (known(axes[0].extent) or LARGE_RESULT) < LARGE_RESULT
    if _branches(root) or is_short_line:
        pieces = [*pieces[1:], pieces[0]]
    parts: list[Node] = []
    for piece in pieces:
        value = body.typed(body.evaluate(root, piece.scope), dtype)
        own = Value(body.full(value, piece.scope.order), piece.scope.order, (dtype, False))
        parts.append(body.named_as(f"{body.target}_{piece.name}", own).code)
    whole = name_of(body.target, axes, (dtype, False))
    body.assign(body.target, Full(whole.shape, Number(0), dtype))
    for piece, part in zip(pieces, parts, strict=True):
        body.assign(body.target, Updated(whole, part, piece.start))


def _branches(root: Expr) -> bool:
    """Whether ``root``, with what XLA computes in the loop of it, is more than LLVM computes where it is not needed."""
    stack: list[Expr] = [root]
    seen: set[Expr] = {root}
    while stack:
        node = stack.pop()
        if _branches_itself(node):
            return True
        found = [body for body in _producers(node) if body not in seen]
        seen.update(found)
        stack += found
    return False


@lru_cache(maxsize=1024)
def _branches_itself(root: Expr) -> bool:
    called = [n for n in all_of(Call, root) if n.op.name in _CALLED]
    numbers = (read.tensor for read in reads_of(root) if not free_axes(read))
    return bool(called) or any(not _is_head(tensor) for tensor in numbers)


@lru_cache(maxsize=1024)
def _producers(root: Expr) -> tuple[Expr, ...]:
    """The bodies of what ``root`` reads that XLA computes in the loop of it."""
    tensors = dict.fromkeys(read.tensor for read in reads_of(root))
    return tuple(dict.fromkeys(t.body for t in tensors if isinstance(t, Compute) and _is_elementwise(t)))


def _is_elementwise(tensor: Compute) -> bool:
    return not tensor.body.reduces


@lru_cache(maxsize=1024)
def _is_head(tensor: Tensor) -> bool:
    """Whether a number is what flows back into a loss, or made of that and of numbers."""
    if isinstance(tensor, Compute):
        return _is_elementwise(tensor) and all(_is_head(read.tensor) for read in reads_of(tensor.body))
    return isinstance(tensor, Head)
