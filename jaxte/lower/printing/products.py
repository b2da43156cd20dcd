"""The text of products and reductions."""

from __future__ import annotations

from dataclasses import replace

from jaxte.lang.expr import ONE
from jaxte.lower.arrays import products, reductions
from jaxte.lower.printing.combiner import combiner_source
from jaxte.lower.printing.writer import Rules, Writer, Written, call, dtype_text, tuple_text

_WINDOWS = {
    "sum": "lax.add",
    "prod": "lax.mul",
    "max": "lax.max",
    "min": "lax.min",
    "any": "lax.bitwise_or",
    "all": "lax.bitwise_and",
}


def _einsum(node: products.Einsum, to: Writer) -> Written:
    exact = '"highest"' if node.exact else ""
    return call("jnp.einsum", f'"{node.spec}"', *map(to.text, node.factors), precision=exact)


def _fourier(node: products.Fourier, to: Writer) -> Written:
    array, points, axes = to.text(node.array), node.points, node.axes
    if len(points) > 1:
        return call(f"jnp.fft.{node.function}n", array, str(points), str(axes))
    axis = "" if axes[0] == len(node.array.shape) - 1 else str(axes[0])
    return call(f"jnp.fft.{node.function}", array, str(points[0]), axis=axis)


def _convolution(node: products.Convolution, to: Writer) -> Written:
    named = {"window_strides": str(node.strides), "padding": tuple_text(map(to.shape, node.padding))}
    for name, own in (("lhs_dilation", node.lhs_dilation), ("rhs_dilation", node.rhs_dilation)):
        named[name] = str(own) if any(n != 1 for n in own) else ""
    named["dimension_numbers"] = tuple_text(f'"{d}"' for d in node.dimensions)
    named["feature_group_count"] = "" if node.groups is ONE else to.text(node.groups)
    return call("lax.conv_general_dilated", to.text(node.lhs), to.text(node.rhs), **named)


def _tensordot(node: products.Tensordot, to: Writer) -> Written:
    return call("jnp.tensordot", to.text(node.lhs), to.text(node.rhs), "1")


def _reduced(node: reductions.Reduced, to: Writer) -> Written:
    axes = node.axes or ()
    return call(
        f"jnp.{node.function}",
        to.text(node.array),
        axis="" if node.axes is None else str(axes[0] if len(axes) == 1 else axes),
        dtype=node.own_dtype and dtype_text(node.own_dtype),
        initial="" if node.start is None else to.text(node.start),
        keepdims="True" if node.keep else "",
    )


def _position(node: reductions.Position, to: Writer) -> Written:
    function = f"lax.{node.function}"
    return call(function, to.text(node.array), axis=str(node.axis), index_dtype="jnp.int32")


def _combined(node: reductions.Combined, to: Writer) -> Written:
    operands, starts = ([to.text(n) for n in own] for own in (node.arrays, node.starts))
    listed = [own[0] if len(own) == 1 else tuple_text(own) for own in (operands, starts)]
    return call(
        "lax.reduce",
        *listed,
        combiner_source(node.reducer, of_elements=True),
        tuple_text(map(str, node.axes)),
    )


def _reduce_window(node: reductions.ReduceWindow, to: Writer) -> Written:
    named = {"window_dimensions": str(node.sizes), "window_strides": str(node.strides)}
    named["padding"] = tuple_text(map(to.shape, node.padding))
    for name, own in (("base_dilation", node.spacing), ("window_dilation", node.dilation)):
        named[name] = str(own) if any(n != 1 for n in own) else ""
    given = to.text(node.array), to.text(node.start), _WINDOWS[node.function]
    return call("lax.reduce_window", *given, **named)


def _cumulative(node: reductions.Cumulative, to: Writer) -> Written:
    module = "jnp" if node.function in ("sum", "prod") and not node.reverse else "lax"
    reverse = "True" if node.reverse else ""
    function = f"{module}.cum{node.function}"
    return call(function, to.text(node.array), axis=str(node.axis), reverse=reverse)


def _prefixes(node: reductions.Prefixes, to: Writer) -> Written:
    reverse = "True" if node.reverse else ""
    # Backwards, lax.associative_scan passes later elements first; compositions of maps do not commute.
    own = node.reducer
    own = replace(own, lhs=own.rhs, rhs=own.lhs) if node.reverse else own
    arrays = to.one_or_all(node.arrays)
    return call("lax.associative_scan", combiner_source(own), arrays, axis=str(node.axis), reverse=reverse)


RULES: Rules = {
    products.Einsum: _einsum,
    products.Fourier: _fourier,
    products.Convolution: _convolution,
    products.Tensordot: _tensordot,
    reductions.Reduced: _reduced,
    reductions.Position: _position,
    reductions.Combined: _combined,
    reductions.ReduceWindow: _reduce_window,
    reductions.Cumulative: _cumulative,
    reductions.Prefixes: _prefixes,
}
