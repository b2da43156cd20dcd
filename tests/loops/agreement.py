"""Whether a function under ``te.loops`` agrees with the same function on NumPy arrays, and its gradients with differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jaxte as te
from jaxte.lower.program.plan import lower
from tests.agreement import inputs_of, pulled
from tests.lower.evaluation.program import evaluate_program

_STEP = 1e-6


def run_python(fn: Callable[..., Any], args: Sequence[Any], changed: Sequence[int] | None = None) -> Any:
    """What ``fn`` returns on copies of NumPy arrays; without a ``return``, the arrays that it writes, or those at ``changed``."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    found = fn(*own)
    if found is None:
        if changed is None:
            changed = written(fn, args)
        found = tuple(own[n] for n in changed)
        found = found[0] if len(found) == 1 else found
    return found


def written(fn: Callable[..., Any], args: Sequence[Any]) -> list[int]:
    """Which of ``args`` the function writes."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    fn(*own)
    return [
        n
        for n, (a, b) in enumerate(zip(own, args, strict=True))
        if isinstance(a, np.ndarray) and not np.array_equal(a, b)
    ]


def leaves(value: Any) -> list[np.ndarray]:
    every = [np.asarray(v) for v in (value if isinstance(value, tuple) else (value,))]
    return [v if v.dtype.kind == "c" else np.asarray(v, "float64") for v in every]


def assert_agrees(
    fn: Callable[..., Any], args: Sequence[Any], tolerance: float = 1e-9, **options: Any
) -> None:
    """Values beside NumPy, and gradients along one direction beside central differences; ``options`` are those of ``te.loops``."""
    own, moving = te.loops(fn, **options), _moving(args)
    case = _Case(fn, args)

    def of_moving(*given: Any) -> Any:
        return own(*_filled(args, moving, given))

    head = tuple(case.heads) if case.is_tuple else case.heads[0]
    found = pulled(of_moving, [args[n] for n in moving], head)
    case.check(found[0] if case.is_tuple else found[:1], found[1:], tolerance)


def assert_nodes_agree(fn: Callable[..., Any], args: Sequence[Any], tolerance: float = 1e-9) -> None:
    """The same of what the nodes of the emitted program mean, in NumPy: a tenth of the time, as nothing is compiled."""
    case = _Case(fn, args)
    given = [n for n, a in enumerate(args) if isinstance(a, np.ndarray)]
    every = [te.placeholder(args[n].shape, name=f"x{n}", dtype=str(args[n].dtype)) for n in given]
    built = te.loops(fn).builder(*_filled(args, given, every))
    inputs = [every[given.index(n)] for n in _moving(args)]
    outputs = list(built) if isinstance(built, tuple) else [built]
    heads = [
        te.placeholder(outputs[n].shape, name=f"H{n}", dtype=str(case.heads[n].dtype)) for n in case.smooth
    ]
    adjoints = te.gradient([outputs[n] for n in case.smooth], inputs, head=heads)
    results = [*outputs, *(adjoints[n] for n in range(len(inputs)))]
    lowered = lower("both", inputs_of(results), results)
    drawn = [case.heads[n] for n in case.smooth]
    feeds = dict(zip([*every, *heads], [*(args[n] for n in given), *drawn], strict=True))
    found = evaluate_program(lowered, [feeds[t] for _, t in lowered.params])
    case.check(found[: len(outputs)], found[len(outputs) :], tolerance)


def assert_agrees_or_refused(fn: Callable[..., Any], args: Sequence[Any]) -> str | None:
    """Of a program that te.loops refuses, why; any other agrees in its nodes. Where NumPy raises an error, it has to be refused."""
    try:
        run_python(fn, args)
    except Exception as error:  # whatever NumPy and Python raise
        every = [te.placeholder(a.shape, name=f"x{n}", dtype=str(a.dtype)) for n, a in enumerate(args)]
        try:
            te.loops(fn).builder(*every)
        except te.DefinitionError as refused:
            return str(refused).splitlines()[0]
        raise AssertionError(f"te.loops takes what NumPy refuses: {error}") from error
    try:
        assert_nodes_agree(fn, args)
    except te.DefinitionError as refused:
        return str(refused).splitlines()[0]
    return None


class _Case:
    """What a function returns in NumPy, and heads for it; results that are integers have values alone, and are not ``smooth``."""

    def __init__(self, fn: Callable[..., Any], args: Sequence[Any]) -> None:
        self.fn, self.args, self.changed = fn, args, written(fn, args)
        expected = run_python(fn, args, self.changed)
        self.is_tuple, self.expected = isinstance(expected, tuple), leaves(expected)
        every = expected if self.is_tuple else (expected,)
        self.smooth = [n for n, e in enumerate(every) if np.asarray(e).dtype.kind in "fc"]
        self.rng = np.random.default_rng(7)
        self.heads = [self._drawn(e) for e in self.expected]

    def _drawn(self, like: np.ndarray) -> np.ndarray:
        """Numbers of the shape of ``like``, complex where that is."""
        drawn = self.rng.normal(size=like.shape)
        return drawn + 1j * self.rng.normal(size=like.shape) if like.dtype.kind == "c" else drawn

    def check(self, values: Sequence[Any], gradients: Sequence[Any], tolerance: float) -> None:
        for a, b in zip(values, self.expected, strict=True):
            np.testing.assert_allclose(a, b, tolerance, tolerance)
        moving = _moving(self.args)
        directions = [self._drawn(self.args[n]) for n in moving]
        slope = sum(float((g * d).sum().real) for g, d in zip(gradients, directions, strict=True))

        def loss(step: float) -> float:
            moved = [self.args[n] + step * d for n, d in zip(moving, directions, strict=True)]
            got = leaves(run_python(self.fn, _filled(self.args, moving, moved), self.changed))
            return sum(float((self.heads[n] * got[n]).sum().real) for n in self.smooth)

        difference = (loss(_STEP) - loss(-_STEP)) / (2 * _STEP)
        np.testing.assert_allclose(slope, difference, 1e-5, 1e-5)


def _moving(args: Sequence[Any]) -> list[int]:
    """Which arguments have a gradient."""
    return [n for n, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind in "fc"]


def _filled(args: Sequence[Any], places: Sequence[int], given: Sequence[Any]) -> list[Any]:
    """``args`` with those at ``places`` replaced."""
    filled = list(args)
    for n, value in zip(places, given, strict=True):
        filled[n] = value
    return filled
