"""The functions of benchmarks/corpus and benchmarks/cases with symbols for the sizes that their files give as numbers.

    PYTHONPATH=.:benchmarks python -m tests.symbolic_corpus [NAME ...]

runs value and gradients of every function of the corpus at the sizes 1, 2, 3, its own and primes, called with ``te.var`` and exported, beside
plain JAX where it computes the same, else beside the same definition for numbers; values beside the interpreter. ``tests/test_corpus_symbolic.py``
runs a part of these.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.case import CORPUS, IDIOMATIC, JAXTE, Case, load, names
from harness.inputs import draw
from jaxte.tensors.structure import topological_order

Extent = tuple[int, dict[str, int]]  # a number, and the factor of each size
DIRECT, EXPORTED = MODES = ("direct", "exported")
SIZES = ("1", "2", "3", "own", "primes")
PRIMES = (7, 11, 13, 17, 19, 23)
_MOST_ASKED = 8  # questions for larger sizes that are followed

# the constraints beside least values that some functions need
STATED = {
    "dct_blocks": ("mod(n, 8) == 0",),
    "turning_taps": ("mod(n, 4) == 0",),
    "unfold": ("h^2 - 4*h + 4 >= 0",),
    "wavelet_db4": ("n >= 2",),
    "ssim": ("n >= 11",),  # StableHLO has no convolution without a window, in plain JAX either
}
# what is refused, and why
REFUSED = {
    # blocks of eight and of four leave the array, whatever the least size is; te.var states no divisor: the shape has to be 8 * te.var("m"), 4 * te.var("m")
    ("dct_blocks", DIRECT): r"asks for larger sizes again and again",
    ("turning_taps", DIRECT): r"asks for larger sizes again and again",
    # a convolution along the batch, whose number of groups is a symbol; plain JAX does not do it either
    ("cross_correlation", EXPORTED): r"Convolutions with non-static strides",
}


def shapes(case: Case, sizes: dict[str, int]) -> list[tuple[int, ...]] | None:
    """The shapes of the arguments; None where the file draws none for these sizes."""
    try:
        return [tuple(a.shape) for a in draw(case.inputs(**sizes))]
    except (ValueError, IndexError, TypeError, ZeroDivisionError):
        return None


def extents(case: Case) -> tuple[list[list[Extent]], list[str]]:
    """Each extent of the arguments as a linear form of the sizes in which it is one, and these sizes."""
    base = dict(case.sizes["tiny"])
    own = shapes(case, base)
    assert own is not None
    found: list[list[Extent]] = [[(extent, {}) for extent in shape] for shape in own]
    sizes = []
    for name, value in base.items():
        near, far = (shapes(case, {**base, name: value + more}) for more in (2, 6))
        steps = _steps(own, near, far)
        if steps is None:
            continue
        sizes.append(name)
        for n, row in enumerate(steps):
            for axis, step in enumerate(row):
                if step:
                    number, factors = found[n][axis]
                    found[n][axis] = number - step * value, {**factors, name: step}
    return found, sizes


def _steps(
    own: Sequence[Any], near: Sequence[Any] | None, far: Sequence[Any] | None
) -> list[list[int]] | None:
    """What each extent grows by with one size; None where that is not the same everywhere, or nothing grows."""
    if near is None or far is None or any(len(a) != len(b) for a, b in zip(own, near, strict=True)):
        return None
    steps = [[(b - a) // 2 for a, b in zip(x, y, strict=True)] for x, y in zip(own, near, strict=True)]
    expected = [[a + 6 * s for a, s in zip(x, row, strict=True)] for x, row in zip(own, steps, strict=True)]
    return steps if any(map(any, steps)) and expected == [list(s) for s in far] else None


def _with(found: Sequence[Sequence[Extent]], of: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The shapes where the sizes are those of ``of``."""
    return [
        tuple(
            number + sum(k * of[s] for s, k in factors.items()) if factors else number
            for number, factors in row
        )
        for row in found
    ]


