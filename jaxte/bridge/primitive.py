"""The primitive of JAX that every jaxte function is: a program as its parameter, and rules that bind programs of the same family.

See docs/design/one-primitive.md for why it is one primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from jaxte.bridge.derived import adjoint_program, batched, linearized
from jaxte.bridge.program import Program
from jaxte.lang.expr import Var
from jaxte.meaning.feeds import bind_sizes, size_value

jaxte_p = Primitive("jaxte")
jaxte_p.multiple_results = True


def bind(program: Program, *arrays: Any) -> list[Any]:
    """The results of ``program``, as one call of the primitive."""
    return jaxte_p.bind(*equally_varying(arrays), program=program)  # type: ignore[no-any-return, no-untyped-call]


def _run(*arrays: Any, program: Program) -> list[Any]:
    """Eagerly: compiled, unless the user asks JAX for operation by operation."""
    if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
        return program(*arrays)
    return program.compiled(*arrays)  # type: ignore[no-any-return]


def _emitted(*arrays: Any, program: Program) -> list[Any]:
    return program(*arrays)


# --- shapes


def _avals(*avals: Any, program: Program) -> list[Any]:
    if any(not isinstance(e, int) for a in avals for e in a.shape):  # symbolic dimensions of jax.export
        structs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
        return [jax.core.ShapedArray(s.shape, s.dtype) for s in jax.eval_shape(program, *structs)]
    like = next((a for a in avals if _is_placed(a)), None)
    return [
        _aval(shape, r.dtype, like) for shape, r in zip(_shapes(program, avals), program.results, strict=True)
    ]


def _shapes(program: Program, avals: Sequence[Any]) -> list[tuple[int, ...]]:
    shapes = [r.shape for r in program.results]
    fixed = all(isinstance(e, int) for shape in shapes for e in shape)
    sizes = {} if fixed else bind_sizes(dict(zip(program.inputs, avals, strict=True)))
    return [tuple(size_value(e, sizes) for e in shape) for shape in shapes]


def _aval(shape: Sequence[int], dtype: str, like: Any) -> Any:
    if like is None:
        return jax.core.ShapedArray(shape, np.dtype(dtype))
    sharding = NamedSharding(like.sharding.mesh, PartitionSpec(*[None] * len(shape)))
    return like.update(shape=shape, dtype=np.dtype(dtype), weak_type=False, sharding=sharding)


def _is_placed(aval: Any) -> bool:
    """Whether ``aval`` says where an array is: on a mesh, or varying over axes of one."""
    return bool(_varying_axes(aval)) or not aval.sharding.mesh.empty


# --- differentiation


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, program: Program) -> tuple[list[Any], list[Any]]:
    perturbed = tuple(n for n in program.differentiable if type(tangents[n]) is not ad.Zero)
    if not perturbed:
        results = bind(program, *primals)
        return results, [_zero(r) for r in results]
    derivative = linearized(program, perturbed)
    found = bind(derivative.saving, *primals)
    every = (*primals, *found)
    results = found[: len(program.results)]
    moved: list[Any] = [_zero(r) for r in results]
    if derivative.reached:
        operands = [every[n] for n in derivative.places]
        dots = bind(derivative.tangents, *operands, *(tangents[n] for n in perturbed))
        for n, dot in zip(derivative.reached, dots, strict=True):
            moved[n] = dot
    return results, moved


def _zero(result: Any) -> Any:
    return ad.Zero(jax.typeof(result).to_tangent_aval())


def _transpose(cotangents: Sequence[Any], *args: Any, program: Program) -> list[Any]:
    wanted = tuple(n for n, a in enumerate(args) if ad.is_undefined_primal(a))
    heads = tuple(n for n, c in enumerate(cotangents) if type(c) is not ad.Zero)
    found: list[Any] = [None] * len(args)
    if not heads:
        return [ad.Zero(a.aval) if ad.is_undefined_primal(a) else None for a in args]
    transpose = adjoint_program(program, wanted, heads)
    operands = [args[n] for n in transpose.operands]
    adjoints = bind(transpose.program, *operands, *(cotangents[n] for n in heads))
    for n, adjoint in zip(wanted, adjoints, strict=True):
        found[n] = adjoint
    return found


# --- batching


def _batch(args: Sequence[Any], dims: Sequence[Any], *, program: Program) -> tuple[list[Any], list[Any]]:
    mapped = [n for n, d in enumerate(dims) if isinstance(d, int)]
    if not mapped:
        return bind(program, *args), [None] * len(program.results)
    arrays, at = list(args), list(dims)
    for n in mapped:
        if program.inputs[n].facts and at[n]:  # facts are about the last axis
            arrays[n], at[n] = jax.numpy.moveaxis(arrays[n], at[n], 0), 0
    extent = arrays[mapped[0]].shape[at[mapped[0]]]
    size = extent if isinstance(extent, int) else Var(str(extent))
    many, out = batched(program, tuple(at), size)
    return bind(many, *arrays), list(out)


# --- shard_map


def equally_varying(arrays: Sequence[Any]) -> Sequence[Any]:
    """Inside ``jax.shard_map``, all arrays varying over the same mesh axes.

    The cotangents of an argument that is the same on every device are summed over the devices, which is the transpose of the cast.
    """
    own = [_varying_axes(jax.typeof(a)) for a in arrays]
    every = frozenset().union(*own)
    if not every:
        return arrays
    missing = [tuple(sorted(every - axes, key=str)) for axes in own]
    return [jax.lax.pcast(a, m, to="varying") if m else a for a, m in zip(arrays, missing, strict=True)]


def _varying_axes(aval: Any) -> frozenset[Any]:
    """The mesh axes that an array varies over, under the names that releases of JAX have for them."""
    manual = getattr(aval, "manual_axis_type", None)
    return manual.varying if manual is not None else getattr(aval, "vma", frozenset())


jaxte_p.def_impl(_run)
jaxte_p.def_abstract_eval(_avals)
mlir.register_lowering(jaxte_p, mlir.lower_fun(_emitted, multiple_results=True))
ad.primitive_jvps[jaxte_p] = _jvp
ad.primitive_transposes[jaxte_p] = _transpose
batching.primitive_batchers[jaxte_p] = _batch
