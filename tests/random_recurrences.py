"""Random graphs of recurrences, sums and choices that read each other: in whole, at one row or column, from the other end, at neighbours.

Each is a seed that says all of it. Values are those of the interpreter, adjoints and tangents agree with differences of these. Some are ``mixed`` with definitions
of other kinds (:mod:`tests.random_parts`), and have sizes that may be symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor
from tests.agreement import assert_close, interpreted
from tests.choices import Seeded
from tests.random_definitions import Definition
from tests.random_parts import MIXED

Index = Callable[[Any, int], Any]
ALONG: dict[str, Index] = {
    "itself": lambda i, n: i,
    "from the end": lambda i, n: n - 1 - i,
    "first": lambda i, n: 0,
    "last": lambda i, n: n - 1,
    "halves": lambda i, n: i // 2,
    "next": lambda i, n: te.minimum(i + 1, n - 1),
    "before": lambda i, n: te.maximum(i - 1, 0),
    "around": lambda i, n: (i + 1) % n,
}
STARTS = ("zero", "weights", "row")
STEP = 1e-6


@dataclass
class RandomRecurrences:
    """Definitions over ``rows`` and ``columns`` of an array and a row of weights, each of which reads those before it."""

    seed: int
    mixed: bool = False
    symbolic: bool = False

    def __post_init__(self) -> None:
        own = self._own = Seeded(f"{'mixed' if self.mixed else 'recurrences'} {self.seed}")
        self.rows, self.columns = own.number(5, 9), own.number(3, 4)
        count = own.number(3, 7) if self.mixed else own.number(2, 5)
        self.parts = [self._part(n) for n in range(count)]
        self.result = [self._read(count - 2, count), self._read(count - 2, count)]

    def _read(self, first: int, last: int) -> tuple[int, str, str]:
        """A tensor, the array where it is no part, and how it is read along both axes; most often as it is."""
        own, kinds = self._own, [*ALONG]
        along = [kinds[0] if own.number(0, 2) else own.among(kinds) for _ in range(2)]
        return own.number(max(first, -1), last - 1) if last else -1, along[0], along[1]

    def _others(self) -> list[str]:
        """The kinds that are mixed with recurrences: a table of positions is of sizes that are numbers."""
        return [k for k in MIXED if not (self.symbolic and k == "by table")] if self.mixed else []

    def _part(self, number: int) -> dict[str, Any]:
        own = self._own
        lags = [own.among((1, 1, 2, 3, 4)) for _ in range(own.number(1, 2))]
        kinds = ["recurrence", "recurrence", "elements", "choice", "sum", "prefixes"]
        return {
            "numbers": [own.number(0, 3) for _ in range(3)] if self.mixed else [],
            "kind": own.among([*kinds, *self._others()]),
            "reads": [self._read(number - 3, number) for _ in range(2)],
            "lags": [(lag, own.among(("itself", "from the end", "around"))) for lag in dict.fromkeys(lags)],
            "reverse": bool(own.number(0, 1)),
            "start": own.among(STARTS),
        }

    def __call__(self, x: Tensor, w: Tensor) -> Tensor:
        made: list[Tensor] = []

        def read(of: tuple[int, str, str], t: Any, c: Any) -> Any:
            number, row, column = of
            tensor = x if number < 0 else made[number]
            return tensor[ALONG[row](t, self.rows), ALONG[column](c, self.columns)]

        for number, part in enumerate(self.parts):
            made.append(self._made(part, f"v{number}", read, x, w))
        a, b = self.result
        shape = self.rows, self.columns
        return te.compute(shape, lambda t, c: read(a, t, c) * te.cos(read(b, t, c)), "y")

    def build(self, rows: Any, columns: Any) -> tuple[list[Tensor], Tensor]:
        """The inputs and the output for these sizes, which may be symbols."""
        own = RandomRecurrences(self.seed, self.mixed, self.symbolic)
        own.rows, own.columns = rows, columns
        inputs = [
            te.placeholder(s, "float64", name)
            for s, name in zip(((rows, columns), (columns,)), "xw", strict=True)
        ]
        return inputs, own(*inputs)

    def definition(self) -> Definition:
        """The same as one with numbers."""
        output = self.build(self.rows, self.columns)[1]
        assert isinstance(output, Compute)
        return Definition(output, self.seed)

    def _made(
        self, part: dict[str, Any], name: str, read: Callable[..., Any], x: Tensor, w: Tensor
    ) -> Tensor:
        shape, (a, b) = (self.rows, self.columns), part["reads"]
        j = te.reduce_axis((0, self.rows), "j")
        if part["kind"] == "recurrence":
            return self._recurrence(part, name, read, x, w)
        if part["kind"] in MIXED:
            first, second = (lambda t, c, of=of: read(of, t, c) for of in (a, b))
            return MIXED[part["kind"]](shape, first, second, part["numbers"], name)
        bodies: dict[str, Callable[[Any, Any], Any]] = {
            "elements": lambda t, c: te.sin(read(a, t, c)) * w[c] + 0.5 * read(b, t, c),
            "choice": lambda t, c: te.select(t >= 2, te.exp(0.3 * read(a, t, c)), read(b, t, c) * w[0]),
            "sum": lambda t, c: 0.3 * te.sum(read(a, j, c) * read(b, t, c), axis=j),
            "prefixes": lambda t, c: 0.3 * te.sum(read(a, j, c) * read(b, t, c), axis=j, where=j <= t),
        }
        return te.compute(shape, bodies[part["kind"]], name)

    def _recurrence(
        self, part: dict[str, Any], name: str, read: Callable[..., Any], x: Tensor, w: Tensor
    ) -> Tensor:
        (a, b), sign = part["reads"], 1 if part["reverse"] else -1
        starts = {"zero": 0.0, "weights": lambda c: w[c], "row": lambda c: x[1, c]}

        def body(h: Any, t: Any, c: Any) -> Any:
            before = sum(0.5 * h[t + sign * lag, ALONG[kind](c, self.columns)] for lag, kind in part["lags"])
            return te.tanh(0.6 * read(a, t, c) + before * read(b, t, c))

        shape = self.rows, self.columns
        return te.recurrence(
            shape, body, init=starts[part["start"]], reverse=part["reverse"], name=name, dtype="float64"
        )


def check_recurrences(f: RandomRecurrences) -> dict[str, Any]:
    """Values beside the interpreter; adjoints, and tangents of half of them, beside its differences.

    Raises:
        AssertionError: they differ.
    """
    rng = np.random.default_rng(f.seed)
    shapes = (f.rows, f.columns), (f.columns,)
    arrays, ways = ([rng.standard_normal(s) for s in shapes] for _ in range(2))
    inputs = [te.placeholder(s, "float64", name) for s, name in zip(shapes, "xw", strict=True)]
    meaning = f(*inputs)
    at = [
        interpreted(meaning, {i: a + step * way for i, a, way in zip(inputs, arrays, ways, strict=True)})
        for step in (0.0, STEP, -STEP)
    ]
    slope, head = (at[1] - at[2]) / (2 * STEP), rng.standard_normal(shapes[0])
    fn = te.function(f)
    value, pull = jax.vjp(fn, *arrays)
    assert_close(np.asarray(value), at[0], f"recurrences {f.seed}")
    found = sum(float(np.vdot(own, way)) for own, way in zip(pull(head), ways, strict=True))
    np.testing.assert_allclose(found, np.vdot(slope, head), rtol=1e-5, atol=1e-6)
    if f.seed % 2:
        np.testing.assert_allclose(jax.jvp(fn, arrays, ways)[1], slope, rtol=1e-5, atol=1e-6)
    return {}
