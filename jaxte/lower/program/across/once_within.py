"""What one statement writes several times is written once: parts that differ in one position, differences in both orders, masked arrays.

Parts of an array that differ in one position alone are a loop over it, where they would make a long line:

    jnp.stack([jnp.sum(w * (x[:, k, None] - y[None, :, k]), axis=1) for k in range(3)], axis=1)

stands for what has the same text three times, with 0, 1 and 2 for ``k``. The loop runs when the program is traced: XLA sees the same.

Of differences of the same two arrays in both orders one is nothing less the other:

    jnp.pad(u[:-1] - u[1:], (1, 0)) + jnp.pad(u[1:] - u[:-1], (0, 1))

What flows along an edge, a weight by a distance, and what flows back through either is read at both ends. XLA finds two differences there, and where more than
one kernel reads them it writes two arrays: a step of anisotropic diffusion with its gradient moves 54 MB on a GPU so, and 38 MB with one for each dimension.
``0.0 - d`` is ``-d`` but for the sign of zero, and has that of the other order, so that a quotient by it is the same. A square is that of either.

An array of which an extremum is taken where a condition holds, and which a choice by the same condition reads, is masked once:

    m = jnp.max(jnp.where(c, s, -jnp.inf), axis=1)        s_masked = jnp.where(c, s, -jnp.inf)
    w = jnp.where(c, jnp.exp(s - m[:, None]), 0.0)        m = jnp.max(s_masked, axis=1);  w = jnp.where(c, jnp.exp(s_masked - m[:, None]), 0.0)

Where the condition holds the two arrays are the same, and elsewhere neither is chosen. Attention with a mask had its scores in memory twice, masked for the
maximum and as they are for the exponential; XLA on the CPU has one loop for both of one array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import Axis, Const, Expr, Reducer
from jaxte.lang.limits import SEVERAL
from jaxte.lang.operators import ABS, MULTIPLY, POWER, SELECT, SUBTRACT
from jaxte.lower.arrays.elementwise import Apply, Cast, Name, Number
from jaxte.lower.arrays.loops import Each, Joined, Loop, Stacked, loop
from jaxte.lower.arrays.node import Node, names_of, nodes_below, replaced, rewritten
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.arrays.views import Index, Range, View
from jaxte.lower.body.statements import LONGEST_LINE
from jaxte.lower.code.lines import Names
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.sets.affine import from_linear
from jaxte.sets.intervals import known
from jaxte.sets.linear import Linear


def with_alike_parts_in_loops(source: Node, text_of: Callable[[Node], str]) -> Node:
    """``source`` with the parts of stacks and concatenations in loops, where its line is long."""
    if source.kinds.isdisjoint((Stacked, Joined)):
        return source
    joined = [node for node in nodes_below(source) if isinstance(node, (Stacked, Joined))]
    whole = [node for node in joined if len(node.parts) >= SEVERAL]
    if not whole or len(text_of(source)) <= LONGEST_LINE:
        return source
    table: dict[Node, Node] = {}
    for node in whole:
        each = _each(node.parts)
        if each is not None:
            table[node] = replace(node, parts=(each,))
    return replaced(source, table)


def _each(parts: tuple[Node, ...]) -> Each | None:
    """``parts`` as one loop; None where they differ in more than positions that are evenly spaced."""
    own = loop("k", len(parts))
    try:
        element = _common(parts, own)
    except _DifferentError:
        return None
    return None if element is parts[0] else Each(element, (own,))


class _DifferentError(Exception):
    """Parts that are not the same but for a position."""


def _common(values: Sequence[Any], own: Loop) -> Any:
    """What all ``values`` are, with the axis of the loop where they differ."""
    first = values[0]
    if all(v is first for v in values):
        return first
    if any(type(v) is not type(first) for v in values):
        raise _DifferentError
    if isinstance(first, Const):
        return _position([v.value for v in values], own.axis)
    if isinstance(first, tuple):
        if any(len(v) != len(first) for v in values):
            raise _DifferentError
        return tuple([_common(items, own) for items in zip(*values, strict=True)])
    if is_dataclass(first) and not isinstance(first, (type, Expr, Reducer)):
        fields = [[getattr(v, name) for v in values] for name in names_of(first)]
        kind: Any = type(first)
        return kind(*[_common(items, own) for items in fields])
    if isinstance(first, Expr) or any(v != first for v in values):
        raise _DifferentError
    return first


def _position(values: Sequence[Any], axis: Axis) -> Expr:
    """Evenly spaced integers as a form of the position in the loop."""
    step = values[1] - values[0] if all(type(v) is int for v in values) else 0
    if not step or any(v != values[0] + n * step for n, v in enumerate(values)):
        raise _DifferentError
    return from_linear(Linear({axis: step}, values[0]))


def with_opposites(statements: Sequence[AnyStatement], text: Callable[[Node], str]) -> list[AnyStatement]:
    """``statements``, those of one function, in which no difference is computed in both orders.

    Args:
        statements: those of one function.
        text: of a node, which orders what is not slices of one array.
    """
    sources = [s.source for s in statements if isinstance(s, Statement)]
    pairs = {n.args: n for n in nodes_below(*sources) if isinstance(n, Apply) and _is_difference(n)}
    turned = {
        n for (a, b), n in pairs.items() if a is not b and (b, a) in pairs and not _is_forward(a, b, text)
    }
    if not turned:
        return list(statements)

    def rule(node: Node) -> Node:
        match node:
            case Apply(op, (a, b)) if op is SUBTRACT and node in turned:
                return Apply(SUBTRACT, (Number(0.0), Apply(SUBTRACT, (b, a))))
            case Apply(op, (a, Number(int(value)))) if op is POWER and value & 1 == 0:
                return Apply(op, (_either(a), Number(value)))
            case Apply(op, (a,)) if op is ABS:
                return Apply(op, (_either(a),))
            case Apply(op, (a, b)) if op is MULTIPLY and a is b:
                return Apply(op, (_either(a), _either(b)))
        return node

    return [
        replace(s, source=rewritten(s.source, rule)) if isinstance(s, Statement) else s for s in statements
    ]


def _is_difference(node: Apply) -> bool:
    return node.op is SUBTRACT and is_float(node.dtype) and all(a.shape for a in node.args)


def _either(node: Node) -> Node:
    """``node``, or what it is the opposite of."""
    match node:
        case Apply(op, (Number(0.0), Apply(inner) as other)) if op is SUBTRACT and inner is SUBTRACT:
            return other
    return node


def _is_forward(a: Node, b: Node, text: Callable[[Node], str]) -> bool:
    """Whether ``a - b`` is the order that stays, in both passes: of two slices of one array the later one less the earlier one."""
    match a, b:
        case View(array, Index() as first), View(other, Index() as second) if array is other:
            if (starts := _starts(first)) != (others := _starts(second)):
                return starts > others
    return text(a) < text(b)


def _starts(index: Index) -> list[int]:
    return [
        (known(e.start) or 0) if isinstance(e, Range) and e.start is not None else 0 for e in index.entries
    ]


def with_masked_once(statements: Sequence[AnyStatement], names: Names) -> list[AnyStatement]:
    """``statements`` in which choices read the arrays that extrema before them read, masked by the same conditions."""
    named: dict[Apply, Name] = {}
    found: list[AnyStatement] = []
    for n, s in enumerate(statements):
        if isinstance(s, Statement):
            for own, array in _reduced(s.source):
                if own not in named and any(_choices(own, later) for later in statements[n + 1 :]):
                    target = names.new(f"{array.identifier}_masked")
                    found.append(Statement(s.scope, target, own))
                    named[own] = Name(target, own.shape, own.kind)
            for masked in named:
                s = replace(s, source=_reading(s, masked, named[masked]))
        found.append(s)
    return found


def _reduced(source: Node) -> Iterator[tuple[Apply, Name]]:
    """The arrays with names of which ``source`` takes extrema where a condition holds, as it reads them."""
    for node in nodes_below(source) if Reduced in source.kinds else ():
        if isinstance(node, Reduced) and node.function in ("max", "min"):
            match node.array:
                case Apply(op, (_, Name() as array, Number())) as own if op is SELECT:
                    yield own, array


def _choices(own: Apply, statement: AnyStatement) -> list[Apply]:
    """The choices of ``statement`` by the condition of ``own`` that read the array that this masks, each at its place."""
    if not isinstance(statement, Statement):
        return []
    test, array, _ = own.args
    choices = [
        n for n in nodes_below(statement.source) if isinstance(n, Apply) and n.op is SELECT and n is not own
    ]
    return [n for n in choices if n.args[0] is test and _reads(n.args[1], array)]


def _reads(node: Node, array: Node) -> bool:
    """Whether an element of ``node`` is made of the one of ``array`` at its place."""
    return node is array or (isinstance(node, (Apply, Cast)) and any(_reads(o, array) for o in node.operands))


def _reading(statement: Statement, own: Apply, masked: Name) -> Node:
    """The source of ``statement`` with ``masked`` in place of ``own``, and of the array that this masks where the same condition chooses."""
    table: dict[Node, Node] = {own: masked}
    for node in _choices(own, statement):
        test, taken, other = node.args
        table[node] = Apply(SELECT, (test, _with(taken, own.args[1], masked), other))
    return replaced(statement.source, table)


def _with(node: Node, array: Node, masked: Name) -> Node:
    if node is array:
        return masked
    if not isinstance(node, (Apply, Cast)):
        return node
    return replaced(node, {o: _with(o, array, masked) for o in node.operands})
