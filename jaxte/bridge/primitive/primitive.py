"""The primitive of JAX that every jaxte function is: a program as its parameter, and rules that bind programs of the same family.

The programs that a transformation of a program calls are each kept by the program that they come from. See docs/design/one-primitive.md for why it is one primitive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.experimental import jet
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxte.bridge.jaxprs import lowered_jaxpr
from jaxte.bridge.primitive.linearized import Linearized, Transposed, heads_of
from jaxte.bridge.primitive.placement import (
    Places,
    equally_varying,
    is_divided,
    is_explicit,
    is_placed,
    placed,
    places_of,
    unvarying,
    with_axis,
)
from jaxte.bridge.primitive.program import BACKWARD, TANGENT, Program, program
from jaxte.bridge.primitive.sizes import extents_of, own_size
from jaxte.derivatives.forward import reached_from, transposed
from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.derivatives.stand_ins import stand_in
from jaxte.lang.budget import kept
from jaxte.lang.errors import ShapeError
from jaxte.lower.cost.platforms import OTHER, PLATFORMS
from jaxte.lower.program.residuals import add_sizes
from jaxte.meaning.feeds import bind_sizes, result_shape
from jaxte.tensors.shapes import Extent
from jaxte.tensors.tensor import Tensor

Dims = tuple[int | None, ...]


def linearized(source: Program, perturbed: tuple[int, ...]) -> Linearized:
    """The derivative of ``source`` to its inputs at ``perturbed``."""
    return source.kept(("linearized", perturbed), lambda: Linearized(source.closed.renewed, perturbed))


def adjoint_program(source: Program, wanted: tuple[int, ...], heads: tuple[int, ...]) -> Transposed:
    """The transpose of ``source`` in its inputs at ``wanted``, for its results at ``heads``.

    Raises:
        DifferentiationError: ``source`` is not linear in them.
    """

    def make() -> Transposed:
        known = None if source.transpose is None else source.transpose(wanted, heads)
        return _transposed(source.closed, wanted, heads) if known is None else known

    return source.kept(("transposed", wanted, heads), make)


def _transposed(source: Program, wanted: tuple[int, ...], heads: tuple[int, ...]) -> Transposed:
    outputs = [source.outputs[n] for n in heads]
    linear = [source.inputs[n] for n in wanted]
    own = heads_of(outputs)
    why = f"; jax.linear_transpose takes linear functions, and jax.vjp the derivative of {source.label}"
    adjoints = transposed(outputs, linear, own, source.inputs, source.overrides_of(outputs), remedy=why)
    reached = reached_from(adjoints, (*source.inputs, *own))
    saved: dict[Tensor, None] = {t: None for t in source.inputs if t in reached}
    computed = [t for t in reached if t not in saved]
    others = [t for n, t in enumerate(source.inputs) if n not in wanted]
    add_sizes(saved, computed, others, own)
    operands = tuple(n for n, t in enumerate(source.inputs) if t in saved)
    inputs = (*(source.inputs[n] for n in operands), *own)
    made = program(BACKWARD, source.label, inputs, adjoints, source.policy, source.overrides, source.fdiff)
    return Transposed(made, operands)


def batched(source: Program, at: Dims, extent: Extent) -> tuple[Program, Dims]:
    """The program for each position of the axes ``at`` of the inputs, and where its results have that axis."""

    def make() -> tuple[Program, Dims]:
        closed = source.closed
        pairs = list(zip(closed.inputs, at, strict=True))
        table: dict[Tensor, Tensor] = {t: t if n is None else stand_in(t, n, extent) for t, n in pairs}
        where = {table[t]: n for t, n in pairs if n is not None}
        rebuilt = Rebuilt(table, where, extent, closed.every_override)
        made = closed.rebuilt(rebuilt)
        return made, tuple(rebuilt.at.get(t) for t in made.outputs)

    return source.kept(("batched", at, extent), make)


_COMPARISON = re.compile(r"comparison '(.*)' (\S+) '(.*)' is inconclusive")

jaxte_p = Primitive("jaxte")
jaxte_p.multiple_results = True


def bind(program: Program, *arrays: Any, places: Places | None = None) -> list[Any]:
    """The results of ``program``, as one call of the primitive.

    Args:
        places: how results are divided on a mesh of explicit axes, where that does not follow from the arrays.
    """
    return jaxte_p.bind(*equally_varying(arrays), program=program, places=places)  # type: ignore[no-any-return, no-untyped-call]


# --- running


def _run(*arrays: Any, program: Program, places: Places | None) -> list[Any]:
    """Eagerly: compiled, unless the user asks JAX for one operation after the other."""
    if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
        return program(*arrays)
    compiled = program.kept(
        ("compiled", places), lambda: jax.jit(partial(jaxte_p.bind, program=program, places=places))
    )
    return compiled(*arrays)  # type: ignore[no-any-return]


@kept()
def _lower(ctx: Any, *args: Any, platform: str, program: Program, places: Places | None) -> Any:
    """The emitted code for a platform; how it is divided on a mesh of explicit axes is left to XLA within it."""
    program = program.on(platform)
    emitted: Any = program
    if is_divided(ctx.module_context.axis_context):
        emitted = program.divided
    elif not any(map(is_placed, ctx.avals_in)) and (known := program.as_traced(ctx.avals_in)) is not None:
        return lowered_jaxpr(ctx, known, args)
    if any(is_explicit(a) for a in ctx.avals_in):
        emitted = jax.sharding.auto_axes(emitted, out_sharding=[a.sharding for a in ctx.avals_out])
    else:
        ctx = ctx.replace(
            avals_in=list(map(unvarying, ctx.avals_in)), avals_out=list(map(unvarying, ctx.avals_out))
        )
    return mlir.lower_fun(emitted, multiple_results=True)(ctx, *args)


# --- shapes


def _avals(*avals: Any, program: Program, places: Places | None) -> list[Any]:
    if any(not isinstance(e, int) for a in avals for e in a.shape):  # symbolic dimensions of jax.export
        return _of_symbolic(program, avals)
    shapes = _shapes(program, avals)
    dtypes = [jax.dtypes.canonicalize_dtype(np.dtype(r.dtype)) for r in program.results]
    like = next((a for a in avals if is_placed(a)), None)
    if like is None:
        return [jax.core.ShapedArray(s, d) for s, d in zip(shapes, dtypes, strict=True)]
    if not is_explicit(like):
        return [placed(s, d, like) for s, d in zip(shapes, dtypes, strict=True)]
    own = places or (None,) * len(shapes)
    if None in own:
        own = tuple(p or q for p, q in zip(own, places_of(program, avals, shapes), strict=True))
    return [placed(s, d, like, p) for s, d, p in zip(shapes, dtypes, own, strict=True)]


def _of_symbolic(program: Program, avals: Sequence[Any]) -> list[Any]:
    """The types of the results where sizes are those of ``jax.export``."""
    structs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
    if program.name == TANGENT:  # reverse mode transposes it without asking for its code
        own = extents_of([t.shape for t in program.inputs], structs, [r.shape for r in program.results])
        dtypes = [jax.dtypes.canonicalize_dtype(np.dtype(r.dtype)) for r in program.results]
        return [jax.core.ShapedArray(s, d) for s, d in zip(own, dtypes, strict=True)]
    shapes = ", ".join(f"{t.name}: {s.shape}" for t, s in zip(program.inputs, structs, strict=True))
    what = f"{program.label} is traced for symbolic sizes ({shapes})"
    try:
        found = jax.eval_shape(program, *structs)
    except jax.errors.InconclusiveDimensionOperation as error:
        asked = _COMPARISON.search(str(error))
        if asked is None:
            raise
        wanted = f"{asked[1]} {'>=' if asked[2] == '<' else asked[2]} {asked[3]}"
        raise ShapeError(
            f"{what}, of which it has to be known that {wanted}; say so "
            f'where they are made: jax.export.symbolic_shape(..., constraints=["{wanted}"])'
        ) from error
    except TypeError as error:
        if "incompatible shapes" not in str(error):
            raise
        raise ShapeError(
            f"{what}, and parts of the result fit for all of these but the smallest, as far as JAX can tell ({error}); say where they are "
            'made how small they may be: jax.export.symbolic_shape(..., constraints=["n >= 2"])'
        ) from error
    return [jax.core.ShapedArray(s.shape, s.dtype) for s in found]


def _shapes(program: Program, avals: Sequence[Any]) -> list[tuple[int, ...]]:
    shapes = [r.shape for r in program.results]
    fixed = all(isinstance(e, int) for shape in shapes for e in shape)
    sizes = {} if fixed else bind_sizes(dict(zip(program.inputs, avals, strict=True)))
    return [result_shape(program.label, shape, sizes) for shape in shapes]


def _places(arrays: Sequence[Any]) -> Places | None:
    """The shardings of arrays, or of what has their type; None unless they are on a mesh of explicit axes."""
    avals = [a.aval if ad.is_undefined_primal(a) else jax.typeof(a) for a in arrays]
    return tuple(a.sharding for a in avals) if any(map(is_explicit, avals)) else None


# --- differentiation


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, program: Program, places: Places | None
) -> tuple[list[Any], list[Any]]:
    perturbed = tuple(n for n in program.differentiable if type(tangents[n]) is not ad.Zero)
    if not perturbed:
        results = bind(program, *primals, places=places)
        return results, [still(r) for r in results]
    derivative = linearized(program, perturbed)
    found = _with_residuals(derivative, program, primals, places)
    every = (*primals, *found)
    results = found[: len(program.results)]
    moved: list[Any] = [still(r) for r in results]
    if derivative.reached:
        operands = [every[n] for n in derivative.places]
        own = _places([results[n] for n in derivative.reached])
        dots = bind(derivative.tangents, *operands, *(tangents[n] for n in perturbed), places=own)
        for n, dot in zip(derivative.reached, dots, strict=True):
            moved[n] = dot
    return results, moved


def _with_residuals(
    derivative: Linearized, program: Program, primals: Sequence[Any], places: Places | None
) -> list[Any]:
    """The results, then what is kept; apart where one may be known and the other not, as in maps that JAX transposes."""
    apart = derivative.kept_alone
    if apart is None:
        return bind(derivative.saving, *primals, places=places and (*places, *(None,) * len(derivative.kept)))
    still = [a for n, a in enumerate(primals) if n not in derivative.perturbed]
    return [*bind(program, *primals, places=places), *bind(apart, *still)]


def _series(
    primals: Sequence[Any], series: Sequence[Any], *, program: Program, places: Places | None
) -> tuple[list[Any], list[Any]]:
    """Taylor coefficients for ``jax.experimental.jet``: those of the emitted operations."""
    return jet.jet(
        lambda *arrays: program(*arrays), tuple(primals), tuple(map(list, series)), factorial_scaled=False
    )  # type: ignore[no-any-return]


def still(result: Any) -> Any:
    """The tangent of what does not move."""
    return ad.Zero(jax.typeof(result).to_tangent_aval())


def _transpose(cotangents: Sequence[Any], *args: Any, program: Program, places: Places | None) -> list[Any]:
    wanted = tuple(n for n, a in enumerate(args) if ad.is_undefined_primal(a))
    heads = tuple(n for n, c in enumerate(cotangents) if type(c) is not ad.Zero)
    found: list[Any] = [None] * len(args)
    if not heads:
        return [ad.Zero(a.aval) if ad.is_undefined_primal(a) else None for a in args]
    transpose = adjoint_program(program, wanted, heads)
    operands = [args[n] for n in transpose.operands]
    own = _places([args[n] for n in wanted])
    adjoints = bind(transpose.program, *operands, *(cotangents[n] for n in heads), places=own)
    for n, adjoint in zip(wanted, adjoints, strict=True):
        found[n] = adjoint
    return found


# --- batching


def _batch(
    args: Sequence[Any], dims: Sequence[Any], *, program: Program, places: Places | None
) -> tuple[list[Any], list[Any]]:
    mapped = [n for n, d in enumerate(dims) if isinstance(d, int)]
    if not mapped:
        return bind(program, *args, places=places), [None] * len(program.results)
    arrays, at = list(args), list(dims)
    for n in mapped:
        if program.inputs[n].facts and at[n]:  # facts are about the last axis
            arrays[n], at[n] = jax.numpy.moveaxis(arrays[n], at[n], 0), 0
    extent = arrays[mapped[0]].shape[at[mapped[0]]]
    many, out = batched(program, tuple(at), own_size(extent))
    if places is not None:
        places = with_axis(places, out, jax.typeof(arrays[mapped[0]]).sharding.spec[at[mapped[0]]])
    return bind(many, *arrays, places=places), list(out)


jaxte_p.def_impl(_run)
jaxte_p.def_abstract_eval(_avals)
mlir.register_lowering(jaxte_p, partial(_lower, platform=OTHER))
for _name in PLATFORMS:
    mlir.register_lowering(jaxte_p, partial(_lower, platform=_name), platform=_name)
ad.primitive_jvps[jaxte_p] = _jvp
ad.primitive_transposes[jaxte_p] = _transpose
jet_rules: Any = jet.jet_rules
jet_rules[jaxte_p] = _series
batching.primitive_batchers[jaxte_p] = _batch
