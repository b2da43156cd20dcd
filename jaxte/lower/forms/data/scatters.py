"""The forms of a sum at positions that are data, with what each costs.

``out[a, j] = sum over i where I[i] == a of V[i, j]`` is a scatter-add of V, and the product of V with the one-hot matrix
``I[i] == a``, which is fastest where matrix products are cheap and ``a`` takes few values.

Where values may be infinite or NaN that product is one of finite values only: ``0 * inf`` would be NaN in all rows. Its result says whether they are, and is
scattered again where it is not finite, which costs next to nothing where branches do (``Platform.branches``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import prod
from string import ascii_lowercase

from jaxte.algebra.product import may_spoil, product_of
from jaxte.lang import dtypes
from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import ZERO, Const, Expr, Read
from jaxte.lang.operators import ADD, LESS, MULTIPLY, SELECT
from jaxte.lang.walk import free_axes, substitute
from jaxte.lower.arrays.counts import bytes_of
from jaxte.lower.arrays.counts import flops as flops_of
from jaxte.lower.arrays.data import IfFinite, OneHot, Scatter
from jaxte.lower.arrays.elementwise import Apply, Arange, Cast, Full, Number, number
from jaxte.lower.arrays.node import Node, nodes_below, times
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.views import ALL, NEW, Index, Reshape, Step, Transpose
from jaxte.lower.body.candidates import Candidate, Search, Wanted, operands_of
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.added_products import added_products
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.spec import Array, on_names
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.data.recognise import SCATTER, recognise_scatter
from jaxte.lower.forms.data.scatter_spec import Position, ScatterSpec, result_dims
from jaxte.lower.match.empty_sums import guarded_reads
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent_of, known


def scatter_source(spec: ScatterSpec, operands: Sequence[Node]) -> Node:
    """``spec`` on the nodes of ``spec.operands``."""
    return _finished(spec, accumulated(spec, operands, spec.flags), operands)


@dataclass(frozen=True)
class Hot:
    """A sum at one array of positions as a product with their one-hot rows.

    Attributes:
        spec: with values over the dimensions that they depend on.
        letters: of the rows, of the values and of the result, as an einsum has them.
        met: of the dimensions of all values, on which they depend.
    """

    spec: ScatterSpec
    letters: str
    met: tuple[bool, ...]


def one_hot_of(spec: ScatterSpec) -> Hot | None:
    """``spec`` as such a product; None where there are several arrays of positions, or nothing is multiplied."""
    if len(spec.indices) != 1 or not spec.values.axes:
        return None
    whole, block = ascii_lowercase[: len(spec.shape)], ascii_lowercase[::-1][: spec.block]
    row = spec.positions[spec.target]
    dims = result_dims(spec.positions, whole, block)
    free = free_axes(spec.values.body)
    met = [n for n, axis in enumerate(spec.values.axes) if axis in free]
    values = Array(tuple(spec.values.axes[n] for n in met), spec.values.body)
    out = [own if p.count is None else block[p.dims[0]] for own, p in zip(whole, spec.positions, strict=True)]
    hot = "".join(block[d] for d in row.dims) + whole[spec.target]
    held = "".join(dims[n] for n in met)
    if not set(out) <= {*hot, *held}:
        return None
    depends = tuple(axis in free for axis in spec.values.axes)
    return Hot(replace(spec, values=values), f"{hot},{held}->{''.join(out)}", depends)


def one_hot_source(own: Hot, operands: Sequence[Node], adds: bool) -> Node:
    """The product of the values with the matrix that has a one where a position is a row of the output, or what :func:`added_products` makes of it."""
    spec = own.spec
    hot = OneHot(operands[1], spec.shape[spec.target], spec.dtype)
    product = Einsum(own.letters, (hot, operands[0]), exact=True)
    return _finished(spec, added_products(product) if adds else product, operands)


def accumulated(
    spec: ScatterSpec, operands: Sequence[Node], flags: Sequence[str], onto: Node | None = None
) -> Node:
    """The values at their positions in the array ``onto``, by default one of identities; ``in_order`` gives it the shape of the output.

    Where no position occurs twice identities need not be read: values take their places.
    """
    shape = (reduce(times, spec.shape),) if spec.flat else spec.shape
    start = onto or Full(shape, Number(0) if spec.method == "add" else _identity(spec), spec.dtype)
    if spec.flat:
        positions: tuple[Node | None, ...] = (_flat_position(spec, operands),)
    else:
        positions = tuple(_position(position, spec.block, operands) for position in spec.positions)
    method = "set" if "unique_indices" in flags and onto is None else spec.method
    return Scatter(start, positions, method, operands[0], flags=tuple(flags))


def _finished(spec: ScatterSpec, result: Node, operands: Sequence[Node]) -> Node:
    remaining = operands[1 + len(spec.indices) :]
    result = spec.finish.of(in_order(spec, result), remaining)
    return result if spec.guard is None else Apply(SELECT, (remaining[-1], result, _identity(spec)))


def in_order(spec: ScatterSpec, result: Node) -> Node:
    """``result``, whose dimensions are in the order in which values are accumulated, or one, in the order of the output's."""
    steps: list[Step] = [Reshape(spec.shape)] if spec.flat and result.ndim == 1 else []
    return apply_steps(result, steps if spec.order is None else [*steps, Transpose(tuple(spec.order))])


def _identity(spec: ScatterSpec) -> Node:
    assert isinstance(spec.identity, Const)
    return number(spec.identity.value, spec.identity.dtype)


