"""Values that are kept where they are computed: barriers, which keep XLA from fusing a value with each of its readers, and calls in their place where it drops barriers.

Pieces that one other tensor reads, element by element, are put together before that. XLA writes pieces into one array in place, unless a loop over all elements reads
it: it then makes them part of that loop, where each element asks which piece it is in. That is two to four times the time of writing them and reading them again,
more if the loop calls ``tanh`` or ``exp``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call
from jaxte.lang.limits import AGAIN, MANY_ELEMENTS, MOST_TERMS
from jaxte.lang.operators import COMPARISONS, SELECT
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.scalars.times import FunctionTimes, times_of
from jaxte.lang.walk import all_of, reads_of
from jaxte.lower.arrays.counts import elements
from jaxte.lower.arrays.data import DynamicUpdate, Updated
from jaxte.lower.arrays.elementwise import Apply, Kept, Name, Number
from jaxte.lower.arrays.loops import Joined, MapOver, Sums
from jaxte.lower.arrays.node import Node, nodes_below, replaced
from jaxte.lower.arrays.products import Combined, Convolution, Cumulative, Einsum, ReduceWindow
from jaxte.lower.arrays.views import NEW, Index, Pad, Repeat, Reshape, Tile, Transpose, View
from jaxte.lower.code.vocabulary import AnyStatement, Statement, with_sources
from jaxte.lower.rules.pieces import pieces_of
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute, Tensor

_BY_THEMSELVES = (Combined, Convolution, DynamicUpdate, Einsum, Kept, MapOver, ReduceWindow, Sums, Updated)


def behind_barrier(statement: AnyStatement, by_call: bool) -> AnyStatement:
    """``statement`` with its value kept out of what reads it; as it is where XLA makes it by itself.

    ``by_call`` where XLA drops barriers before it fuses loops.
    """
    if (
        not isinstance(statement, Statement)
        or isinstance(statement.source, Name)
        or _is_made_alone(statement.source)
    ):
        return statement
    return _kept(statement, by_call)


def _kept(statement: Statement, by_call: bool) -> Statement:
    return replace(statement, source=Kept(statement.source, "apart" if by_call else "barrier"))


def held(statements: list[AnyStatement], by_call: bool) -> str:
    """The name of what the last of ``statements`` is, computed once; what is another tensor in whole is that one, kept where it is computed."""
    *before, last = statements
    if isinstance(last, Statement) and isinstance(last.source, Name):
        source = last.source.identifier
        for n in range(len(before) - 1, -1, -1):
            if before[n].target == source:
                statements.pop()
                statements[n] = behind_barrier(before[n], by_call)
                return source
        # an argument, which may have been computed in the same program as this
        statements[-1] = _kept(last, by_call)
    else:
        statements[-1] = behind_barrier(last, by_call)
    return last.target


def without_barrier(source: Node) -> Node:
    """``source`` where XLA weighs by itself what it computes again: without what keeps it from being fused."""
    while isinstance(source, Kept) and source.how != "constant":
        source = source.array
    return source


def with_calls(statements: Sequence[AnyStatement]) -> list[AnyStatement]:
    """``statements`` with a call in place of each barrier that keeps what is expensive, so that XLA drops none that matters.

    Of windows of what is computed in place, as ``exp(-x[i + a, j + b] ** 2)``; cheap ones are as well computed again.
    """
    made = {own.target: own.source for own in statements if isinstance(own, Statement)}

    def by_call(source: Node) -> Node:
        if not isinstance(source, Kept) or source.how != "barrier":
            return source
        below = nodes_below(source.array)
        made_of = (made.get(n.identifier, n) if isinstance(n, Name) else n for n in below)
        expensive = any(_is_expensive(n) for own in made_of for n in nodes_below(own))
        return Kept(source.array, "apart") if expensive else source

    return with_sources(statements, by_call)


def read_by_one(order: Iterable[Tensor], returned: frozenset[Tensor]) -> frozenset[Tensor]:
    """The tensors among those computed in ``order`` that one other reads, at its own axes only, and no caller.

    A part of a stack is none of them: the loop of the stack asks each element which part it is in anyway.
    """
    times: Counter[Tensor] = Counter(returned)
    moved: set[Tensor] = set()
    for reader in order:
        if isinstance(reader, Compute):
            times.update(reader.inputs)
            moved |= {
                r.tensor for r in reads_of(reader.body) if not all(isinstance(i, Axis) for i in r.indices)
            }
            moved |= _stacked(reader)
    return frozenset(t for t, n in times.items() if n == 1 and t not in moved and t not in returned)


def _stacked(reader: Compute) -> set[Tensor]:
    """What ``reader`` reads at one position of an axis alone, beside what it reads at the others."""
    found: set[Tensor] = set()
    for node in all_of(Call, reader.body):
        parts = pieces_of(node, Scope(reader.axes)) if node.op is SELECT else None
        if parts is not None and all(known(box.count) == 1 for box, _ in parts):
            found |= {read.tensor for _, part in parts for read in reads_of(part)}
    return found


def put_together(statement: AnyStatement) -> AnyStatement:
    """``statement`` with its value computed before what reads it, if that is an array into which pieces are written."""
    if isinstance(statement, Statement) and isinstance(statement.source, Updated):
        return replace(statement, source=Kept(statement.source, "apart"))
    return statement


def keep_functions(statements: list[AnyStatement], lines: Sequence[AnyStatement]) -> None:
    """Puts what ``lines`` surround with zeros, or repeat, behind a call where one of ``statements`` computes it by what is expensive.

    XLA computes what is padded in the loop of the pad, with a condition for each element and not in vectors: ``tanh`` takes three to five times as long there.
    What is tiled it computes at each element of what reads the tiles: it asks whether a broadcast stands between the two, and a tile is a reshape of one.
    """
    sources = [own.source for own in lines if isinstance(own, Statement)]
    read = {name for node in nodes_below(*sources) if (name := _read_whole(node))}
    for n, own in enumerate(statements) if read else ():
        if isinstance(own, Statement) and own.target in read and _is_function(_parts(own, statements[:n])):
            statements[n] = behind_barrier(own, by_call=True)


def with_numbers_first(statements: list[AnyStatement], lines: Sequence[AnyStatement]) -> list[AnyStatement]:
    """``lines`` with functions of numbers computed before the loops that read them, and so those of ``statements`` that they read.

    XLA writes a sine of the time into the loop of the field it is added to. LLVM takes it out again unless the function branches, as those do which take much longer than ``exp``.
    """
    arrays = [
        own for own in lines if isinstance(own, Statement) and not own.source.is_tuple and own.source.shape
    ]
    read = {n.identifier for own in arrays for n in nodes_below(own.source) if isinstance(n, Name)}
    for n, own in enumerate(statements) if read else ():
        if isinstance(own, Statement) and own.target in read and _is_number_by_branches(own.source):
            statements[n] = replace(own, source=Kept(own.source, "first"))
    tables = {id(own): {n: Kept(n, "first") for n in _outermost_numbers(own.source)} for own in arrays}
    return [
        replace(own, source=replaced(own.source, tables[id(own)]))
        if isinstance(own, Statement) and tables.get(id(own))
        else own
        for own in lines
    ]


def _outermost_numbers(source: Node) -> list[Node]:
    """The numbers in ``source`` that functions make which branch; of those within each other the outermost."""
    found: list[Node] = []
    stack, seen = [source], {source}
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and _is_number_by_branches(node):
            found.append(node)
            continue
        if isinstance(node, Kept):
            continue
        new = [n for n in node.operands if n not in seen]
        seen.update(new)
        stack += new
    return found


def _is_number_by_branches(source: Node) -> bool:
    """Whether ``source`` is a number that is not known, made by a function that branches."""
    if source.is_tuple or source.shape or isinstance(source, Kept):
        return False
    below = nodes_below(source)
    return any(isinstance(n, Name) for n in below) and any(
        _is_expensive(n) and times_of(n.op.name) >= AGAIN for n in below if isinstance(n, Apply)
    )


def with_functions_apart(statements: Sequence[AnyStatement]) -> list[AnyStatement]:
    """``statements`` with a call around the functions that pieces side by side repeat along other dimensions, as both halves of a rotated vector do the cosines of its angles.

    XLA asks a loop whether it reads an element again and again before it computes a function in it, and sees none through pieces that are joined.
    """

    read: set[str] = set()
    found: list[AnyStatement] = []
    for own in reversed(statements):
        joins = isinstance(own, Statement) and (Joined in own.source.kinds or own.target in read)
        if joins:
            assert isinstance(own, Statement)
            below = nodes_below(own.source)
            read |= {n.identifier for n in below if isinstance(n, Name)}
            spread = [n.array for n in below if isinstance(n, View) and _adds_dimensions(n)]
            table = {n: Kept(n, "apart") for n in spread if _is_expensive(n) and _is_function([n])}
            found.append(replace(own, source=replaced(own.source, table)) if table else own)
        else:
            found.append(own)
    return found[::-1]


def with_padded_apart(statements: Sequence[AnyStatement], times: FunctionTimes) -> list[AnyStatement]:
    """``statements`` with a call around what they surround with zeros, where that are many functions.

    In a loop that asks each element whether it is padded XLA on the CPU computes so many in vectors no more: 16 of ``tanh`` beside 16 others take 6.5 ms of 65,536 elements and
    0.9 behind a call, 8 of ``softplus`` of 16,384 4.7 and 0.7.
    """
    found: list[AnyStatement] = []
    for n, own in enumerate(statements):
        if isinstance(own, Statement):
            padded = [
                v.array for v in nodes_below(own.source) if isinstance(v, View) and isinstance(v.step, Pad)
            ]
            table = {
                a: Kept(a, "apart")
                for a in padded
                if _takes_many(replace(own, source=a), statements[:n], times)
            }
            own = replace(own, source=replaced(own.source, table)) if table else own
        found.append(own)
    return found


def _takes_many(own: Statement, before: Sequence[AnyStatement], times: FunctionTimes) -> bool:
    """Whether many functions of many elements are computed for ``own``."""
    if isinstance(own.source, Kept) or elements(own.source.shape) < MANY_ELEMENTS:
        return False
    called = [n for n in nodes_below(*_parts(own, before)) if isinstance(n, Apply) and _is_expensive(n)]
    return sum(times.of(n.op.name) for n in called) >= MOST_TERMS


def _adds_dimensions(view: View) -> bool:
    return isinstance(view.step, Index) and any(entry is NEW for entry in view.step.entries)


def _parts(own: Statement, before: Sequence[AnyStatement]) -> Sequence[Node]:
    """What ``own`` is written in, in statements of its own tensor: ``tanh`` within a choice may have a name."""
    found = [own.source]
    names = {node.identifier for node in nodes_below(own.source) if isinstance(node, Name)}
    for one in reversed(before):
        if not isinstance(one, Statement) or one.scope != own.scope:
            break
        if one.target in names:
            found.append(one.source)
            names |= {node.identifier for node in nodes_below(one.source) if isinstance(node, Name)}
    return found


def _is_function(sources: Sequence[Node]) -> bool:
    """Whether ``sources`` are made of an array by ``exp`` or its like; of numbers alone they are computed when the program is compiled."""
    below = nodes_below(*sources)
    called = any(_is_expensive(n) and dtypes.is_inexact(n.dtype) for n in below)
    return called and any(isinstance(n, Name) for n in below)


def _read_whole(node: Node) -> str:
    """The name of what ``node`` is with zeros around it, or several times; none where it is something else."""
    match node:
        case View(Name(identifier), Pad() | Tile() | Repeat()):
            return identifier
    return ""


def _is_expensive(node: Node) -> bool:
    if not isinstance(node, Apply) or node.op in COMPARISONS:
        return False
    if node.op.name == "power" and isinstance(node.args[1], Number):
        exponent = node.args[1].value
        return isinstance(exponent, complex) or exponent != int(exponent)
    return not TABLE[node.op.name].cheap


def _is_made_alone(node: Node) -> bool:
    """Whether XLA makes ``node``, or what it is a part of or the same elements in another shape, by itself."""
    while isinstance(node, View) and (
        isinstance(node.step, (Index, Reshape)) or node.step == Transpose((1, 0))
    ):
        node = node.array
    forwards = isinstance(node, Cumulative) and not node.reverse and node.function in ("sum", "prod")
    return forwards or isinstance(node, _BY_THEMSELVES)
