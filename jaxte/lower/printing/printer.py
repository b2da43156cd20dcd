"""The text of array programs: each node as a Python expression, with how strongly it binds."""

from __future__ import annotations

import keyword
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import singledispatchmethod

from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import ONE, Axis, Call, Const, Expr, Var
from jaxte.lang.scalar_table import TABLE
from jaxte.lang.scalars import CALL, SIGN
from jaxte.lang.text import text as shown
from jaxte.lang.walk import postorder
from jaxte.lower.arrays import data, leaves, loops, operations
from jaxte.lower.arrays.node import Node, extents_in, nodes_below
from jaxte.lower.arrays.steps import (
    ALL,
    Entry,
    Index,
    New,
    Only,
    Pad,
    Range,
    Repeat,
    Reshape,
    Tile,
    Transpose,
)
from jaxte.lower.printing.combiner import combiner_source
from jaxte.lower.printing.numbers import Written, dtype_text, number_text, parenthesised, tuple_text

_FROM_THE_FRONT = "wrap_negative_indices=False"  # positions below 0 are out of range


class Printer:
    """Writes nodes and extents, with symbolic sizes under the identifiers that the function gives them."""

    def __init__(self, names: Mapping[Var, str]) -> None:
        self._names = names
        self._written: dict[Node, Written] = {}
        self._variables: dict[Axis, str] = {}  # of the loops around what is written now

    def text(self, item: Node | Expr) -> str:
        """The text of a node, or of an extent."""
        return (self.write(item) if isinstance(item, Node) else self.size(item))[0]

    def write(self, node: Node) -> Written:
        """The text of a node, and how strongly it binds."""
        if self._variables:  # what is in a loop is written with its variables
            return self._node(node)
        if node not in self._written:
            self._written[node] = self._node(node)
        return self._written[node]

    def atom(self, node: Node) -> str:
        """The text of a node as it can stand before a dot or a bracket."""
        return parenthesised(self.write(node))

    # --- extents

    def size(self, extent: Expr) -> Written:
        memo: dict[Expr, Written] = {}
        for node in postorder(extent):
            match node:
                case Const(value):
                    memo[node] = str(value), CALL if int(value) >= 0 else SIGN  # type: ignore[arg-type]
                case Var():
                    memo[node] = self._size_name(node), CALL
                case Axis():
                    memo[node] = self._variables[node], CALL
                case Call(op, args) if op.name in ("maximum", "minimum"):
                    memo[node] = f"{op.name[:3]}({', '.join(memo[a][0] for a in args)})", CALL
                case Call(op, args):
                    memo[node] = TABLE[op.name].code.write(*(memo[a] for a in args))
                case _:
                    raise LoweringError(
                        f"`{shown(extent)}` is no size: it must be made of integers and te.var sizes"
                    )
        return memo[extent]

    def _size_name(self, size: Var) -> str:
        if size not in self._names:
            raise LoweringError(
                f"the size {size.name} is the extent of no input, so that no array tells it; "
                f"give an input an axis of extent {size.name}"
            )
        return self._names[size]

    def shape(self, extents: Sequence[Expr]) -> str:
        return tuple_text([self.text(e) for e in extents])

    # --- nodes

    @singledispatchmethod
    def _node(self, node: Node) -> Written:
        raise AssertionError(f"{type(node).__name__} has no text")

    @_node.register
    def _(self, node: leaves.Name) -> Written:
        return node.identifier, CALL

    @_node.register
    def _(self, node: leaves.Number) -> Written:
        return number_text(node.value)

    @_node.register
    def _(self, node: leaves.Size) -> Written:
        return self.size(node.extent)

    @_node.register
    def _(self, node: leaves.Typed) -> Written:
        return f"{dtype_text(node.own_dtype)}({self.text(node.number)})", CALL

    @_node.register
    def _(self, node: leaves.Full) -> Written:
        shape, dtype = self.shape(node.extents), dtype_text(node.own_dtype)
        value = node.number.value if isinstance(node.number, leaves.Number) else None
        if value in (0, 1):
            return f"jnp.{'ones' if value else 'zeros'}({shape}, {dtype})", CALL
        return f"jnp.full({shape}, {self.text(node.number)}, {dtype})", CALL

    @_node.register
    def _(self, node: leaves.Arange) -> Written:
        bounds = [self.text(node.stop)]
        if node.start or node.step != 1:
            bounds.insert(0, str(node.start))
        if node.step != 1:
            bounds.append(str(node.step))
        return _call("jnp.arange", *bounds, dtype=node.own_dtype and dtype_text(node.own_dtype))

    @_node.register
    def _(self, node: operations.View) -> Written:
        own, step = node.array, node.step
        match step:
            case Index(entries):
                return f"{self.atom(own)}[{self._entries(entries)}]", CALL
            case Pad(widths, mode):
                pairs = [f"({self.text(a)}, {self.text(b)})" for a, b in widths]
                shown = pairs[0] if len(pairs) == 1 else tuple_text(pairs)
                return _call("jnp.pad", self.text(own), shown, mode="" if mode == "zeros" else f'"{mode}"')
            case Reshape(shape):
                return f"{self.atom(own)}.reshape({', '.join(map(self.text, shape)) or '()'})", CALL
            case Transpose(order):
                moved = "T" if order == (1, 0) else f"transpose({', '.join(map(str, order))})"
                return f"{self.atom(own)}.{moved}", CALL
            case Repeat(axis, times):
                return _call("jnp.repeat", self.text(own), self.text(times), axis=str(axis))
            case Tile(axis, times, ndim):
                counts = [self.text(times) if n == axis else "1" for n in range(ndim)]
                return _call("jnp.tile", self.text(own), counts[0] if ndim == 1 else tuple_text(counts))
        raise AssertionError(step)

    def _entries(self, entries: Sequence[Entry]) -> str:
        """What stands between brackets; whole dimensions at the end are left out where no new one is among them."""
        shown = list(entries)
        if not any(isinstance(e, New) for e in shown):
            while len(shown) > 1 and shown[-1] is ALL:
                shown.pop()
        return ", ".join(map(self._entry, shown))

    def _entry(self, entry: Entry) -> str:
        match entry:
            case New():
                return "None"
            case Only():
                return "0"
            case Range(start, stop, step):
                first = "" if start is None else self.text(start)
                last = "" if stop is None else self.text(stop)
                return f"{first}:{last}{'' if step == 1 else f':{step}'}"
        assert isinstance(entry, Expr)
        return self.text(entry)

    @_node.register
    def _(self, node: operations.Broadcast) -> Written:
        return _call("jnp.broadcast_to", self.text(node.array), self.shape(node.extents))

    @_node.register
    def _(self, node: operations.Spread) -> Written:
        widths = [f"({self.text(a)}, {self.text(b)}, {n})" for a, b, n in node.widths]
        return _call("lax.pad", self.text(node.array), self.text(node.fill), tuple_text(widths))

    @_node.register
    def _(self, node: loops.Joined) -> Written:
        return _call("jnp.concatenate", self._listed(node.parts), axis=str(node.axis) if node.axis else "")

    @_node.register
    def _(self, node: loops.Stacked) -> Written:
        return _call("jnp.stack", self._listed(node.parts), axis=str(node.axis))

    def _listed(self, parts: Sequence[Node]) -> str:
        if len(parts) == 1 and isinstance(parts[0], loops.Items):
            return self.text(parts[0])
        return f"[{', '.join(map(self.text, parts))}]"

    @_node.register
    def _(self, node: loops.Each) -> Written:
        before = self._variables
        taken = self._names_in(node)
        for own in node.loops:
            for axis in (
                own.axes
                if isinstance(own, loops.Choices)
                else [own.axis]
                if isinstance(own, loops.Loop)
                else []
            ):
                self._variables = {**self._variables, axis: _free_name(axis.name, taken)}
                taken.add(self._variables[axis])
        ranges = " ".join(map(self._loop, node.loops))
        written = f"{self.text(node.element)} {ranges}"
        self._variables = before
        return written, 0

    def _names_in(self, node: Node) -> set[str]:
        """The names that the text of ``node`` mentions, but for variables of loops."""
        found = set(self._variables.values())
        for below in nodes_below(node):
            if isinstance(below, leaves.Name):
                found.add(below.identifier)
            found |= {
                self._size_name(n) for e in extents_in(below) for n in postorder(e) if isinstance(n, Var)
            }
        return found

    def _loop(self, own: loops.Loop | loops.Choices | loops.Parts) -> str:
        match own:
            case loops.Loop(axis, step, backwards):
                bounds = str(axis.hi) if step == 1 else f"0, {axis.hi}, {step}"
                turns = f"range({bounds})"
                return f"for {self._variables[axis]} in {f'reversed({turns})' if backwards else turns}"
            case loops.Choices(axes, rows):
                listed = tuple_text(tuple_text(map(str, row)) for row in rows)
                return f"for {', '.join(self._variables[a] for a in axes)} in {listed}"
            case loops.Parts(names, arrays, places, count):
                split = [
                    _call("jnp.split", self.text(a), str(count), axis=str(n) if n else "")[0]
                    for a, n in zip(arrays, places, strict=True)
                ]
                return f"for {', '.join(map(self.text, names))} in zip({', '.join(split)})"

    @_node.register
    def _(self, node: loops.Total) -> Written:
        return f"sum({self.text(node.parts)})", CALL

    @_node.register
    def _(self, node: loops.Folded) -> Written:
        return _call("functools.reduce", combiner_source(node.reducer), self._listed(node.parts))

    @_node.register
    def _(self, node: loops.Tuple) -> Written:
        return tuple_text(map(self.text, node.items)), CALL

    @_node.register
    def _(self, node: operations.Apply) -> Written:
        return TABLE[node.op.name].code.write(*map(self.write, node.args))

    @_node.register
    def _(self, node: operations.Cast) -> Written:
        return f"{self.atom(node.array)}.astype({dtype_text(node.own_dtype)})", CALL

    @_node.register
    def _(self, node: operations.Einsum) -> Written:
        exact = '"highest"' if node.exact else ""
        return _call("jnp.einsum", f'"{node.spec}"', *map(self.text, node.factors), precision=exact)

    @_node.register
    def _(self, node: operations.Reduced) -> Written:
        axes = node.axes or ()
        return _call(
            f"jnp.{node.function}",
            self.text(node.array),
            axis="" if node.axes is None else str(axes[0] if len(axes) == 1 else axes),
            dtype=node.own_dtype and dtype_text(node.own_dtype),
            initial="" if node.start is None else self.text(node.start),
            keepdims="True" if node.keep else "",
        )

    @_node.register
    def _(self, node: operations.Position) -> Written:
        function = f"lax.{node.function}"
        return _call(function, self.text(node.array), axis=str(node.axis), index_dtype="jnp.int32")

    @_node.register
    def _(self, node: operations.Combined) -> Written:
        operands, starts = ([self.text(n) for n in own] for own in (node.arrays, node.starts))
        listed = [own[0] if len(own) == 1 else tuple_text(own) for own in (operands, starts)]
        return _call("lax.reduce", *listed, combiner_source(node.reducer), tuple_text(map(str, node.axes)))

    @_node.register
    def _(self, node: operations.Fourier) -> Written:
        array, points, axes = self.text(node.array), node.points, node.axes
        if len(points) > 1:
            return _call(f"jnp.fft.{node.function}n", array, str(points), str(axes))
        axis = "" if axes[0] == len(node.array.shape) - 1 else str(axes[0])
        return _call(f"jnp.fft.{node.function}", array, str(points[0]), axis=axis)

    @_node.register
    def _(self, node: operations.Convolution) -> Written:
        named = {"window_strides": str(node.strides), "padding": tuple_text(map(self.shape, node.padding))}
        for name, own in (("lhs_dilation", node.lhs_dilation), ("rhs_dilation", node.rhs_dilation)):
            named[name] = str(own) if any(n != 1 for n in own) else ""
        named["dimension_numbers"] = tuple_text(f'"{d}"' for d in node.dimensions)
        named["feature_group_count"] = "" if node.groups is ONE else self.text(node.groups)
        return _call("lax.conv_general_dilated", self.text(node.lhs), self.text(node.rhs), **named)

    @_node.register
    def _(self, node: operations.Tensordot) -> Written:
        return _call("jnp.tensordot", self.text(node.lhs), self.text(node.rhs), "1")

    @_node.register
    def _(self, node: operations.Padded) -> Written:
        pairs = [f"({self.text(a)}, {self.text(b)})" for a, b in node.widths]
        widths = pairs[0] if len(pairs) == 1 else tuple_text(pairs)
        return _call("jnp.pad", self.text(node.array), widths, constant_values=self.text(node.fill))

    @_node.register
    def _(self, node: operations.ReduceWindow) -> Written:
        named = {"window_dimensions": str(node.sizes), "window_strides": str(node.strides)}
        named["padding"] = tuple_text(map(self.shape, node.padding))
        for name, own in (("base_dilation", node.spacing), ("window_dilation", node.dilation)):
            named[name] = str(own) if any(n != 1 for n in own) else ""
        given = self.text(node.array), self.text(node.start), _WINDOWS[node.function]
        return _call("lax.reduce_window", *given, **named)

    @_node.register
    def _(self, node: operations.Cumulative) -> Written:
        module = "jnp" if node.function in ("sum", "prod") and not node.reverse else "lax"
        reverse = "True" if node.reverse else ""
        function = f"{module}.cum{node.function}"
        return _call(function, self.text(node.array), axis=str(node.axis), reverse=reverse)

    @_node.register
    def _(self, node: operations.Prefixes) -> Written:
        reverse = "True" if node.reverse else ""
        # Backwards, lax.associative_scan passes later elements first; compositions of maps do not commute.
        own = node.reducer
        own = replace(own, lhs=own.rhs, rhs=own.lhs) if node.reverse else own
        arrays = self._one_or_all(node.arrays)
        return _call(
            "lax.associative_scan", combiner_source(own), arrays, axis=str(node.axis), reverse=reverse
        )

    def _one_or_all(self, nodes: Sequence[Node]) -> str:
        return self.text(nodes[0]) if len(nodes) == 1 else tuple_text(map(self.text, nodes))

    @_node.register
    def _(self, node: loops.Scanned) -> Written:
        reverse = "True" if node.reverse else ""
        arrays = self._one_or_all(node.starts), self._one_or_all(node.elements)
        return _call("lax.scan", node.function, *arrays, reverse=reverse, unroll=str(node.unroll))[
            0
        ] + "[1]", CALL

    @_node.register
    def _(self, node: loops.Carried) -> Written:
        return _call("lax.scan", node.function, self._one_or_all(node.starts), self.text(node.elements))

    @_node.register
    def _(self, node: data.DynamicSlice) -> Written:
        source, moving = self.text(node.array), [n for n, s in enumerate(node.starts) if s is not None]
        if len(moving) == 1:
            (axis,) = moving
            at = self._start(node, axis)
            length, place = str(node.sizes[axis]), str(axis) if axis else ""
            return _call("lax.dynamic_slice_in_dim", source, at, length, axis=place)
        starts = tuple_text(self._start(node, n) for n in range(len(node.starts)))
        return _call("lax.dynamic_slice", source, starts, tuple_text(map(str, node.sizes)))

    def _start(self, node: data.DynamicSlice, axis: int) -> str:
        start = node.starts[axis]
        if start is None:
            return "jnp.int32(0)" if node.typed else "0"
        return self.text(start)

    @_node.register
    def _(self, node: data.DynamicUpdate) -> Written:
        given = map(self.text, (node.array, node.part, node.start))
        return _call("lax.dynamic_update_slice_in_dim", *given, axis=str(node.axis))

    @_node.register
    def _(self, node: data.Sorting) -> Written:
        return _call(f"jnp.{node.function}", self.text(node.array))

    @_node.register
    def _(self, node: data.Take) -> Written:
        return _call("jnp.take", self.text(node.array), self.text(node.positions), axis=str(node.axis))

    @_node.register
    def _(self, node: operations.Flip) -> Written:
        return _call("jnp.flip", self.text(node.array), axis=str(node.axes))

    @_node.register
    def _(self, node: operations.MapOver) -> Written:
        return _call("lax.map", node.function, self.text(node.array))

    @_node.register
    def _(self, node: loops.Sums) -> Written:
        start = f"[{dtype_text(node.parts.dtype)}(0)] * {node.count}"
        add = "lambda a, b: [x + y for x, y in zip(a, b)]"
        return _call("lax.reduce", f"[{self.text(node.parts)}]", start, add, str(node.axes))

    @_node.register
    def _(self, node: loops.Items) -> Written:
        return self.write(node.values)

    @_node.register
    def _(self, node: operations.Item) -> Written:
        return f"{self.atom(node.values)}[{node.position}]", CALL

    @_node.register
    def _(self, node: operations.Kept) -> Written:
        return _call(_KEPT[node.how], self.text(node.array))

    @_node.register
    def _(self, node: data.Gather) -> Written:
        base, where = self.atom(node.array), self._positions(node.positions)
        if not node.mode:
            return f"{base}[{where}]", CALL
        fill = "" if node.fill is None else self.text(node.fill)
        mode = f'mode="{node.mode}"' + (f", fill_value={fill}" if fill else "")
        return f"{base}.at[{where}].get({mode}, {_FROM_THE_FRONT})", CALL

    @_node.register
    def _(self, node: data.Scatter) -> Written:
        known = "".join(f", {flag}=True" for flag in node.flags)
        where, values = self._positions(node.positions), self.text(node.values)
        call = f'{node.method}({values}, mode="{node.mode}", {_FROM_THE_FRONT}{known})'
        return f"{self.atom(node.array)}.at[{where}].{call}", CALL

    def _positions(self, positions: Sequence[Node | None]) -> str:
        shown = list(positions)
        while len(shown) > 1 and shown[-1] is None:
            shown.pop()
        return ", ".join(":" if p is None else self.text(p) for p in shown)

    @_node.register
    def _(self, node: data.OneHot) -> Written:
        where, extent = self.text(node.positions), self.text(node.extent)
        return _call("jax.nn.one_hot", where, extent, dtype=dtype_text(node.own_dtype))

    @_node.register
    def _(self, node: data.Updated) -> Written:
        return _call("lax.dynamic_update_slice", self.text(node.array), self.text(node.part), str(node.start))

    @_node.register
    def _(self, node: data.Call) -> Written:
        return _call(node.function, *map(self.text, node.args))

    @_node.register
    def _(self, node: data.Output) -> Written:
        outputs = self.text(node.outputs)
        return f"{outputs}[{node.position}] if isinstance({outputs}, (tuple, list)) else {outputs}", 0


def _free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or the first letter that is not taken."""
    return next(name for name in (wanted, *_LETTERS) if name not in taken and name not in _RESERVED)


_RESERVED = {*keyword.kwlist, "functools", "jax", "jnp", "lax", "range", "reversed", "sum", "zip"}
_LETTERS = "ijklmnpqrstuvwxyzabcdefgh"
_WINDOWS = {
    "sum": "lax.add",
    "prod": "lax.mul",
    "max": "lax.max",
    "min": "lax.min",
    "any": "lax.bitwise_or",
    "all": "lax.bitwise_and",
}
_KEPT = {"barrier": "lax.optimization_barrier", "apart": "_apart", "constant": "lax.stop_gradient"}


def _call(function: str, *arguments: str, **named: str) -> Written:
    """A call; arguments by name are left out where they are empty."""
    listed = [*arguments, *(f"{name}={value}" for name, value in named.items() if value)]
    return f"{function}({', '.join(listed)})", CALL