def _position(position: Position, block: int, operands: Sequence[Node], stride: int = 1) -> Node | None:
    """The positions in one dimension over the whole block, times ``stride``; None for all of it."""
    if position.whole:
        return None
    if position.count is not None:
        found: Node = Arange(0, normal(position.count * stride), stride)
    else:
        assert position.operand is not None
        found = operands[position.operand]
        found = found if stride == 1 else Apply(MULTIPLY, (found, Number(stride)))
    first = min(position.dims, default=block)
    entries = tuple(ALL if d in position.dims else NEW for d in range(first, block))
    return apply_steps(found, [Index(entries)])


def _flat_position(spec: ScatterSpec, operands: Sequence[Node]) -> Node:
    """The positions counted over all dimensions; -1 where the array of positions is out of range."""
    parts: list[Node] = []
    stride = 1
    for position, extent in zip(reversed(spec.positions), map(known, reversed(spec.shape)), strict=True):
        own = _position(position, spec.block, operands, stride)
        assert own is not None and extent is not None
        parts.append(own)
        stride *= extent
    found = reduce(lambda a, b: Apply(ADD, (b, a)), parts)
    if not spec.unsure:
        return found
    data, extent = spec.positions[spec.target], known(spec.shape[spec.target])
    at = _position(data, spec.block, operands)
    assert at is not None and extent is not None
    inside = Apply(LESS, (Cast(at, "uint32"), number(extent)))  # those below zero are large
    return Apply(SELECT, (inside, found, Number(-1)))


ONE_HOT = "one-hot product"
Source = Callable[[Sequence[Node]], Node]


def scatter_candidates(body: Body, spec: ScatterSpec, wanted: Wanted) -> Iterator[Candidate]:
    """A scatter, and a product with the one-hot matrix of the positions."""
    node = wanted.node
    if body.policy.facts.pads_rows:
        in_rows = recognise_scatter(wanted.axes, node, True)
        spec = in_rows if isinstance(in_rows, ScatterSpec) else spec
    extents = list(map(extent_of, spec.values.shape))
    width = dtypes.width(node.dtype)
    moved = Work(stream=width * prod(map(extent_of, spec.shape)), kernel=1)
    if body.policy.facts.scatters_rows:
        moved += Work(scatter=prod(extents[: spec.block]), stream=width * prod(extents))
    else:
        moved += Work(scatter=prod(extents))
    yield _candidate(body, spec, wanted, SCATTER, moved, partial(scatter_source, spec))
    own = one_hot_of(spec) if node.is_sum and is_float(node.dtype) else None
    if own is None or (spec.block > 1 and not body.policy.facts.scatters_rows):
        return  # a GPU adds a matrix of positions in fewer bytes than it writes their rows (letter_projection, 0.8)
    made = list(nodes_below(one_hot_source(own, on_names(own.spec.operands), False)))
    hot = sum(bytes_of(node, extent_of) for node in made if isinstance(node, OneHot))
    flops = sum(flops_of(node, extent_of) for node in made if isinstance(node, Einsum))
    work = Work(dot=flops, stream=2.0 * hot, temporaries=hot, kernel=2)
    product = partial(one_hot_source, own, adds=body.policy.facts.copies_for_products)
    if not _may_spoil(spec):
        yield _candidate(body, own.spec, wanted, ONE_HOT, work, product)
    elif body.policy.facts.branches:
        asked = Work(stream=2.0 * width * prod(map(extent_of, spec.shape)), kernel=2)
        yield _candidate(
            body, own.spec, wanted, ONE_HOT, work + asked, partial(_unless_spoilt, body, product, own)
        )


def _unless_spoilt(body: Body, product: Source, own: Hot, operands: Sequence[Node]) -> Node:
    """The ``product`` where it is finite, else the scatter, of values that are the same along dimensions which they do not depend on."""
    found = body.shared(product(operands))
    entries = tuple(ALL if met else NEW for met in own.met)
    values = operands[0] if all(own.met) else apply_steps(operands[0], [Index(entries)])
    return IfFinite(found, found, scatter_source(own.spec, [values, *operands[1:]]))


def _may_spoil(spec: ScatterSpec) -> bool:
    """Whether a value that a product multiplies by zeros alone may be infinite, or NaN since it is read beyond a tensor or made of what is."""
    kept = guarded_reads(spec.values.body, spec.hits)
    stands: dict[Expr, Expr] = {r: Read(r.tensor, [ZERO] * len(r.indices)) for r in kept if is_float(r.dtype)}
    return any(map(may_spoil, product_of(substitute(spec.values.body, stands)).factors))


def _candidate(
    body: Body, spec: ScatterSpec, wanted: Wanted, form: str, work: Work, source: Source
) -> Candidate:
    def write() -> Search:
        operands = yield from scatter_operands(body, spec, wanted.scope, multiplied=form == ONE_HOT)
        body.report.note(form)
        if form == SCATTER:
            body.report.because(spec.reason)
        return Value(source(operands), wanted.axes, (wanted.node.dtype, False))

    return Candidate(form, work, write)


def scatter_operands(
    body: Body, spec: ScatterSpec, scope: Scope, multiplied: bool = False
) -> Generator[tuple[Expr, Scope], Value, list[Node]]:
    """The nodes of the operands of ``spec``; what falls outside of the output may be anything, but for NaN where it is ``multiplied`` by zero."""
    body.survey(spec.values.body)
    # Single elements are as well filled in, as others do that read them: then there is one gather for all.
    rows = multiplied or len(spec.values.axes) > spec.block
    hits = guarded_reads(spec.values.body, spec.hits if rows else ())
    return (yield from operands_of(body, spec.operands, scope.hitting(hits)))
