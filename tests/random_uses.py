"""Random uses of definitions: short floats, what is kept, adjoints that are overridden by themselves, patterns of ``te.einsum``, steps of a ``lax.scan``.

Each is a seed that says all of it, and is checked beside something that does not take the way it tests: the interpreter, sums of Python over all positions, or
the same steps written in ``jax.numpy`` with arrays of positions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxte as te
from jaxte.lower.program.plan import lower
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor
from tests.agreement import Pullback, assert_close, inputs_of, interpreted
from tests.choices import Seeded
from tests.lower.evaluation.program import evaluate_program
from tests.random_definitions import Definition, definition

Notes = dict[str, Any]
EXACT = ((1.0, 0.5, -0.5, 2.0, -1.0, 0.25), 2.0**-7)
"""Numbers that short floats hold, and how far apart sums of their products may be: a few units in the last place of bfloat16."""


def check_short(seed: int) -> Notes:
    """A definition in float16 or bfloat16 beside the same one in float64: values and adjoints where both have the same order of size.

    Raises:
        AssertionError: an element is further off than rounding each tensor of the chain to the short dtype explains.
    """
    dtype = ("float16", "bfloat16")[seed % 2]
    short, wide = (definition(Seeded(f"short {seed}"), d, stages=(1, 2)) for d in (dtype, "float64"))
    if not short.variables:
        return {"empty": True}
    numbers = [
        short.feeds()[t] if t.dtype == "int32" else np.random.default_rng([seed, n]).choice(EXACT[0], t.shape)
        for n, t in enumerate(short.inputs)
    ]
    found, kept = (_with_adjoints(d, numbers) for d in (short, wide))
    results, feeds = found
    lowered = lower("both", inputs_of(results), results)
    emitted = evaluate_program(lowered, [feeds[t] for _, t in lowered.params])
    meant = [interpreted(t, feeds) for t in results]
    exact = [interpreted(t, kept[1]) for t in kept[0]]
    for own, code, meaning, true in zip(results, emitted, meant, exact, strict=True):
        assert code.dtype == meaning.dtype, (own.name, code.dtype, meaning.dtype)
        _assert_no_further(own.name, *(np.asarray(a, "float64") for a in (code, meaning, true)))
    return {}


def _with_adjoints(d: Definition, numbers: Sequence[np.ndarray]) -> tuple[list[Tensor], dict[Tensor, Any]]:
    head = te.placeholder(d.output.shape, d.output.dtype, "H")
    feeds: dict[Tensor, Any] = {t: _as(own, t.dtype) for t, own in zip(d.inputs, numbers, strict=True)}
    feeds[head] = _as(np.random.default_rng(d.seed).choice(EXACT[0], head.shape), head.dtype)
    return [d.output, *te.differentiate(d.output, d.variables, head=head)], feeds


def _as(array: np.ndarray, dtype: str) -> np.ndarray:
    return np.asarray(jnp.asarray(array, dtype))


def _assert_no_further(name: str, code: np.ndarray, meaning: np.ndarray, true: np.ndarray) -> None:
    """What is emitted is as near to the exact numbers as the interpreter in the same dtype is, a few units in the last place aside."""
    known = np.isfinite(code) & np.isfinite(meaning) & np.isfinite(true)
    size = max(1.0, float(np.abs(true[known]).max(initial=0)))
    off, allowed = np.abs(code - true)[known], np.abs(meaning - true)[known]
    worst = float((off - 4 * allowed.max(initial=0)).max(initial=0))
    assert worst <= 8 * EXACT[1] * size, f"{name}: {worst} further off than the interpreter, of {size}"


def check_kept(seed: int) -> Notes:
    """What is kept for the backward pass, by name or within a number of bytes, changes no adjoint.

    Raises:
        AssertionError: an adjoint differs from the interpreter's.
    """
    own, d = Seeded(f"kept {seed}"), definition(Seeded(f"kept {seed}"), stages=(2, 3))
    if not d.variables:
        return {"empty": True}
    between = [t.name for t in topological_order([d.output]) if isinstance(t, Compute)]
    names = [n for n in between if own.number(0, 1)] if len(set(between)) == len(between) else []
    save = own.among((names, 0, 64, 1 << 20, dict.fromkeys(names, False)))
    p = Pullback(d.output, d.variables, te.placeholder(d.output.shape, d.output.dtype, "H"), d.feeds())
    feeds = {**p.feeds, p.head: np.random.default_rng(seed).standard_normal(d.output.shape)}
    fn = te.function(d.inputs, d.output, save=save)

    def run(head: Any, *arrays: Any) -> Any:
        given = dict(zip(d.inputs, arrays, strict=True))
        of = lambda *v: fn(*({**given, **dict(zip(d.variables, v, strict=True))}[t] for t in d.inputs))  # noqa: E731
        value, pull = jax.vjp(of, *(given[t] for t in d.variables))
        return value, pull(head)

    value, adjoints = jax.jit(run)(feeds[p.head], *(feeds[t] for t in d.inputs))
    meant = te.differentiate(d.output, d.variables, head=p.head)
    expected = interpreted(d.output, feeds)
    if not np.isfinite(expected).all():
        return {"notes": ["infinite"]}
    assert_close(np.asarray(value), expected, "value", 1e-8)
    for t, found, tensor in zip(d.variables, adjoints, meant, strict=True):
        assert_close(np.asarray(found), interpreted(tensor, feeds), f"d{t.name}, save={save}", 1e-8)
    return {}


def check_overridden(seed: int) -> Notes:
    """A tensor of a chain whose adjoint is overridden by the one that is derived: all adjoints are what they were.

    Raises:
        AssertionError: one of them differs.
    """
    own, d = Seeded(f"overridden {seed}"), definition(Seeded(f"overridden {seed}"), stages=(2, 3))
    chain = [t for t in topological_order([d.output]) if isinstance(t, Compute) and t.dtype == "float64"]
    if not d.variables or not chain:
        return {"empty": True}
    tensor = own.among(chain)
    immediate = own.number(0, 1) == 1
    every = tensor.inputs if immediate else inputs_of([tensor])
    read = [t for t in every if t.dtype == "float64"]
    head = te.placeholder(d.output.shape, d.output.dtype, "H")
    feeds = {**d.feeds(), head: np.random.default_rng(seed).standard_normal(head.shape)}
    asked: list[Tensor] = []

    def derived(out: Tensor, inputs: Sequence[Tensor], h: Tensor) -> Sequence[Tensor]:
        asked.append(h)
        if immediate:  # of its own body: what flows on through the inputs to each other is not this one's
            return [te.diff_building_block(out, i, h) for i in inputs]
        return list(te.differentiate(out, list(inputs), head=h))

    plain = te.differentiate(d.output, d.variables, head=head)
    by_hand = te.differentiate(d.output, d.variables, head=head, override={tensor: (read, derived)})
    results = [t for t in by_hand if t in set(by_hand)]
    lowered = lower("both", inputs_of(results), results)
    emitted = evaluate_program(lowered, [feeds[t] for _, t in lowered.params])
    for one, other, code in zip(plain, by_hand, emitted, strict=True):
        meant = interpreted(one, feeds)
        if np.isfinite(meant).all():
            assert_close(interpreted(other, feeds), meant, f"d{one.name} of an override", 1e-8)
            assert_close(code, meant, f"emitted d{one.name} of an override", 1e-8)
    return {} if asked else {"notes": ["not asked"]}


@dataclass
class RandomPattern:
    """A pattern of ``te.einsum`` with arithmetic of indices, and arrays that fit it."""

    seed: int

    def __post_init__(self) -> None:
        own = self.own = Seeded(f"patterns {self.seed}")
        self.extents = {letter: own.number(1, 4) for letter in "ijkl"[: own.number(2, 4)]}
        letters = list(self.extents)
        self.operands = [
            [self._index(letters) for _ in range(own.number(1, 2))] for _ in range(own.number(1, 3))
        ]
        used = {x for o in self.operands for index in o for x, _ in index[0]}
        self.result = [x for x in letters if x in used and own.number(0, 1)]
        self.used = [x for x in letters if x in used]
        self.arrays = [
            np.random.default_rng([self.seed, n]).standard_normal([self._size(i) for i in o])
            for n, o in enumerate(self.operands)
        ]

    def _index(self, letters: list[str]) -> tuple[list[tuple[str, int]], int]:
        own = self.own
        chosen = sorted({own.among(letters) for _ in range(own.number(1, 2))})
        return [(x, own.among((1, 1, 1, 2))) for x in chosen], own.among((0, 0, 0, 1))

    def _size(self, index: tuple[list[tuple[str, int]], int]) -> int:
        return 1 + index[1] + sum(f * (self.extents[x] - 1) for x, f in index[0])

    @property
    def text(self) -> str:
        def written(index: tuple[list[tuple[str, int]], int]) -> str:
            terms = [x if f == 1 else f"{f}*{x}" for x, f in index[0]] + ([str(index[1])] if index[1] else [])
            return terms[0] if len(terms) == 1 and index[0][0][1] == 1 else f"({'+'.join(terms)})"

        inputs = ", ".join(" ".join(map(written, o)) for o in self.operands)
        return f"{inputs} -> {' '.join(self.result)}"

    def looped(self, head: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """The value and its adjoints, position by position."""
        value = np.zeros([self.extents[x] for x in self.result])
        adjoints = [np.zeros_like(a) for a in self.arrays]
        for point in itertools.product(*(range(self.extents[x]) for x in self.used)):
            at = dict(zip(self.used, point, strict=True))
            places = [tuple(c + sum(f * at[x] for x, f in terms) for terms, c in o) for o in self.operands]
            factors = [a[p] for a, p in zip(self.arrays, places, strict=True)]
            out = tuple(at[x] for x in self.result)
            value[out] += np.prod(factors)
            for n, place in enumerate(places):
                adjoints[n][place] += head[out] * np.prod(factors[:n] + factors[n + 1 :])
        return value, adjoints


def check_pattern(f: RandomPattern) -> Notes:
    """``te.einsum`` and its gradients beside sums of Python over all positions.

    Raises:
        AssertionError: they differ.
    """
    sizes = dict(f.extents)
    shape = [f.extents[x] for x in f.result]
    head = np.random.default_rng(f.seed).standard_normal(shape)
    value, adjoints = f.looped(head)
    of = lambda *arrays: te.einsum(f.text, *arrays, **{x: sizes[x] for x in f.used})  # noqa: E731
    found, pull = jax.vjp(of, *map(jnp.asarray, f.arrays))
    assert_close(np.asarray(found), value, f.text, 1e-10)
    for n, (own, meant) in enumerate(zip(pull(jnp.asarray(head)), adjoints, strict=True)):
        assert_close(np.asarray(own), meant, f"{f.text}, operand {n}", 1e-10)
    return {"text": f.text}


@dataclass
class RandomStep:
    """A step of a scan over one array of ``n`` elements and one of weights, as a definition and in ``jax.numpy``."""

    seed: int

    def __post_init__(self) -> None:
        own = Seeded(f"scans {self.seed}")
        self.n, self.steps = own.number(3, 6), own.number(2, 5)
        self.terms = [self._term(own) for _ in range(own.number(2, 3))]

    def _term(self, own: Seeded) -> tuple[Callable[..., Any], Callable[..., Any], list[str]]:
        at = [own.among(("plain", "wrapped", "held", "reversed", "sheared")) for _ in range(2)]
        pairs = (
            (lambda a, b: a * b, lambda a, b: a * b),
            (lambda a, b: te.sin(a) + b, lambda a, b: jnp.sin(a) + b),
            (lambda a, b: te.maximum(a, b), jnp.maximum),
            (lambda a, b: te.select(a > 0.1, a * a, b), lambda a, b: jnp.where(a > 0.1, a * a, b)),
            (lambda a, b: te.tanh(a - b), lambda a, b: jnp.tanh(a - b)),
        )
        return (*own.among(pairs), at)

    def _index(self, kind: str, i: Any, least: Callable[..., Any]) -> Any:
        n = self.n
        return {
            "plain": lambda: i,
            "wrapped": lambda: (i + 1) % n,
            "held": lambda: least(i + 2, n - 1),
            "reversed": lambda: n - 1 - i,
            "sheared": lambda: (2 * i) % n,
        }[kind]()

    def derived(self, x: Any, w: Any) -> Any:
        def element(i: Any) -> Any:
            total: Any = 0.1 * x[i]
            for number, (make, _, kinds) in enumerate(self.terms):
                a, b = (x[self._index(kind, i, te.minimum)] for kind in kinds)
                total = total + w[number] * make(a, b)
            return total

        return te.compute((self.n,), element, "step")

    def plain(self, x: Any, w: Any) -> Any:
        i, total = np.arange(self.n), 0.1 * x
        for number, (_, make, kinds) in enumerate(self.terms):
            a, b = (x[self._index(kind, i, np.minimum)] for kind in kinds)
            total = total + w[number] * make(a, b)
        return total


def check_scan(f: RandomStep) -> Notes:
    """A scan of a derived step: value, gradient, and tangents of the gradient, beside the loop written out in ``jax.numpy``.

    Raises:
        AssertionError: they differ.
    """
    rng = np.random.default_rng(f.seed)
    step = te.function(f.derived)
    x, w, v = (jnp.asarray(rng.standard_normal(s)) for s in ((f.n,), (len(f.terms),), (f.n,)))

    def scanned(x: Any, w: Any) -> Any:
        last, every = lax.scan(lambda c, _: (step(c, w), jnp.sum(c * c)), x, None, length=f.steps)
        return jnp.sum(jnp.sin(last)) + 0.1 * jnp.sum(every)

    def written(x: Any, w: Any) -> Any:
        total = 0.0
        for _ in range(f.steps):
            total, x = total + 0.1 * jnp.sum(x * x), f.plain(x, w)
        return jnp.sum(jnp.sin(x)) + total

    def all_of(loss: Callable[..., Any]) -> Any:
        gradient = jax.grad(loss, (0, 1))
        return loss(x, w), gradient(x, w), jax.jvp(lambda x: gradient(x, w), (x,), (v,))[1]

    for own, meant in zip(
        *(jax.tree.leaves(jax.jit(all_of, static_argnums=0)(g)) for g in (scanned, written)), strict=True
    ):
        assert_close(np.asarray(own), np.asarray(meant), f"scan {f.seed}", 1e-9)
    return {}
