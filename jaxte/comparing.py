"""A JAX function beside itself with gradients that jaxte derived: errors in units of rounding, times, compile times, operations and bytes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

from jaxte.bridge.calls.arrays import is_array
from jaxte.bridge.functions.function_methods import Function
from jaxte.frontends.jaxpr.adjoint import adjoint
from jaxte.frontends.jaxpr.raised import Raised
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import ArgumentError, JaxteError
from jaxte.lang.identity import filled_in

_ROUNDS = 7  # of calls, each side once in each


@dataclass(frozen=True)
class Side:
    """One of the two programs.

    Attributes:
        name: "jaxte", or what it is compared with: "jax.grad", or "reference".
        value, gradient: the largest error beside the same in float64, in units of rounding of the largest element.
        higher: the same of the derivatives of order 2 and above, as far as they were asked for.
        seconds, spread: the median of the calls, and the distance between their quartiles.
        compile_seconds: tracing, deriving and compiling.
        flops, accessed, temporaries: XLA's counts of operations, and of bytes.
    """

    name: str
    value: float
    gradient: float
    seconds: float
    spread: float
    compile_seconds: float
    flops: float
    accessed: float
    temporaries: int
    higher: tuple[float, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The result of ``te.compare(f, *args)``, and of ``te.compare(fn, reference, *args).timed()``; it prints itself as a table."""

    name: str
    sides: tuple[Side, Side]

    @property
    def speed(self) -> float:
        """How many times as fast jaxte is."""
        plain, own = self.sides
        return plain.seconds / own.seconds

    def rows(self) -> list[list[str]]:
        """The table, its head first."""
        head = [
            self.name,
            "value",
            "gradient",
            *(f"order {n + 2}" for n in range(len(self.sides[0].higher))),
            "time",
            "spread",
            "compile",
            "Mflop",
            "MB accessed",
            "MB temporaries",
        ]
        found = [head]
        for side in self.sides:
            found.append(
                [side.name, f"{side.value:.1f} ulp", f"{side.gradient:.1f} ulp", *(f"{e:.1f} ulp" for e in side.higher), f"{side.seconds * 1e3:.3g} ms", f"{side.spread * 1e3:.2g} ms",
                 f"{side.compile_seconds:.2f} s", f"{side.flops / 1e6:,.1f}", f"{side.accessed / 1e6:,.1f}", f"{side.temporaries / 1e6:,.1f}"]
            )  # fmt: skip
        return found

    def chart(self, ax: Any = None) -> Any:
        """What jaxte takes of what the other side takes, as bars: below 1 is less. Axes of matplotlib (the extra ``draw``).

        Example:
            >>> te.compare(loss, x).chart().figure.savefig("compared.png")
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise JaxteError("chart() needs matplotlib: pip install 'jaxte[draw]'") from error
        plain, own = self.sides
        names = ("seconds", "compile_seconds", "flops", "accessed", "temporaries")
        shares = [getattr(own, n) / getattr(plain, n) if getattr(plain, n) else 1.0 for n in names]
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 2.4))
        # bars begin at 1 on a logarithmic axis, where a half is as long as twice
        lengths = [max(share, 1e-3) - 1.0 for share in shares]
        bars = ax.barh(
            ["time", "compiling", "operations", "bytes accessed", "temporaries"], lengths, left=1.0
        )
        ax.set_xscale("log")
        ax.margins(x=0.15)
        ax.bar_label(bars, [f"{share:.2g}" for share in shares], padding=3)
        ax.axvline(1.0, color="gray", linestyle="--")
        ax.invert_yaxis()
        ax.set_title(f"{self.name}: {own.name} / {plain.name}")
        return ax

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.rows())


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows of a table, its head first, as a notebook shows them."""
    head, *rest = [[escape(cell) for cell in row] for row in rows]
    lines = [
        "".join(f"<th>{c}</th>" for c in head),
        *("".join(f"<td>{c}</td>" for c in row) for row in rest),
    ]
    return f'<table class="jaxte">{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


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
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise ArgumentError(
            f"te.compare: order is {order!r}; give 1 for gradients, 2 for second derivatives too, or more"
        )
    return _measured(getattr(f, "__name__", "function"), {"jax.grad": f, "jaxte": adjoint(f)}, args, order)


def drawn(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> Any:
    """An array of random numbers; of float64 after 64-bit JAX is switched on."""
    if dtype == "int32":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype == "float64":
        jax.config.update("jax_enable_x64", True)
    return jnp.asarray(rng.normal(size=shape), dtype)


def beside(
    fn: Function | Raised[..., Any], reference: Callable[..., Any], args: Sequence[Any], order: int = 1
) -> Comparison:
    """The same of a jaxte function and a JAX function of the same results."""
    return _measured(fn.__name__, {"reference": reference, "jaxte": fn}, args, order)


def _measured(
    name: str, functions: Mapping[str, Callable[..., Any]], args: Sequence[Any], order: int
) -> Comparison:
    """Both functions with their gradients, beside the first of them in float64; leaves that are no arrays stay as they are."""
    leaves, tree = tree_flatten(tuple(args))
    numbers = [n for n, leaf in enumerate(leaves) if is_array(leaf)]
    arrays = [leaves[n] for n in numbers]
    places = [m for m, array in enumerate(arrays) if _is_floating(array)]
    if not places:
        raise ArgumentError(
            "te.compare: none of the arguments is an array of floating point numbers, to which a gradient is taken"
        )

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
    return Comparison(name, (plain, own))


def _with_gradients(function: Callable[..., Any], places: Sequence[int], order: int) -> Callable[..., Any]:
    """The outputs of ``function``, and the gradients of their sum up to an order."""
    numbers = tuple(range(len(places)))

    def run(*args: Any) -> Any:
        def total(*some: Any) -> tuple[Any, Any]:
            outputs = function(*filled_in(args, places, some))
            return sum(jnp.sum(jnp.real(o)) for o in tree_leaves(outputs) if _is_floating(o)), outputs

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
