"""The text of loops, of what is made of their parts, and of tuples."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Axis
from jaxte.lang.scalars.rows import CALL
from jaxte.lower.arrays import loops
from jaxte.lower.arrays.node import Node
from jaxte.lower.printing.products import combiner_source
from jaxte.lower.printing.writer import Rules, Writer, Written, call, dtype_text, tuple_text


def _joined(node: loops.Joined, to: Writer) -> Written:
    return call("jnp.concatenate", _listed(to, node.parts), axis=str(node.axis) if node.axis else "")


def _stacked(node: loops.Stacked, to: Writer) -> Written:
    return call("jnp.stack", _listed(to, node.parts), axis=str(node.axis))


def _listed(to: Writer, parts: Sequence[Node]) -> str:
    if len(parts) == 1 and isinstance(parts[0], loops.Items):
        return to.text(parts[0])
    return f"[{', '.join(map(to.text, parts))}]"


def _each(node: loops.Each, to: Writer) -> Written:
    axes = [axis for own in node.loops for axis in _variables(own)]
    with to.variables(axes, node):
        ranges = " ".join(_loop(to, own) for own in node.loops)
        return f"{to.text(node.element)} {ranges}", 0


def _variables(own: loops.Loop | loops.Choices | loops.Parts) -> tuple[Axis, ...]:
    match own:
        case loops.Loop(axis):
            return (axis,)
        case loops.Choices(axes):
            return axes
    return ()


def _loop(to: Writer, own: loops.Loop | loops.Choices | loops.Parts) -> str:
    match own:
        case loops.Loop(axis, step, backwards):
            bounds = str(axis.hi) if step == 1 else f"0, {axis.hi}, {step}"
            turns = f"range({bounds})"
            return f"for {to.text(axis)} in {f'reversed({turns})' if backwards else turns}"
        case loops.Choices(axes, rows):
            listed = tuple_text(tuple_text(map(str, row)) for row in rows)
            return f"for {', '.join(map(to.text, axes))} in {listed}"
        case loops.Parts(names, arrays, places, count):
            split = [
                call("jnp.split", to.text(a), str(count), axis=str(n) if n else "")[0]
                for a, n in zip(arrays, places, strict=True)
            ]
            turns = f"zip({', '.join(split)})" if len(split) > 1 else split[0]
            return f"for {', '.join(map(to.text, names))} in {turns}"


def _total(node: loops.Total, to: Writer) -> Written:
    if node.at_once:
        return f"{ADDED}(({to.text(node.parts)}), {node.at_once})", CALL
    return f"sum({to.text(node.parts)})", CALL


def _folded(node: loops.Folded, to: Writer) -> Written:
    return call("functools.reduce", combiner_source(node.reducer), _listed(to, node.parts))


def _tuple(node: loops.Tuple, to: Writer) -> Written:
    return tuple_text(map(to.text, node.items)), CALL


def _scanned(node: loops.Scanned, to: Writer) -> Written:
    arrays = to.one_or_all(node.starts), to.one_or_all(node.elements)
    scan, _ = call("lax.scan", node.function, *arrays, **_way(node))
    return f"{scan}[1]", CALL


def _carried(node: loops.Carried, to: Writer) -> Written:
    return call("lax.scan", node.function, to.one_or_all(node.starts), to.text(node.elements), **_way(node))


def _way(node: loops.Scanned | loops.Carried) -> dict[str, str]:
    """From which end a loop runs, and how many of its steps are one, where that is said."""
    return {"reverse": "True" if node.reverse else "", "unroll": str(node.unroll) if node.unroll > 1 else ""}


def _binomial(node: loops.Binomial, to: Writer) -> Written:
    return call("_kept", node.function, to.one_or_all(node.starts), str(node.steps), str(node.slots))


def _replayed(node: loops.Replayed, to: Writer) -> Written:
    arrays = map(to.one_or_all, (node.starts, node.kept, node.ends))
    return call(
        "_replayed", node.again, node.back, *arrays, str(node.steps), str(node.slots), str(node.ahead)
    )


def _sums(node: loops.Sums, to: Writer) -> Written:
    start = f"[{dtype_text(node.parts.dtype)}(0)] * {node.count}"
    add = "lambda a, b: [x + y for x, y in zip(a, b)]"
    return call("lax.reduce", f"[{to.text(node.parts)}]", start, add, str(node.axes))


def _items(node: loops.Items, to: Writer) -> Written:
    return to.write(node.values)


def _joined_items(node: loops.JoinedItems, to: Writer) -> Written:
    turns = f"zip({', '.join(map(to.text, node.tuples))})"
    items = f"[item for items in {turns} for item in items]"
    return call("jnp.concatenate", items, axis=str(node.axis) if node.axis else "")


def _item(node: loops.Item, to: Writer) -> Written:
    return f"{to.atom(node.values)}[{node.position}]", CALL


def _map_over(node: loops.MapOver, to: Writer) -> Written:
    return call("lax.map", node.function, to.text(node.array))


ADDED = "_added"
RULES: Rules = {
    loops.Joined: _joined,
    loops.Stacked: _stacked,
    loops.Each: _each,
    loops.Total: _total,
    loops.Folded: _folded,
    loops.Tuple: _tuple,
    loops.Scanned: _scanned,
    loops.Carried: _carried,
    loops.Binomial: _binomial,
    loops.Replayed: _replayed,
    loops.Sums: _sums,
    loops.Items: _items,
    loops.JoinedItems: _joined_items,
    loops.Item: _item,
    loops.MapOver: _map_over,
}
