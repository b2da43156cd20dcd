"""The text of gathers, scatters, slices at positions that are data, calls, and Pallas kernels with the function of emitted modules that calls one."""

from __future__ import annotations

from jaxte.lang.expr import Expr
from jaxte.lang.scalars.rows import CALL
from jaxte.lower.arrays import data, elementwise
from jaxte.lower.arrays.node import Node
from jaxte.lower.printing.writer import Rules, Writer, Written, call, dtype_text, tuple_text

_FROM_THE_FRONT = "wrap_negative_indices=False"  # positions below 0 are out of range

_INSIDE = {"allow_negative_indices": "False"}  # positions below 0 are moved to 0


def _dynamic_slice(node: data.DynamicSlice, to: Writer) -> Written:
    source, moving = to.text(node.array), [n for n, s in enumerate(node.starts) if s is not None]
    if len(moving) == 1:
        (axis,) = moving
        at = _start(to, node, axis)
        length, place = str(node.sizes[axis]), str(axis) if axis else ""
        return call("lax.dynamic_slice_in_dim", source, at, length, axis=place)
    starts = tuple_text(_start(to, node, n) for n in range(len(node.starts)))
    return call("lax.dynamic_slice", source, starts, tuple_text(map(str, node.sizes)))


def _dynamic_index(node: data.DynamicIndex, to: Writer) -> Written:
    given = to.text(node.array), to.text(node.position)
    return call("lax.dynamic_index_in_dim", *given, axis=str(node.axis), keepdims="False", **_INSIDE)


def _start(to: Writer, node: data.DynamicSlice, axis: int) -> str:
    start = node.starts[axis]
    if start is None:
        return "jnp.int32(0)" if node.typed else "0"
    return _position(to, start)


def _position(to: Writer, node: Node) -> str:
    """A position; one made of sizes is an array, since JAX takes no symbolic size as a position."""
    return call("jnp.asarray", to.text(node))[0] if isinstance(node, elementwise.Size) else to.text(node)


def _dynamic_update(node: data.DynamicUpdate, to: Writer) -> Written:
    given = to.text(node.array), to.text(node.part), _position(to, node.start)
    return call("lax.dynamic_update_slice_in_dim", *given, axis=str(node.axis))


def _gather(node: data.Gather, to: Writer) -> Written:
    base, where = to.atom(node.array), _positions(to, node, unsure=node.mode == data.FILL)
    if not node.mode:
        return f"{base}[{where}]", CALL
    fill = "" if node.fill is None else to.text(node.fill)
    mode = f'mode="{node.mode}"' + (f", fill_value={fill}" if fill else "")
    return f"{base}.at[{where}].get({mode}, {_FROM_THE_FRONT})", CALL


def _scatter(node: data.Scatter, to: Writer) -> Written:
    known = "".join(f", {flag}=True" for flag in node.flags)
    where, values = _positions(to, node, unsure=True), to.text(node.values)
    call = f'{node.method}({values}, mode="{node.mode}", {_FROM_THE_FRONT}{known})'
    return f"{to.atom(node.array)}.at[{where}].{call}", CALL


def _positions(to: Writer, node: data.Gather | data.Scatter, unsure: bool) -> str:
    """The positions of ``node``; ``unsure`` says that what they do out of range counts."""
    given = list(node.positions)
    while len(given) > 1 and given[-1] is None:
        given.pop()
    extents = node.array.shape
    return ", ".join(
        ":" if p is None else _narrowed(to, p, extents[n]) if unsure else _position(to, p)
        for n, p in enumerate(given)
    )


def _narrowed(to: Writer, position: Node, extent: Expr) -> str:
    """A position of 64 bits held at the ends: JAX takes its lower 32 bits, which may be those of an element."""
    own, end = _position(to, position), to.text(extent)
    match position.kind[0]:
        case "int64":
            return call("jnp.clip", own, "-1", end)[0]
        case "uint64":
            return call("jnp.minimum", own, end)[0]
    return own


def _one_hot(node: data.OneHot, to: Writer) -> Written:
    where, extent = to.text(node.positions), to.text(node.extent)
    return call("jax.nn.one_hot", where, extent, dtype=dtype_text(node.own_dtype))


