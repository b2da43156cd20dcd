"""The element of a head that flows into a body: read from the head, the head's own expression in its place, or a sum over copies.

The results of a reduction may be repeated (:mod:`jaxte.autodiff.rules.prefixes`): the head is summed over the copies before it flows in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from jaxte.algebra.data import Points
from jaxte.algebra.product import stays_finite
from jaxte.algebra.sums import signed_terms
from jaxte.autodiff.rules.prefixes import own_axes
from jaxte.autodiff.rules.reductions import reduction_contributions
from jaxte.autodiff.terms.guards import guard
from jaxte.autodiff.terms.scalar import Contribution
from jaxte.autodiff.terms.support import LatticeSum, support
from jaxte.autodiff.terms.zeros import eliminate, lift_guards
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Const, Expr, Read, Reduce, call, cast, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.operators import AND, DIVIDE, MULTIPLY, NEGATIVE, NONZERO, POWER, SELECT
from jaxte.lang.scalars.table import TABLE, may_blow_up
from jaxte.lang.walk import conditions_in, nodes_outside, postorder, reads_of, substitute
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.inputs import ResidualHead
from jaxte.tensors.structure import PartialSum
from jaxte.tensors.tensor import Compute, Tensor

# Operations of a guarded head that is put in place: the guard of an extremum with its ties takes six.
_MOST_IN_PLACE = 12
_dtype = attrgetter("dtype")


@dataclass(frozen=True, eq=False)
class Origin:
    """What an adjoint, or a summand of it, was derived from: ``head`` times the Jacobian of ``reader`` with respect to ``tensor``."""

    reader: Compute
    tensor: Tensor
    head: Tensor


class Adjoint(Compute):
    """A derived adjoint.

    Attributes:
        origins: the summands that it is made of. For each of their heads its derivative is known without deriving it: the
            Jacobian of the reader itself.
        guarded: whether elements are zero because a guard on data excludes them, here or in the adjoint that this
            one multiplies; such zeros must stay zero whatever they are multiplied by later.
        masked: whether this is ``guarded`` or made of what is, by sums, too: a matrix product has rows of zeros where its operand has.
        passed_on: whether an adjoint that this one is made of is ``masked``, or what flows back into a residual.
    """

    __slots__ = ("guarded", "masked", "origins", "passed_on")

    def __init__(
        self,
        name: str,
        axes: Sequence[Axis],
        body: Expr,
        heads: Sequence[Tensor],
        origins: Sequence[Origin] = (),
        like: Adjoint | None = None,
    ) -> None:
        super().__init__(name, axes, body)
        self.origins = tuple(origins)
        if like is not None:
            self.passed_on: bool = like.passed_on
            self.guarded: bool = like.guarded
            self.masked: bool = like.masked
            return
        adjoints = [head for head in heads if isinstance(head, Adjoint)]
        self.passed_on = any(map(_is_masked, heads))
        self.guarded = has_data_guard(body) or (any(h.guarded for h in adjoints) and not _has_sum(body))
        self.masked = self.guarded or self.passed_on

    def with_body(self, body: Expr) -> Adjoint:
        """The same adjoint, its elements written another way."""
        if body is self.body:
            return self
        return Adjoint(self.name, self.axes, body, (), self.origins, like=self)

    def over(self, axes: Sequence[Axis], body: Expr) -> Adjoint:
        return Adjoint(self.name, axes, body, (), like=self)


class HeadSum(Adjoint):
    """A head, summed over axes that what it flows into is repeated along: a part of the adjoints that it flows on to."""

    __slots__ = ()

    def over(self, axes: Sequence[Axis], body: Expr) -> HeadSum:
        return HeadSum(self.name, axes, body, (), like=self)


def seed_of(head: Tensor, at: Sequence[Expr], reader: Tensor) -> Expr:
    """The element of ``head`` at ``at`` as it flows into the body of ``reader``.

    A head that only renames, broadcasts or selects (the identity, a copy, a constant) is put in place, so that no
    tensor is made for it. A short guarded head is put in place where the reader's slope may not be finite, by itself or since it is a
    function of a tensor that may not be; where that cannot be (the head is a sum, or would be written out for each slope), its elements pass on nothing where a condition on positions that are data excludes
    them, or where they are zero if that is not known from such a condition. Elements that no position of the head's sums
    reaches pass on nothing there, either.
    """
    element: Expr = Read(head, tuple(at))
    if isinstance(head, ResidualHead) and (_may_blow_up(reader) or _may_be_spoilt(reader)):
        return guard(call(NONZERO, element, 0), element)
    if not isinstance(head, Compute):
        return element
    table: dict[Expr, Expr] = dict(zip(head.axes, at, strict=True))
    if _is_trivial(head.body):
        element = substitute(head.body, table)
        return seed_of(element.tensor, element.indices, reader) if isinstance(element, Read) else element
    may_blow_up = _may_blow_up(reader)
    if not may_blow_up and not _may_be_spoilt(reader):
        return element
    in_place = may_blow_up and has_data_guard(head.body) and not _has_sum(head.body)
    if in_place and _is_short(head.body) and _is_guarded_throughout(head):
        return substitute(head.body, table)
    masked = _is_masked(head) if isinstance(head, Adjoint) else has_data_guard(head.body)
    known = _whole_guard(head) if masked else TRUE
    if known is None:
        return guard(call(NONZERO, element, 0), element)
    where = support(head)
    return guard(substitute(known if where is None else call(AND, known, where), table), element)


def moved_into(tangent: Tensor, read: Read, at: Sequence[Expr], reader: Tensor) -> Expr:
    """The element of ``tangent``, that of the tensor of ``read`` that ``reader`` reads, at ``at``.

    What only renames, broadcasts or selects is put in place, and so is a short guard where the slope of the reader may not be finite. With a long
    one, elements pass on nothing where they are zero, as those of heads: steps that follow each other would each hold all that are before.
    """
    element: Expr = Read(tangent, tuple(at))
    if not isinstance(tangent, Compute):
        return element
    may_blow_up = _may_blow_up(reader) or _may_be_spoilt(reader)
    guarded = may_blow_up and has_data_guard(tangent.body) and not _has_sum(tangent.body)
    if _is_trivial(tangent.body) or (guarded and _is_short(tangent.body)):
        return tangent.element(at)
    masked = guarded or (may_blow_up and any(map(_is_masked, (tangent, read.tensor))))
    return guard(call(NONZERO, element, 0), element) if masked else element


def _is_masked(head: Tensor) -> bool:
    """Whether elements of ``head`` are zero because conditions on data exclude them, or others that it is made of."""
    return head.masked if isinstance(head, Adjoint) else isinstance(head, ResidualHead)


def _whole_guard(head: Compute) -> Expr | None:
    """The only condition on data that makes elements of ``head`` zero, if it is one on positions around the whole."""
    if not isinstance(head, Adjoint) or head.passed_on:
        return None
    match head.body:
        case Call(op, (condition, taken, Const(0))) if op is SELECT:
            positions = not any(dtypes.is_inexact(read.dtype) for read in reads_of(condition))
            return condition if positions and not has_data_guard(taken) else None
    return None


def _has_sum(body: Expr) -> bool:
    return any(
        isinstance(node, Reduce)
        or (isinstance(node, Read) and isinstance(node.tensor, (LatticeSum, PartialSum, HeadSum)))
        for node in postorder(body)
    )


def _is_short(body: Expr) -> bool:
    """Whether ``body`` may stand in place of its elements: of what follows each other, each would hold all that are before it."""
    return sum(isinstance(node, Call) for node in postorder(body)) <= _MOST_IN_PLACE


def _is_guarded_throughout(head: Compute) -> bool:
    """Whether each term of ``head`` that has zeros of other adjoints stands under a guard of its own."""
    if not isinstance(head, Adjoint) or not head.passed_on:
        return True
    terms = [term for term, _ in signed_terms(head.body, negated=True)]
    bare = [term for term in terms if not (_is_choice(term) and has_data_guard(term))]
    return not any(_is_masked(read.tensor) for read in reads_of(*bare))


def _is_choice(term: Expr) -> bool:
    return isinstance(term, Call) and term.op is SELECT


def _is_trivial(body: Expr) -> bool:
    while isinstance(body, Call) and (body.op is NEGATIVE or body.op.name == "cast"):
        body = body.args[0]
    if isinstance(body, Read):
        return all(isinstance(i, (Axis, Const)) for i in body.indices)
    if isinstance(body, Call) and body.op is SELECT and not is_decidable(body.args[0]):
        return False
    return all(not isinstance(node, (Read, Reduce)) for node in postorder(body))


def has_data_guard(body: Expr) -> bool:
    """Whether a condition on data chooses in ``body``, or decides on the points of a sum."""
    return not all(map(is_decidable, conditions_in(body)))


def _may_blow_up(reader: Tensor) -> bool:
    if not isinstance(reader, Compute):
        return True
    if isinstance(reader.body, Reduce) and reader.body.reducer.name not in ("sum", "max", "min"):
        return True
    return _has_call(reader.body, _slope_may_blow_up)


def _may_be_spoilt(reader: Tensor) -> bool:
    """Whether a slope of ``reader`` is a function of an element that may be infinite or NaN where the inputs are finite."""
    assert isinstance(reader, Compute)
    return _has_call(reader.body, _slope_may_be_spoilt)


def _has_call(body: Expr, asked: Callable[[Call], bool]) -> bool:
    """Whether one of the operations in ``body``, those on indices aside, is such as is ``asked`` for."""
    return any(map(asked, [node for node in nodes_outside(body, (Read,)) if isinstance(node, Call)]))


# slopes that are 0, 1 or a share whatever the operands are
_STRAIGHT = frozenset(
    ["add", "subtract", "negative", "select", "cast", "maximum", "minimum", "relu", "relu6", "abs"]
)


def _slope_may_be_spoilt(node: Call) -> bool:
    if node.op.name in _STRAIGHT or not dtypes.is_inexact(node.dtype):
        return False
    if node.op is not MULTIPLY:
        return not all(map(stays_finite, node.args))
    a, b = node.args
    if isinstance(a, Const) or isinstance(b, Const):
        return False
    return (_varies(b) and not stays_finite(a)) or (_varies(a) and not stays_finite(b))


def _varies(expr: Expr) -> bool:
    return any(map(dtypes.is_inexact, map(_dtype, reads_of(expr))))


def _slope_may_blow_up(node: Call) -> bool:
    if node.op in (DIVIDE, POWER) and isinstance(node.args[1], Const):
        return may_blow_up(node)
    return TABLE[node.op.name].finite != "all"


def contributions_of_reduction(
    output: Compute, head: Tensor, prefix: Sequence[Axis], wanted: Callable[[Expr], bool]
) -> list[Contribution]:
    """What each ``wanted`` read in the body of ``output``, a reduction, receives of ``head``, the axes ``prefix`` in front of its own."""
    own = own_axes(output)
    if len(own) == len(output.axes):
        return reduction_contributions(output, seed_of(head, (*prefix, *output.axes), output), wanted)
    flow = _summed(head, prefix, output, own)
    parts = reduction_contributions(output, seed_of(flow, (*prefix, *own), output), wanted)
    first: dict[Axis, Expr] = {a: ZERO for a in output.axes if not among(a, own)}
    return [part.at(first) for part in parts]


def _summed(head: Tensor, prefix: Sequence[Axis], output: Compute, own: Sequence[Axis]) -> HeadSum:
    """``head`` summed over the axes of ``output`` that are not its ``own``."""
    rest = tuple(a for a in output.axes if not among(a, own))
    value, guards = lift_guards(seed_of(head, (*prefix, *output.axes), output))
    name = f"d{output.name}_once"
    points = Points(rest, tuple(c for guard in guards for c in conjuncts(guard)), value)
    total = eliminate(points, (*prefix, *own), name)
    axes = tuple(Axis(a.name, 0, a.hi) for a in (*prefix, *own))
    body = Const(0.0) if total is None else substitute(total, dict(zip((*prefix, *own), axes, strict=True)))
    return HeadSum(name, axes, cast(body, output.dtype), [head])
