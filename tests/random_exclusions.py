"""Random sums of products of which a choice leaves points out, with arrays that are anything at the points that are left out.

Logarithms, roots and quotients are infinite or NaN at zero and at -1. So where no point that counts reads an element, it becomes one of these, and positions
that are data leave their tensors: value and adjoints, by the interpreter and as emitted, are what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.lang.walk import substitute
from jaxte.lower.program.plan import lower
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Compute, Tensor
from tests.agreement import inputs_of, interpreted
from tests.as_nodes import evaluated_as_nodes
from tests.choices import Seeded
from tests.lower.evaluation.program import evaluate_program

FUNCTIONS: tuple[Callable[[Any], Expr], ...] = (
    lambda x: x,
    lambda x: x,
    lambda x: x,
    lambda x: x * x,
    te.exp,
    te.log,
    te.sqrt,
    lambda x: 1 / x,
)
SPOILT = (0.0, -1.0)
Feeds = dict[Tensor, np.ndarray]


@dataclass
class RandomExclusions:
    """A sum of a choice between a product and zero, and a smooth function of it; the same in every process."""

    seed: int
    outside: bool = False  # whether the choice stands in a tensor that reads the product as one
    arrays: list[Placeholder] = field(default_factory=list)
    masks: list[Placeholder] = field(default_factory=list)
    positions: list[tuple[Placeholder, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.own = Seeded(f"{'outside' if self.outside else 'exclusions'} {self.seed}")
        self.output = self._output()

    def _output(self) -> Compute:
        own = self.own
        count, reduced = own.number(1, 3), own.number(0, 2)
        self.extents = [own.number(1, 4) for _ in range(count + reduced)]
        k = [te.reduce_axis((0, self.extents[count + n]), f"k{n}") for n in range(reduced)]
        element = self._of_a_tensor if self.outside else self._element

        def body(*axes: Any) -> Expr:
            chosen = element([*axes, *k])
            return te.sum(chosen, axis=k) if k else chosen

        y = te.compute(tuple(self.extents[:count]), body, "y")
        match own.number(0, 2):
            case 0:
                return te.compute(y.shape, lambda *i: te.sin(y[i]) * y[i], "z")
            case 1:
                last = te.reduce_axis((0, self.extents[count - 1]), "l")
                return te.compute(
                    y.shape[:-1],
                    lambda *i: te.sum(y[(*i, last)] * te.exp(-y[(*i, last)]), axis=last),
                    "z",
                )
        return y

    def _product(self, axes: Sequence[Any]) -> tuple[Expr, Expr]:
        """The condition under which it counts, and the product."""
        tests = [self._test(axes) for _ in range(self.own.number(1, 2))]
        value: Any = 1.0
        for _ in range(self.own.number(1, 3)):
            read, more = self._read(axes)
            tests += more
            value = self.own.among(FUNCTIONS)(read) * value
        return te.logical_and(*tests) if len(tests) > 1 else tests[0], value

    def _element(self, axes: Sequence[Any]) -> Expr:
        return te.select(*self._product(axes), 0.0)

    def _of_a_tensor(self, axes: Sequence[Any]) -> Expr:
        """The choice of an element of a tensor of products, or of a smooth function of it, or of a sum of them if the condition allows."""
        held: list[Expr] = []

        def product(*own: Any) -> Expr:
            test, value = self._product(own)
            held.append(test)
            return value

        t = te.compute(tuple(self.extents), product, "t")
        condition = substitute(held[0], dict(zip(t.axes, axes, strict=True)))
        smooth = self.own.among((lambda x: x, lambda x: x, lambda x: te.sin(x) * x, lambda x: x * x))
        return te.select(condition, smooth(t[tuple(axes)]), 0.0)

    def _test(self, axes: Sequence[Any]) -> Expr:
        own = self.own
        first, second = (own.number(0, len(axes) - 1) for _ in range(2))
        if own.number(0, 2):
            held = sorted({first, second})
            mask = te.placeholder(tuple(self.extents[n] for n in held), "float64", f"M{len(self.masks)}")
            self.masks.append(mask)
            return mask[tuple(axes[n] for n in held)] > 0
        a, b = axes[first], axes[second]
        return own.among((a <= b, a + b >= 2, (a - b) % 2 < 1, te.not_equal(a, b)))

    def _read(self, axes: Sequence[Any]) -> tuple[Any, list[Expr]]:
        """An element of an array or of a function of one, at affine positions or at data, with the conditions of those."""
        own = self.own
        tests: list[Expr] = []
        if own.number(0, 2):
            pairs = [self._affine(axes) for _ in range(own.number(1, 2))]
            indices, shape = [i for i, _ in pairs], [n for _, n in pairs]
        else:
            n, shape = own.number(0, len(axes) - 1), [own.number(1, 4)]
            at = te.placeholder((self.extents[n],), "int32", f"I{len(self.positions)}")
            self.positions.append((at, shape[0]))
            indices = [at[axes[n]]]
            tests = own.among(([], [at[axes[n]] >= 0]))
        array = te.placeholder(tuple(shape), "float64", f"X{len(self.arrays)}")
        self.arrays.append(array)
        if own.number(0, 3):
            return array[tuple(indices)], tests
        function = own.among(FUNCTIONS[-3:])
        made = te.compute(array.shape, lambda *i: function(array[i]), f"own{len(self.arrays)}")
        return made[tuple(indices)], tests

    def _affine(self, axes: Sequence[Any]) -> tuple[Any, int]:
        """A position of at most two axes, and how many there are."""
        index: Any = te.const(0)
        low = high = 0
        for n in sorted({self.own.number(0, len(axes) - 1) for _ in range(self.own.number(0, 2))}):
            step = self.own.among((1, 1, 1, 2, -1))
            ends = sorted((0, step * (self.extents[n] - 1)))
            index, low, high = index + step * axes[n], low + ends[0], high + ends[1]
        return index - low, high - low + 1

    def feeds(self) -> tuple[Feeds, Feeds]:
        """Arrays of ordinary numbers, and the same with what no point that counts reads being anything."""
        rng, output = np.random.default_rng(self.seed), self.output
        feeds: Feeds = {m: rng.choice([-1.0, 1.0], m.shape) for m in self.masks}
        feeds |= {i: rng.integers(0, size, i.shape).astype("int32") for i, size in self.positions}
        feeds |= {x: rng.uniform(0.5, 1.5, x.shape) for x in self.arrays}
        read, spoilt, value = set(inputs_of([output])), dict(feeds), interpreted(output, feeds)

        def is_same(tensor: Tensor, array: np.ndarray) -> bool:
            return np.array_equal(interpreted(output, {**spoilt, tensor: array}), value)

        for tensor in [t for t in (*(i for i, _ in self.positions), *self.arrays) if t in read]:
            for place in np.ndindex(*spoilt[tensor].shape):
                array = spoilt[tensor].copy()
                array[place] = -1 if array.dtype.kind == "i" else np.nan
                if is_same(tensor, array):
                    array[place] = array[place] if array.dtype.kind == "i" else rng.choice(SPOILT)
                    spoilt[tensor] = array
        return feeds, spoilt


def check_exclusions(f: RandomExclusions, order: int) -> dict[str, Any]:
    """Value and adjoints, of the second order those of an adjoint, too, by the interpreter and as the nodes of the emitted program mean them.

    Raises:
        AssertionError: what no point reads makes a difference.
    """
    feeds, spoilt = f.feeds()
    wanted = [x for x in f.arrays if x in set(inputs_of([f.output]))]
    if not wanted:
        return {"empty": True}
    results: list[Tensor] = [f.output]
    rng = np.random.default_rng([f.seed, 1])
    for _ in range(order):
        of = f.own.among(results)
        head = te.placeholder(of.shape, "float64", f"H{len(results)}")
        feeds[head] = spoilt[head] = rng.standard_normal(of.shape)
        given = [t for t in inputs_of([of]) if t.dtype == "float64" and t not in set(f.masks)]
        results += te.differentiate(of, given, head=head)
    expected = [interpreted(t, feeds) for t in results]
    lowered = lower("both", inputs_of(results), results)

    def compare(found: Sequence[np.ndarray], what: str) -> None:
        for tensor, own, meant in zip(results, found, expected, strict=True):
            size = max(1.0, np.abs(meant).max(initial=0))
            np.testing.assert_allclose(own, meant, 1e-8, 1e-9 * size, err_msg=f"{what} {tensor.name}")

    compare([interpreted(t, spoilt) for t in results], "meaning of")
    for what, arrays in (("", feeds), ("spoilt ", spoilt)):
        compare(evaluate_program(lowered, [arrays[t] for _, t in lowered.params]), f"{what}emitted")
    return (
        {} if any(not np.array_equal(feeds[t], spoilt[t]) for t in feeds) else {"notes": ["nothing spoilt"]}
    )


def check_moved(f: RandomExclusions) -> dict[str, Any]:
    """``jax.jvp``, that of all gradients, and the gradient of these: what no point reads makes no difference there, either.

    Raises:
        AssertionError: it does.
    """
    feeds, spoilt = f.feeds()
    inputs = inputs_of([f.output])
    moving = [n for n, t in enumerate(inputs) if t in set(f.arrays)]
    if not moving or all(np.array_equal(feeds[t], spoilt[t]) for t in inputs):
        return {"empty": True}
    fn = te.function(inputs, f.output)
    rng = np.random.default_rng([f.seed, 2])
    tangents = tuple(rng.standard_normal(inputs[n].shape) for n in moving)
    every = tuple(range(len(moving)))

    def moved(arrays: Feeds) -> list[list[Any]]:
        given = [arrays[t] for t in inputs]

        def of(*own: Any) -> Any:
            table = dict(zip(moving, own, strict=True))
            return fn(*(table.get(n, a) for n, a in enumerate(given)))

        def along(*own: Any) -> Any:
            return sum(map(jnp.vdot, gradient(*own), tangents))

        gradient = jax.grad(lambda *own: jnp.sum(jnp.sin(of(*own))), every)
        own = tuple(given[n] for n in moving)
        forward = (jax.jvp(g, own, tangents)[1] for g in (of, gradient))
        return [*map(jax.tree.leaves, forward), list(jax.grad(along, every)(*own))]

    with evaluated_as_nodes():
        for what, found, meant in zip(
            ("jvp", "jvp of grad", "grad of grad"), moved(spoilt), moved(feeds), strict=True
        ):
            for own, known in zip(found, meant, strict=True):
                np.testing.assert_allclose(own, known, 1e-8, 1e-8 * max(1, abs(known).max()), err_msg=what)
    return {}
