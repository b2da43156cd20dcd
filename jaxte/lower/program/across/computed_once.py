"""What several statements have in common is computed, or gathered, once.

**Products of the same arrays**, each sum with a vector of its own: ``dy[i] = sum over j of (h[i, j] * g[j]) * x[i, j]`` and
``dg[j] = sum over i of h[i, j] * (x[i, j] * s[i])``. The gradients of normalisations read such products as tensors, ``h * g`` and ``x * s``. XLA on the
CPU writes each of them to memory and sums its product with the other array. With the factors of these tensors in the sums, all of them have ``h * x`` in
common,

    dy = jnp.einsum("ij,j->i", h * x, g),   dg = jnp.sum(h * x * s[:, None], axis=0)

a product of a matrix and a vector along its columns, and one sum along its rows: a seventh less memory is met by a normalisation of a matrix, forward
and backward. On other platforms, where a sum of three factors is one kernel, it is left as it is.

**Rows that are gathered in two modes**: a read that a guard keeps in range may be clipped, which is the fastest; another read of the same rows, which may
leave its tensor, gives NaN there. Both are the second one, whichever tensor is lowered first.

**Pieces that one other tensor reads**, element by element, are put together before that. XLA writes pieces into one array in place, unless a loop over all
elements reads it: it then makes them part of that loop, where each element asks which piece it is in. That is two to four times the time of writing
them and reading them again, more if the loop calls ``tanh`` or ``exp``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce
from jaxte.lang.graphs import Members, among
from jaxte.lang.limits import FEW
from jaxte.lang.walk import at_positions, depends_on, free_axes, postorder, reads_of, substitute
from jaxte.lower.arrays.data import CLIP, FILL, Gather, Updated
from jaxte.lower.arrays.elementwise import Kept, Name
from jaxte.lower.arrays.node import Node, nodes_below, replaced
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.lower.cost.policy import Policy
from jaxte.lower.tiles.tiling import Tiling
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute, Tensor

_DTYPES = ("float32", "float64")


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum with the factors of the tensors that it reads.

    Attributes:
        tensor: whose definition has it.
        node: as it stands there.
        factors: of its product.
        shared: the tensors that are read at every point.
    """

    tensor: Compute
    node: Reduce
    factors: tuple[Factor, ...]
    shared: frozenset[tuple[Tensor, int]]


def with_shared_products(planned: Tiling, results: Members[Tensor], policy: Policy) -> Tiling:
    """``planned`` with the products that several sums have in common as factors of these sums."""
    known = {*planned.stand_ins, *planned.stand_ins.values()}
    computed = dict.fromkeys(t for t in planned.order if isinstance(t, Compute) and t not in known)
    if not policy.facts.copies_for_products or not any(_is_scaled(t) for t in computed):
        return planned
    groups: dict[frozenset[tuple[Tensor, int]], list[_Sum]] = {}
    for tensor in computed:
        for node in _sums(tensor):
            found = _taken_apart(tensor, node, computed)
            if found is not None:
                groups.setdefault(found.shared, []).append(found)
    tables: dict[Compute, dict[Expr, Expr]] = {}
    for members in groups.values():
        if len({own.tensor for own in members}) > 1:
            for own in members:
                body = (multiplied(own.factors),)
                node = Reduce(own.node.reducer, body, own.node.axes, own.node.where, own.node.position)
                tables.setdefault(own.tensor, {})[own.node] = node
    new: dict[Tensor, Compute] = {t: t.renewed(substitute(t.body, table)) for t, table in tables.items()}
    unread = [t for own in tables for t in own.inputs if isinstance(t, Compute)]
    return planned.with_definitions(new, unread, results)


def _is_scaled(tensor: Compute) -> bool:
    """Whether a tensor is a product with a factor over some of its axes only, all of it elementwise."""
    product = product_of(tensor.body)
    if tensor.dtype not in _DTYPES or product.is_conditional or len(product.factors) < 2:
        return False
    if any(isinstance(n, Reduce) for f in product.factors for n in postorder(f.expr)):
        return False
    long = _long(tensor.axes)
    over = [long.intersection(free_axes(f.expr)) for f in product.factors]
    return long in over and any(own and own != long for own in over)


def _long(axes: Sequence[Axis]) -> set[Axis]:
    return {a for a in axes if known(a.extent) != 1}


