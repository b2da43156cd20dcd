"""A JAX function beside itself with gradients that jaxte derived: errors in units of rounding, times, compile times, operations and bytes."""

from __future__ import annotations

import inspect
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

from jaxte.bridge.calls.outputs import is_array
from jaxte.bridge.functions.function_methods import Function
from jaxte.frontends.jaxpr.adjoint import adjoint
from jaxte.frontends.jaxpr.raised import Raised
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import ArgumentError
from jaxte.lang.graphs import filled_in
from jaxte.reports import Comparison, Difference, Side

_ROUNDS = 7  # of calls, each side once in each


def against_jax(f: Callable[..., Any], args: Sequence[Any], order: int = 1) -> Comparison:
    """Values and gradients of the sum of ``f``'s outputs by ``jax.grad`` and by jaxte, beside both in float64.

    A derivative of a higher ``order`` is the gradient of the one before along a fixed direction.

    The calls of the two are interleaved, so that both meet the same load of the machine.
    """
    if isinstance(f, Function):
        raise ArgumentError(
            f"te.compare: {f.__name__} is a jaxte function, of which jax.grad takes the derived adjoints, too; give a reference of "
            "plain JAX as the second argument"
        )
    _check_order(order)
    check_arguments(f, args)
    if not any(map(_is_floating, tree_leaves(tuple(args)))):
        raise ArgumentError(
            "te.compare: none of the arguments is an array of floating point numbers, to which a gradient is taken"
        )
    sides = _measured({"jax.grad": f, "jaxte": adjoint(f)}, args, order)
    return Comparison(getattr(f, "__name__", "function"), lambda: sides)


def _check_order(order: int) -> None:
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise ArgumentError(
            f"te.compare: order is {order!r}; give 1 for gradients, 2 for second derivatives too, or more"
        )


def check_arguments(f: Callable[..., Any], args: Sequence[Any]) -> None:
    """That a function that says its parameters takes these arguments."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args)
    except TypeError as error:
        bare = signature.replace(
            parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
            return_annotation=signature.empty,
        )
        raise ArgumentError(
            f"te.compare: {getattr(f, '__name__', 'the function')}{bare} is called with {len(args)} "
            f"argument{'s' if len(args) != 1 else ''}: {error}; give all of its arguments after the function and its reference"
        ) from None


def drawn(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> Any:
    """An array of random numbers; of float64 after 64-bit JAX is switched on."""
    if dtype == "int32":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype == "float64":
        jax.config.update("jax_enable_x64", True)
    return jnp.asarray(rng.normal(size=shape), dtype)


def beside(
    fn: Function | Raised[..., Any],
    reference: Callable[..., Any],
    args: Sequence[Any],
    differences: Sequence[Difference],
    order: int,
) -> Comparison:
    """The same of a jaxte function and a JAX function of the same results, measured when it is asked for."""
    _check_order(order)
    functions = {"reference": reference, "jaxte": fn}
    return Comparison(fn.__name__, lambda: _measured(functions, args, order), tuple(differences))


def _measured(
    functions: Mapping[str, Callable[..., Any]], args: Sequence[Any], order: int
) -> tuple[Side, Side]:
    """Both functions with their gradients, beside the first of them in float64; leaves that are no arrays stay as they are."""
    leaves, tree = tree_flatten(tuple(args))
    numbers = [n for n, leaf in enumerate(leaves) if is_array(leaf)]
    arrays = [leaves[n] for n in numbers]
    places = [m for m, array in enumerate(arrays) if _is_floating(array)]

    def of_arrays(f: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            return f(*tree_unflatten(tree, filled_in(leaves, numbers, given)))

        return run

    programs = {side: _with_gradients(of_arrays(f), places, order) for side, f in functions.items()}
    compiled: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for side, program in programs.items():
        start = time.perf_counter()
        compiled[side] = jax.jit(program).lower(*arrays).compile()
        seconds[side] = time.perf_counter() - start
    times: dict[str, list[float]] = {side: [] for side in programs}
    results: dict[str, Any] = {side: jax.block_until_ready(run(*arrays)) for side, run in compiled.items()}
    for _ in range(_ROUNDS):
        for side, run in compiled.items():
            start = time.perf_counter()
            jax.block_until_ready(run(*arrays))
            times[side].append(time.perf_counter() - start)
    with jax.enable_x64(True):
        truth = tree_map(np.asarray, jax.jit(next(iter(programs.values())))(*map(_widened, arrays)))
    plain, own = (_side(s, compiled[s], results[s], truth, times[s], seconds[s]) for s in programs)
    return plain, own


def _with_gradients(function: Callable[..., Any], places: Sequence[int], order: int) -> Callable[..., Any]:
    """The outputs of ``function``, and the gradients of their sum up to an order."""
    numbers = tuple(range(len(places)))

    def run(*args: Any) -> Any:
        def total(*some: Any) -> tuple[Any, Any]:
            outputs = function(*filled_in(args, places, some))
            return sum(jnp.sum(jnp.real(o)) for o in tree_leaves(outputs) if _is_floating(o)), outputs

        if not places:
            return function(*args), ()
        moving = [args[n] for n in places]
        gradients, outputs = jax.grad(total, numbers, has_aux=True)(*moving)
        found, level = [gradients], lambda *some: total(*some)[0]
        for _ in range(order - 1):
            level = _along(jax.grad(level, numbers))
            found.append(jax.grad(level, numbers)(*moving))
        return outputs, *found

    return run


def _along(gradient: Callable[..., Any]) -> Callable[..., Any]:
    """The slope in a fixed direction, from a function that returns gradients."""

    def slope(*some: Any) -> Any:
        return sum(
            jnp.sum(jnp.real(g) * jnp.cos(jnp.arange(g.size)).reshape(g.shape)) for g in gradient(*some)
        )

    return slope


def _side(
    name: str, compiled: Any, found: Any, truth: Any, times: Sequence[float], compile_seconds: float
) -> Side:
    first, _, third = statistics.quantiles(times, n=4)
    counts = compiled.cost_analysis() or {}
    memory = compiled.memory_analysis()
    errors = [_error(own, exact) for own, exact in zip(found, truth, strict=True)]
    return Side(
        name, errors[0], errors[1], statistics.median(times), third - first, compile_seconds,
        counts.get("flops", 0.0), counts.get("bytes accessed", 0.0), getattr(memory, "temp_size_in_bytes", 0),
        tuple(errors[2:]),
    )  # fmt: skip


def _error(found: Any, exact: Any) -> float:
    """The largest difference, in units of rounding of the largest element of each array."""
    errors = [0.0]
    for value, want in zip(tree_leaves(found), tree_leaves(exact), strict=True):
        own = np.asarray(value)
        if _is_floating(own) and own.size:
            unit = float(jnp.finfo(own.dtype).eps) * float(np.max(np.abs(want)))
            errors.append(float(np.max(np.abs(own.astype(want.dtype) - want))) / unit if unit else 0.0)
    return max(errors)


def _is_floating(value: Any) -> bool:
    return is_array(value) and is_inexact(str(value.dtype))


def _widened(value: Any) -> Any:
    if not _is_floating(value):
        return value
    return jnp.asarray(value, "complex128" if str(value.dtype).startswith("complex") else "float64")
