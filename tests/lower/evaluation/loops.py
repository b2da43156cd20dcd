"""The values of loops, turn by turn, and of what is made of their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from jaxte.lower.arrays import loops
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.node import Node
from jaxte.lower.recurrences.replays import restarts
from jaxte.meaning.rounding import converted, widened
from tests.lower.evaluation.frame import Frame, Rules, Value
from tests.lower.evaluation.products import combined

AnyLoop = loops.Loop | loops.Choices | loops.Parts


def _each(node: loops.Each, at: Frame) -> Value:
    return [turn.value(node.element) for turn in _turns(node.loops, at)]


def _turns(own: Sequence[AnyLoop], at: Frame) -> Iterator[Frame]:
    """A frame for each turn, those of the last loop the fastest."""
    if not own:
        yield at
        return
    for frame in _of_one(own[0], at):
        yield from _turns(own[1:], frame)


def _of_one(own: AnyLoop, at: Frame) -> Iterator[Frame]:
    match own:
        case loops.Loop(axis, step, backwards):
            positions = range(int(axis.lo), int(axis.hi), step)
            for position in reversed(positions) if backwards else positions:
                yield at.inside({}, {axis: position})
        case loops.Choices(axes, rows):
            for row in rows:
                yield at.inside({}, dict(zip(axes, row, strict=True)))
        case loops.Parts(names, arrays, places, count):
            values = zip(at.values(arrays), places, strict=True)
            identifiers = [n.identifier for n in names if isinstance(n, Name)]
            for parts in zip(*(np.split(v, count, n) for v, n in values), strict=True):
                yield at.inside(dict(zip(identifiers, parts, strict=True)))


def _parts(nodes: Sequence[Node], at: Frame) -> list[np.ndarray]:
    """The arrays that ``nodes`` are, all of a loop in its place."""
    found: list[np.ndarray] = []
    for node in nodes:
        value = at.value(node)
        found += list(value) if isinstance(node, (loops.Each, loops.Items)) else [value]
    return found


def _joined(node: loops.Joined, at: Frame) -> Value:
    return np.concatenate(_parts(node.parts, at), node.axis)


def _stacked(node: loops.Stacked, at: Frame) -> Value:
    return np.stack(_parts(node.parts, at), node.axis)


def _total(node: loops.Total, at: Frame) -> Value:
    return converted(np.asarray(sum(widened(v) for v in _parts((node.parts,), at))), node.kind)


def _folded(node: loops.Folded, at: Frame) -> Value:
    first, *rest = _parts(node.parts, at)
    state = [first]
    for own in rest:
        state = combined(node.reducer, state, [own])
    return state[0]


def _tuple(node: loops.Tuple, at: Frame) -> Value:
    return tuple(at.values(node.items))


def _item(node: loops.Item, at: Frame) -> Value:
    return np.asarray(at.value(node.values)[node.position])


def _items(node: loops.Items, at: Frame) -> Value:
    return list(at.value(node.values))


def _joined_items(node: loops.JoinedItems, at: Frame) -> Value:
    rows = [at.value(own) for own in node.tuples]
    return np.concatenate([row[n] for n in range(len(rows[0])) for row in rows], node.axis)


def _sums(node: loops.Sums, at: Frame) -> Value:
    return [
        converted(np.asarray(widened(v).sum(node.axes)), node.parts.kind) for v in _parts((node.parts,), at)
    ]


def _map_over(node: loops.MapOver, at: Frame) -> Value:
    function = at.functions[node.function]
    return all_turns([function(np.asarray(element)) for element in at.value(node.array)])


def _scanned(node: loops.Scanned, at: Frame) -> Value:
    return _run(node.function, node.starts, node.elements, at, node.reverse)[1]


def _carried(node: loops.Carried, at: Frame) -> Value:
    return _run(node.function, node.starts, (node.elements,), at, node.reverse)


def _run(
    function: str, starts: Sequence[Node], elements: Sequence[Node], at: Frame, reverse: bool = False
) -> tuple[Value, Value]:
    """What ``function`` carries on, and what it returns beside that for each of ``elements``."""
    state = _one_or_all(at.values(starts))
    arrays = at.values(elements)
    positions = range(len(arrays[0]))
    found: dict[int, Value] = {}
    for n in reversed(positions) if reverse else positions:
        state, found[n] = at.functions[function](state, _one_or_all([np.asarray(a[n]) for a in arrays]))
    return state, all_turns([found[n] for n in positions])


def _binomial(node: loops.Binomial, at: Frame) -> Value:
    forward = restarts(node.steps, node.slots)[0]
    state, handed = _one_or_all(at.values(node.starts)), {}
    for t in range(node.steps):
        handed[forward[t]] = state
        state, _ = at.functions[node.function](state, np.asarray(t, "int32"))
    nothing = _mapped(np.zeros_like, state)
    return state, all_turns([handed.get(n, nothing) for n in range(node.slots + 1)])


def _replayed(node: loops.Replayed, at: Frame) -> Value:
    _, taken, first, offset, into = restarts(node.steps, node.slots)
    kept = _one_or_all(at.values(node.kept))
    held = {n: _mapped(partial(_at, n), kept) for n in range(node.slots + 1)}
    so_far, ends = _one_or_all(at.values(node.starts)), _one_or_all(at.values(node.ends))
    behind, rows = [ends] * (1 + node.ahead), {}
    for t in range(node.steps - 1, -1, -1):
        state = held[taken[t]]
        for q in range(first[t], t):
            held[into[offset[t] + q - first[t]]] = state
            state, _ = at.functions[node.again](state, np.asarray(q, "int32"))
        so_far, rows[t] = at.functions[node.back](so_far, np.asarray(t, "int32"), state, *behind)
        behind = [state, *behind[:-1]]
    return so_far, all_turns([rows[t] for t in range(node.steps)])


def _at(number: int, array: Value) -> Value:
    return np.asarray(array[number])


def _mapped(function: Callable[[Value], Value], value: Value) -> Value:
    return tuple(map(function, value)) if isinstance(value, tuple) else function(value)


def _one_or_all(values: Sequence[Value]) -> Value:
    return values[0] if len(values) == 1 else tuple(values)


def all_turns(results: Sequence[Value]) -> Value:
    """The results of all turns along a dimension of their own: of each array of a tuple, where they are tuples."""
    if isinstance(results[0], tuple):
        return tuple(map(all_turns, zip(*results, strict=True)))
    return None if results[0] is None else np.stack(results)


RULES: Rules = {
    loops.Each: _each,
    loops.Joined: _joined,
    loops.Stacked: _stacked,
    loops.Total: _total,
    loops.Folded: _folded,
    loops.Tuple: _tuple,
    loops.Item: _item,
    loops.Items: _items,
    loops.JoinedItems: _joined_items,
    loops.Sums: _sums,
    loops.MapOver: _map_over,
    loops.Scanned: _scanned,
    loops.Carried: _carried,
    loops.Binomial: _binomial,
    loops.Replayed: _replayed,
}
