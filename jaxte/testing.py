"""Checks of gradients: against finite differences, and against ``jax.grad`` of a reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_map, tree_unflatten

from jaxte.bridge.calls.arguments import signature_of
from jaxte.bridge.calls.outputs import is_array, is_static
from jaxte.bridge.functions.evaluate import as_function, placeholders_of
from jaxte.bridge.functions.function import GraphFunction
from jaxte.bridge.functions.function_methods import Function
from jaxte.comparing import against_jax, beside, check_arguments
from jaxte.frontends.jaxpr.raised import Raised
from jaxte.lang.checks import described, no_attribute, several, wants_arguments
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import ArgumentError, DefinitionError, JaxteError
from jaxte.lang.graphs import filled_in
from jaxte.reports import Comparison, Difference, difference_rows, text_table
from jaxte.tensors.tensor import Tensor

_TOLERANCES = {"float64": 1e-10, "complex128": 1e-10, "float16": 2e-2, "bfloat16": 1e-1}


def check_grads(
    fn_or_graph: Callable[..., object] | Tensor | Sequence[Tensor],
    args: Sequence[object],
    order: int = 1,
    rtol: float | None = None,
    eps: float | None = None,
    seed: int = 0,
) -> None:
    """Raises AssertionError if the derived gradients disagree with finite differences.

    A function over a builder is checked in float64, whatever the dtype of ``args`` (64-bit JAX is switched on within);
    a graph in the dtypes that it was defined with, so define it in float64 for a sharp check.

    Args:
        fn_or_graph: a jaxte function, a builder, or Tensors (as a function of their placeholders, in order of
            appearance).
        args: arguments at which to check; points away from kinks.
        order: 1 checks gradients, 2 also gradients of gradients, and so on.
        rtol: greatest relative difference, by default 1e-5 in float64, 2e-2 in float32.
        eps: step of the differences.
        seed: of the random directions.
    """
    if is_array(args) or not isinstance(args, Sequence):
        raise ArgumentError(
            f"the arguments of te.testing.check_grads are {described(args)}; give a tuple, one entry for each parameter"
        )
    if not isinstance(order, int) or order < 1:
        raise ArgumentError(f"the order of te.testing.check_grads is {order!r}; give 1, 2, ...")
    with jax.enable_x64(True):
        function = _as_function(fn_or_graph)
        wide = [] if isinstance(function, GraphFunction) else ["float32", "float16", "bfloat16", "complex64"]
        values = tree_map(lambda a: _widened(a, wide), tuple(args))
        leaves, tree = tree_flatten(values)
        places = [n for n, leaf in enumerate(leaves) if is_array(leaf) and is_inexact(leaf.dtype.name)]
        if not places:
            raise DefinitionError("check_grads: none of the arguments is an array of floating point numbers")

        def flat(*parts: Any) -> tuple[Any, ...]:
            results = tree_flatten(function(*tree_unflatten(tree, filled_in(leaves, places, parts))))[0]
            return tuple(r for r in results if is_inexact(r.dtype.name))

        double = all(leaves[n].dtype.name in ("float64", "complex128") for n in places)
        step, tolerance = eps or (1e-5 if double else 1e-2), rtol or (1e-5 if double else 2e-2)
        rng = np.random.default_rng(seed)
        names = _names(function, tuple(args))
        checked = _Checked([leaves[n] for n in places], [names[n] for n in places], step, rng)
        for now in range(1, order + 1):
            flat = checked.gradients(flat, now, tolerance * 10 ** (now - 1))


def _as_function(fn_or_graph: Any) -> Function:
    if callable(fn_or_graph) and not isinstance(fn_or_graph, Tensor):
        return as_function(fn_or_graph)
    tensors = several(fn_or_graph, Tensor, "what te.testing.check_grads checks", "a function or Tensors")
    return GraphFunction(placeholders_of(tensors), tensors)


def _widened(value: Any, narrow: Sequence[str]) -> Any:
    if not is_array(value):
        return value
    dtype = value.dtype.name
    if dtype not in narrow:
        return jnp.asarray(value)
    return jnp.asarray(value, "complex128" if dtype.startswith("complex") else "float64")


@dataclass(frozen=True)
class _Checked:
    """The arguments at which derivatives are checked, by steps of ``eps`` in random directions."""

    values: Sequence[Any]
    names: Sequence[str]
    eps: float
    rng: np.random.Generator

    def gradients(self, flat: Callable[..., tuple[Any, ...]], order: int, rtol: float) -> Callable[..., Any]:
        """The gradients of ``flat``, the derivative of one order less, once they agree along a random direction with a central difference."""
        values, eps = self.values, self.eps
        heads = [_random(self.rng, r) for r in flat(*values)]

        def gradients(*parts: Any) -> tuple[Any, ...]:
            return jax.vjp(flat, *parts)[1](tuple(heads))

        for place, (value, adjoint) in enumerate(zip(values, gradients(*values), strict=True)):
            direction = _random(self.rng, value)
            sides = [
                flat(*values[:place], value + sign * eps * direction, *values[place + 1 :])
                for sign in (1, -1)
            ]
            difference = sum(_dot(h, (a - b) / (2 * eps)) for h, a, b in zip(heads, *sides, strict=True))
            derived = _dot(adjoint, direction)
            # The terms of the two sums, not the sums, which may cancel, set the scale.
            scale = max(_size(adjoint, direction), abs(difference), 1e-12)
            if not abs(difference - derived) <= rtol * scale:
                raise AssertionError(
                    f"order {order}, argument {self.names[place]}: along a random direction the derived gradient gives {derived:.10g}, "
                    f"the difference quotient {difference:.10g} (relative difference {abs(difference - derived) / scale:.2g}, "
                    f"allowed {rtol:.2g})"
                )
        return gradients


def _random(rng: np.random.Generator, like: Any) -> Any:
    values = rng.standard_normal(like.shape)
    if jnp.iscomplexobj(like):
        values = values + 1j * rng.standard_normal(like.shape)
    return jnp.asarray(values, like.dtype)


def _dot(a: Any, b: Any) -> float:
    return float(np.real(np.sum(np.asarray(a, "complex128") * np.asarray(b, "complex128"))))


def _size(a: Any, b: Any) -> float:
    products = np.asarray(a, "complex128") * np.asarray(b, "complex128")
    return float(np.linalg.norm(products.ravel()))


@wants_arguments
def compare(
    fn: Callable[..., object],
    reference: object,
    *args: object,
    rtol: float | None = None,
    raises: bool = True,
    seed: int = 0,
    order: int = 1,
) -> Comparison:
    """Compares values and gradients of a jaxte function with those of a JAX function; ``te.compare(f, *arrays)`` compares the gradients of a JAX function by jaxte and by JAX.

    The table has errors beside float64 in units of rounding, interleaved times with their spread, compile times, operations, bytes and
    temporaries. With a reference there is a second one: how far the values, and the gradients of the sum of the outputs times random
    numbers, with respect to every array of floating point numbers among the arguments, are from those of the reference.

    Args:
        fn: with a reference, a jaxte function, a builder, or ``te.adjoint(f)`` of a JAX function; without, a JAX function.
        reference: a JAX function of the same arguments and results; without one, the first argument.
        args: arrays, or trees of them.
        rtol: greatest norm of a difference over the norm of the reference; by default 1e-5 for float32.
        raises: whether a disagreement with the reference is an AssertionError.
        seed: of the random numbers.
        order: the highest order of the derivatives that are measured.

    Returns:
        A :class:`Comparison`. Beside a reference, what both take is measured when the comparison is printed, or asked for it.

    Raises:
        ArgumentError: the functions do not take the arguments; none of these is an array of floating point numbers.
        AssertionError: the results differ from those of the reference.

    Example:
        >>> print(te.compare(te.ops.softmax, jax.nn.softmax, x))
    """
    if not callable(fn):
        raise ArgumentError(f"te.compare takes a function and the arguments of a call, not {described(fn)}")
    if not callable(reference):
        return against_jax(fn, (reference, *args), order)
    function: Function | Raised[..., Any] = fn if isinstance(fn, Raised) else as_function(fn)
    for f in (function, reference):
        check_arguments(f, args)
    leaves, tree = tree_flatten(args)
    for leaf in leaves:
        if not (is_array(leaf) or is_static(leaf)):
            raise ArgumentError(f"te.compare: an argument is {described(leaf)}; give arrays")
    names = _names(function, args)
    places = [n for n, leaf in enumerate(leaves) if is_array(leaf) and is_inexact(leaf.dtype.name)]
    rng = np.random.default_rng(seed)
    heads: list[Any] = []

    def pulled(f: Callable[..., Any]) -> tuple[Any, list[Any]]:
        """The results of ``f``, and the gradients of its arguments."""
        outputs, gradients = _results_and_gradients(f, leaves, tree, places, heads, rng)
        return outputs, gradients

    expected, expected_gradients = pulled(reference)
    try:
        found, gradients = pulled(function)
    except JaxteError as error:
        if not isinstance(fn, (Function, Raised)):
            error.append("beside a reference stands a jaxte function, or te.adjoint(f) of a JAX function f")
        raise
    rows = [*_compare_values(found, expected, rtol)]
    for place, got, want in zip(places, gradients, expected_gradients, strict=True):
        rows.append(_difference("gradient", names[place], got, want, rtol))
    comparison = beside(function, reference, args, rows, order)
    if raises and not comparison.agrees:
        table = text_table(difference_rows(rows))
        raise AssertionError(f"{function.__name__} and its reference disagree\n{table}")
    return comparison


def _results_and_gradients(
    f: Callable[..., Any],
    leaves: Sequence[Any],
    tree: Any,
    places: Sequence[int],
    heads: list[Any],
    rng: np.random.Generator,
) -> tuple[Any, list[Any]]:
    def of_floats(*parts: Any) -> tuple[list[Any], Any]:
        results = f(*tree_unflatten(tree, filled_in(leaves, places, parts)))
        return [r for r in tree_flatten(results)[0] if is_inexact(jnp.asarray(r).dtype.name)], results

    outputs, pull, results = jax.vjp(of_floats, *(jnp.asarray(leaves[n]) for n in places), has_aux=True)
    if not heads:
        heads += [_random(rng, output) for output in outputs]
    if [h.shape for h in heads] != [o.shape for o in outputs]:
        return results, [jnp.full(np.shape(leaves[n]), jnp.nan) for n in places]
    return results, list(pull([h.astype(o.dtype) for h, o in zip(heads, outputs, strict=True)]))


def _compare_values(found: Any, expected: Any, rtol: float | None) -> Iterator[Difference]:
    wanted, tree = tree_flatten_with_path(expected)
    got, own_tree = tree_flatten(found)
    if str(own_tree) != str(tree):
        raise AssertionError(f"the results are {own_tree}, those of the reference {tree}")
    for (path, want), value in zip(wanted, got, strict=True):
        yield _difference("value", keystr(path) or "result", value, want, rtol)


def _difference(what: str, name: str, found: Any, expected: Any, rtol: float | None) -> Difference:
    got, want = np.asarray(found), np.asarray(expected)
    if got.shape != want.shape:
        raise AssertionError(f"{what} {name} has shape {got.shape}, that of the reference {want.shape}")
    allowed = rtol if rtol is not None else _TOLERANCES.get(got.dtype.name, 1e-5)
    first, second = (a.astype("complex128").ravel() for a in (got, want))
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0, first - second)
        size = np.linalg.norm(np.where(same & ~np.isfinite(second), 0, second))
    norm = float(np.linalg.norm(gap))
    error = norm / float(size) if size else norm
    largest = float(np.max(np.abs(gap), initial=0.0))
    return Difference(what, name, error if not np.isnan(error) else float("inf"), largest, allowed)


def _names(function: Function | Raised[..., Any], args: tuple[Any, ...]) -> list[str]:
    """A name for each leaf of ``args``: the parameter and the path below it."""
    if isinstance(function, GraphFunction):
        parameters = list(function.inputs.names)
    elif isinstance(function, Raised):
        parameters = list(signature_of(function.f, ()).parameters)
    else:
        parameters = list(getattr(function, "_signature").parameters)  # noqa: B009
    found = []
    for path, _ in tree_flatten_with_path(args)[0]:
        number = path[0].idx
        first = parameters[number] if number < len(parameters) else f"argument {number}"
        found.append(f"{first}{keystr(path[1:])}")
    return found


if not TYPE_CHECKING:  # to which every name that is not above is an error

    def __getattr__(name: str) -> Any:
        raise no_attribute("jaxte.testing", name, ["check_grads", "compare"])
