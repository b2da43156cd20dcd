"""From a definition to the statement that assigns its tensor: what is rewritten, padded, peeled or kept around, and then evaluated."""

from __future__ import annotations

from dataclasses import replace

from jaxte.lang.expr import Call, Const, as_expr
from jaxte.lang.rules import applied
from jaxte.lower.arrays.elementwise import Full, Number, Typed
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.assignment import Assignment, Shared
from jaxte.lower.body.candidates import noted
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.program.across.padded_once import padded_in
from jaxte.lower.program.across.pieces_within import as_padded
from jaxte.lower.rewrites.table import AFTER_PADDING, Place
from jaxte.lower.rules.interleaved import kept_around, write_into
from jaxte.lower.rules.peeled_edges import peeled, write_pieces
from jaxte.lower.rules.select import literal_of
from jaxte.lower.rules.summed_pieces import summed_in_pieces
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import known
from jaxte.tensors.copies import Extended
from jaxte.tensors.tensor import Compute

_WIDE = ("float64", "complex128")


def lower_tensor(own: Assignment, shared: Shared, tensor: Compute) -> Body:
    """The body that has lowered ``tensor``; the last of its statements assigns it."""
    scope, policy = Scope(tensor.axes), shared.policy
    if any(known(as_expr(e)) == 0 for e in tensor.shape):
        body = Body(own, shared)
        body.assign(body.target, Full(tuple(a.hi for a in tensor.axes), Number(0), tensor.dtype))
        return body
    if (numbers := literal_of(tensor)) is not None:
        body = Body(own, shared)
        body.assign(body.target, numbers)
        return body
    place = Place(tensor.axes, scope, policy, own.in_tiles)
    root, padded = as_padded(tensor.body, place)
    if isinstance(tensor, Extended):  # whose pieces lie inside, one after the other
        padded = {}
    wide = any(dtype in _WIDE for dtype in (tensor.dtype, *(t.dtype for t in tensor.inputs)))
    while isinstance(root, Call) and root.op.name == "cast" and isinstance(root.args[0], Const):
        root = root.args[0]
    root = applied(root, AFTER_PADDING, place)
    own = replace(own, axes=tensor.axes, padded=padded, wide=wide)
    summed = summed_in_pieces(root, own, policy, scope)
    if summed.rest is not root:
        left = padded_in(summed.rest, policy.facts.tests_pads)
        own = replace(own, padded=left, sliced=tuple(t for t in padded if t not in left), faces=summed.faces)
        root = summed.root
    around = kept_around(root, own, tensor.dtype, scope)
    peeling = peeled(root, own, policy, scope)
    if peeling.is_chosen or around is not None:
        own = replace(own, padded={}, sliced=tuple(padded))
    body = Body(own, shared)
    body.report.fired([*tensor.planned_by, *place.fired])
    for choice in (peeling.choice, summed.choice):
        if choice is not None:
            noted(body, choice)
    if around is not None:
        write_into(body, around, tensor.dtype)
    elif peeling.is_chosen:
        write_pieces(body, root, tensor.axes, tensor.dtype, peeling.pieces)
    else:
        body.finish(_code(body, body.evaluate(root, scope), tensor))
    return body


def _code(body: Body, value: Value, tensor: Compute) -> Node:
    """``value`` as an array of the dtype and over all axes of ``tensor``."""
    if value.literal:
        return _constant(tensor, value.code)
    return body.full(body.typed(value, tensor.dtype), tensor.axes)


def _constant(tensor: Compute, number: Node) -> Node:
    if not tensor.axes:
        return Typed(number, tensor.dtype)
    return Full(tuple(a.hi for a in tensor.axes), number, tensor.dtype)
