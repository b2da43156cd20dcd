"""The text of Pallas kernels, and of the function of emitted modules that calls one."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.scalars.rows import CALL
from jaxte.lower.arrays import kernels
from jaxte.lower.arrays.node import Node
from jaxte.lower.printing.writer import Rules, Writer, Written, call

KERNEL = "_kernel"  # no identifier begins with an underscore
PALLAS = "from jax.experimental import pallas as pl"
TRITON = "from jax.experimental.pallas import triton"
_OPTIONS = {
    kernels.INTERPRETER: {"interpret": "True"},
    kernels.TRITON: {"compiler_params": "triton.CompilerParams()"},
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


def _loaded(node: kernels.Loaded, to: Writer) -> Written:
    places = ["0"] if len(node.sizes) == 1 else []
    places += [
        ":" if start is None else call("pl.ds", to.text(start), str(size))[0]
        for start, size in zip(node.starts, node.sizes, strict=True)
    ]
    return f"{to.atom(node.array)}[{', '.join(places)}]", CALL


def _kernel(node: kernels.Kernel, to: Writer) -> Written:
    made = [f'({to.shape(shape)}, "{dtype}")' for shape, dtype in node.results]
    return call(
        KERNEL,
        node.function,
        str(node.size),
        str(node.count),
        *(_listed(to, arrays) for arrays in (node.blocks, node.wholes, node.windows)),
        f"[{', '.join(made)}]",
        **_OPTIONS.get(node.by, {}),
    )


def _listed(to: Writer, arrays: Sequence[Node]) -> str:
    return f"[{', '.join(map(to.text, arrays))}]"


RULES: Rules = {kernels.Loaded: _loaded, kernels.Kernel: _kernel}