def loss(f: Callable[..., Any], wanted: tuple[int, ...]) -> Callable[..., Any]:
    """The sum of the sines of what ``f`` returns, and its gradients."""

    def total(*args: Any) -> Any:
        def inner(moving: dict[int, Any]) -> Any:
            own = [moving.get(n, a) for n, a in enumerate(args)]
            return sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(*own)))

        return jax.value_and_grad(inner)({n: args[n] for n in wanted})

    return total


@dataclass(frozen=True)
class Symbolic:
    """A function whose sizes are symbols.

    Attributes:
        both: value and gradients of the loss.
        least: the least sizes with which it is taken.
        stated: what else had to be said of them.
    """

    case: Case
    both: Callable[..., Any]
    least: dict[str, int]
    stated: tuple[str, ...]


def symbolic(name: str, mode: str) -> Symbolic:
    """The function ``name`` for all sizes from the least ones that it is taken with, which the errors say.

    Raises:
        Exception: it is refused.
    """
    case = load(name)
    found, sizes = extents(case)
    least, stated = dict.fromkeys(sizes, 1), list(STATED.get(name, ())) if mode == EXPORTED else []
    make = _direct if mode == DIRECT else _exported
    for _ in range(_MOST_ASKED):
        try:
            return Symbolic(case, make(case, found, least, stated), least, tuple(stated))
        except (te.RangeError, te.ShapeError) as error:
            if not _follow(str(error), least, stated):
                raise
    raise RuntimeError(f"{name} asks for larger sizes again and again: {least}")


def _follow(message: str, least: dict[str, int], stated: list[str]) -> bool:
    """Whether the message names a constraint that is not there yet, which is added."""
    asked = re.search(r'te\.var\("(\w+)", at_least=(\d+)\)', message)
    if asked and asked[1] in least:
        least[asked[1]] = int(asked[2])
        return True
    constraint = re.search(r'constraints=\["(.*?)"\]', message)
    if constraint is None or constraint[1] in stated:
        return False
    plain = re.fullmatch(r"(\w+) - (\d+) >= (\d+)", constraint[1])
    if plain and plain[1] in least:
        least[plain[1]] = int(plain[2]) + int(plain[3])
    else:
        stated.append(constraint[1])
    return True


def _direct(case: Case, found: Sequence[Any], least: dict[str, int], stated: Sequence[str]) -> Any:
    of = {size: te.var(size, at_least=number) for size, number in least.items()}
    arrays = draw(case.inputs_at("tiny"))
    inputs = [
        te.placeholder(shape, str(a.dtype), f"x{n}")
        for n, (shape, a) in enumerate(zip(_with(found, of), arrays, strict=True))
    ]
    results = case.sides[JAXTE](*inputs)
    f = te.function(inputs, list(results) if isinstance(results, (list, tuple)) else results)
    return jax.jit(loss(f, case.differentiated(arrays)))


def _exported(case: Case, found: Sequence[Any], least: dict[str, int], stated: Sequence[str]) -> Any:
    constraints = [f"{size} >= {number}" for size, number in least.items() if number > 1]
    dims = jax.export.symbolic_shape(",".join(least), constraints=[*constraints, *stated])
    arrays = draw(case.inputs_at("tiny"))
    shaped = zip(_with(found, dict(zip(least, dims, strict=True))), arrays, strict=True)
    specs = [jax.ShapeDtypeStruct(shape, a.dtype) for shape, a in shaped]
    traced = jax.jit(loss(te.function(case.sides[JAXTE]), case.differentiated(arrays)))
    return jax.export.export(traced)(*specs).call


def arguments(function: Symbolic, size: str) -> list[Any] | None:
    """Arrays for one of ``SIZES``, or for the least sizes where these are greater; None where the file draws none, or results had no elements."""
    found, sizes = extents(function.case)
    base = function.case.sizes["tiny"]
    wanted = (
        {s: base[s] for s in sizes}
        if size == "own"
        else dict(zip(sizes, PRIMES if size == "primes" else [int(size)] * len(sizes), strict=False))
    )
    of = {s: max(n, function.least[s]) for s, n in wanted.items()}
    if any(not _holds(constraint, of) for constraint in function.stated):
        return None
    try:
        arrays = draw(function.case.inputs(**{**base, **of}))
    except ValueError:  # positions below 0
        return None
    return arrays if [a.shape for a in arrays] == _with(found, of) else None