def _if_finite(node: data.IfFinite, to: Writer) -> Written:
    test = f"jnp.isfinite(jnp.sum({to.text(node.tested)}))"
    match node.otherwise:
        case data.Call(function=function, args=()):
            otherwise = function
        case other:
            otherwise = f"lambda: {to.text(other)}"
    return call("lax.cond", test, f"lambda: {to.text(node.array)}", otherwise)


def _updated(node: data.Updated, to: Writer) -> Written:
    return call("lax.dynamic_update_slice", to.text(node.array), to.text(node.part), str(node.start))


def _call(node: data.Call, to: Writer) -> Written:
    return call(node.function, *map(to.text, node.args))


def _output(node: data.Output, to: Writer) -> Written:
    outputs = to.text(node.outputs)
    return f"{outputs}[{node.position}] if isinstance({outputs}, (tuple, list)) else {outputs}", 0


KERNEL = "_kernel"  # no identifier begins with an underscore
PALLAS = "from jax.experimental import pallas as pl"
TRITON = "from jax.experimental.pallas import triton"
_OPTIONS = {
    data.INTERPRETER: {"interpret": "True"},
    data.TRITON: {"compiler_params": "triton.CompilerParams()"},
}
FUNCTION = f'''
def {KERNEL}(tile, size, count, blocks, wholes, windows, results, **options):
    """``tile`` of ``count`` blocks of ``size`` positions, as one Pallas kernel.

    It gets where its block begins, the block of each of ``blocks``, ``wholes``, and ``windows`` as references. Within the kernel
    no array has less than two dimensions.
    """

    def wide(shape):
        return (1,) * (2 - len(shape)) + tuple(shape)

    def each(shape):
        return pl.BlockSpec((None, *shape), lambda n: (n, *(0 for _ in shape)))

    def every(shape):
        return pl.BlockSpec(shape, lambda n: tuple(0 for _ in shape))

    inner = [(size, *a.shape[1:]) for a in blocks]
    shapes = inner + [a.shape for a in wholes]
    cut = [a.reshape(count, *wide(s)) for a, s in zip(blocks, inner)]
    whole = [jnp.reshape(a, wide(jnp.shape(a))) for a in (*wholes, *windows)]
    outer = [(wide(s), d) for s, d in results]

    def kernel(*refs):
        given, made = refs[: -len(results)], refs[-len(results) :]
        read = [ref[...].reshape(s) for ref, s in zip(given, shapes)]
        values = tile(pl.program_id(0) * size, *read, *given[len(shapes) :])
        for ref, value in zip(made, values if len(results) > 1 else [values]):
            ref[...] = value.reshape(ref.shape)

    found = pl.pallas_call(
        kernel,
        grid=(count,),
        in_specs=[each(a.shape[1:]) for a in cut] + [every(a.shape) for a in whole],
        out_specs=[each(s) for s, _ in outer],
        out_shape=[jax.ShapeDtypeStruct((count, *s), d) for s, d in outer],
        **options,
    )(*cut, *whole)
    found = [a.reshape(count, *s) for a, (s, _) in zip(found, results)]
    return found if len(found) > 1 else found[0]
'''


def _loaded(node: data.Loaded, to: Writer) -> Written:
    places = ["0"] if len(node.sizes) == 1 else []
    places += [
        ":" if start is None else call("pl.ds", to.text(start), str(size))[0]
        for start, size in zip(node.starts, node.sizes, strict=True)
    ]
    return f"{to.atom(node.array)}[{', '.join(places)}]", CALL


def _kernel(node: data.Kernel, to: Writer) -> Written:
    made = [f'({to.shape(shape)}, "{dtype}")' for shape, dtype in node.results]
    return call(
        KERNEL,
        node.function,
        str(node.size),
        str(node.count),
        *(f"[{', '.join(map(to.text, arrays))}]" for arrays in (node.blocks, node.wholes, node.windows)),
        f"[{', '.join(made)}]",
        **_OPTIONS.get(node.by, {}),
    )


RULES: Rules = {
    data.DynamicSlice: _dynamic_slice,
    data.DynamicIndex: _dynamic_index,
    data.DynamicUpdate: _dynamic_update,
    data.Gather: _gather,
    data.Scatter: _scatter,
    data.OneHot: _one_hot,
    data.IfFinite: _if_finite,
    data.Updated: _updated,
    data.Call: _call,
    data.Output: _output,
    data.Loaded: _loaded,
    data.Kernel: _kernel,
}