def _sums(tensor: Compute) -> list[Reduce]:
    if tensor.dtype not in _DTYPES:
        return []
    return [
        node
        for node in postorder(tensor.body)
        if isinstance(node, Reduce) and node.is_sum and node.where is TRUE
    ]


def _taken_apart(tensor: Compute, node: Reduce, computed: Members[Any]) -> _Sum | None:
    """A sum over some of the axes of what it reads, with its factors; None where it has no vector among them."""
    product = product_of(node.exprs[0])
    if product.is_conditional:
        return None
    factors = tuple(part for f in product.factors for part in _factors(f, computed))
    axes = _long([*node.axes, *tensor.axes])
    whole = [
        f.expr for f in factors if not f.inverse and isinstance(f.expr, Read) and _is_whole(f.expr, axes)
    ]
    if len(axes) != 2 or len(whole) < 2 or len({read.indices for read in whole}) > 1:
        return None  # in more dimensions XLA copies the product, transposed
    vectors = [f for f in factors if not among(f.expr, whole) and depends_on(f.expr, node.axes)]
    if not vectors or any(f.inverse or axes <= free_axes(f.expr).keys() for f in vectors):
        return None
    if any((known(a.extent) or FEW + 1) <= FEW for a in node.axes):
        return None  # it would be written out
    if multiplied(factors).dtype != node.dtype:
        return None
    return _Sum(tensor, node, factors, frozenset(Counter(read.tensor for read in whole).items()))


def _factors(factor: Factor, computed: Members[Any]) -> Sequence[Factor]:
    """The factors of a tensor that is read, where it is a product with a vector."""
    read = factor.expr
    if factor.inverse or not isinstance(read, Read) or not isinstance(read.tensor, Compute):
        return [factor]
    tensor = read.tensor
    if tensor not in computed or not _is_scaled(tensor):
        return [factor]
    at = dict(zip(tensor.axes, read.indices, strict=True))
    return [Factor(at_positions(f.expr, at), f.inverse) for f in product_of(tensor.body).factors]


def _is_whole(read: Read, axes: set[Axis]) -> bool:
    """Whether a read is at every point: at each of ``axes``, and at no other position."""
    own = {i for i in read.indices if isinstance(i, Axis)}
    return len(own) == len(read.indices) and axes <= own


def with_one_gather(statements: Sequence[AnyStatement]) -> list[AnyStatement]:
    """``statements`` in which clipped rows are read as those are that are gathered in whole."""
    own = [s.source for s in statements if isinstance(s, Statement) and Gather in s.source.kinds]
    gathers = [node for node in nodes_below(*own) if isinstance(node, Gather)]
    filled = {(g.array, g.positions): g for g in gathers if g.mode == FILL}
    clipped = [g for g in gathers if g.mode == CLIP and (g.array, g.positions) in filled]
    if not clipped:
        return list(statements)
    table: dict[Node, Node] = {g: filled[g.array, g.positions] for g in clipped}
    made: dict[Node, Name] = {}
    found: list[AnyStatement] = []
    for statement in statements:
        if isinstance(statement, Statement):
            source = replaced(statement.source, table)
            statement = replace(statement, source=made.get(source, source))
            if source in table.values():
                made.setdefault(source, Name(statement.target, source.shape, source.kind))
        found.append(statement)
    return found


def read_by_one(order: Iterable[Tensor], returned: frozenset[Tensor]) -> frozenset[Tensor]:
    """The tensors among those computed in ``order`` that one other reads, at its own axes only, and no caller."""
    times: Counter[Tensor] = Counter(returned)
    moved: set[Tensor] = set()
    for reader in order:
        if isinstance(reader, Compute):
            times.update(reader.inputs)
            moved |= {
                r.tensor for r in reads_of(reader.body) if not all(isinstance(i, Axis) for i in r.indices)
            }
    return frozenset(t for t, n in times.items() if n == 1 and t not in moved and t not in returned)


def put_together(statement: AnyStatement) -> AnyStatement:
    """``statement`` with its value computed before what reads it, if that is an array into which pieces are written."""
    if isinstance(statement, Statement) and isinstance(statement.source, Updated):
        return replace(statement, source=Kept(statement.source, "apart"))
    return statement