def _holds(constraint: str, of: dict[str, int]) -> bool:
    known = {"mod": lambda a, b: a % b, "floordiv": lambda a, b: a // b, **of}
    return bool(eval(constraint.replace("^", "**"), {"__builtins__": {}}, known))


def difference(function: Symbolic, args: Sequence[Any]) -> str:
    """Where value or gradients differ from what they should be; nothing where they agree."""
    case, wanted = function.case, function.case.differentiated(args)
    try:
        meant = _meant(case, args)
    except te.IndexExpressionError:  # a division by the number of elements, 0
        return ""
    except te.ShapeError:  # a result of less than no elements
        try:
            function.both(*args)
        except te.FeedError:
            return ""
        return "a result of less than no elements is no error"
    expected = _plain(case, wanted, args, meant)
    for own, other in zip(jax.tree.leaves(function.both(*args)), jax.tree.leaves(expected), strict=True):
        if own.shape != other.shape:
            return f"{own.shape} instead of {other.shape}"
        bound = 2e-3 * (1 + float(np.abs(np.nan_to_num(other)).max(initial=0)))
        if not np.allclose(own, other, rtol=2e-3, atol=bound, equal_nan=True):
            return f"{float(np.abs(np.asarray(own) - np.asarray(other)).max())} apart"
    return ""


def _plain(case: Case, wanted: tuple[int, ...], args: Sequence[Any], meant: float) -> Any:
    """Value and gradients by plain JAX where its value is what is meant, else by the definition for numbers."""
    try:
        found = jax.jit(loss(case.sides[IDIOMATIC], wanted))(*args)
        if np.allclose(found[0], meant, rtol=2e-3, atol=1e-3, equal_nan=True):
            return found
    except (TypeError, ValueError):  # of sizes that are not a multiple of a block
        pass
    found = jax.jit(loss(te.function(case.sides[JAXTE]), wanted))(*args)
    np.testing.assert_allclose(found[0], meant, rtol=2e-3, atol=1e-3)
    return found


def _meant(case: Case, args: Sequence[Any]) -> float:
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{n}") for n, a in enumerate(args)]
    results = case.sides[JAXTE](*inputs)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    read = set(topological_order(results))  # some arrays only tell a size
    fed = {tensor: a for tensor, a in zip(inputs, args, strict=True) if tensor in read}
    return float(sum(np.sum(np.sin(np.asarray(y, "float64"))) for y in te.interpret(results, fed)))


def check(name: str, mode: str, sizes: Sequence[str] = SIZES) -> Iterator[tuple[str, str]]:
    """What differs at each size that has arguments; what is refused as its message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", te.PerformanceWarning)
        function = symbolic(name, mode)
        seen: list[list[tuple[int, ...]]] = []
        for size in sizes:
            args = arguments(function, size)
            if args is not None and [a.shape for a in args] not in seen:
                seen.append([a.shape for a in args])
                yield size, difference(function, args)


def main(wanted: Sequence[str]) -> int:
    """Prints a line for each function and mode; returns how many are wrong."""
    wrong = 0
    for name in wanted or names(CORPUS):
        for mode in MODES:
            try:
                found = dict(check(name, mode))
                bad = {size: what for size, what in found.items() if what}
                shown = f"differs: {bad}" if bad else f"right at {', '.join(found)}"
            except Exception as error:
                expected = REFUSED.get((name, mode))
                bad = {} if expected and re.search(expected, str(error)) else {"refused": str(error)}
                shown = (
                    f"refused{'' if expected else ', unexpectedly'}: {type(error).__name__}: {error}".replace(
                        "\n", " "
                    )
                )
            wrong += bool(bad)
            print(f"{name}, {mode}: {shown}", flush=True)
            jax.clear_caches()
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
