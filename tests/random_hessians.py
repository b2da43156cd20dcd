"""Second derivatives of random definitions in both orders, beside differences of the interpreter: where heads are zero, and where elements are equal."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from tests.agreement import inputs_of, interpreted
from tests.random_definitions import Definition

LOSSES = ("fit", "fit", "sine", "square")
STEP = 1e-3


def check_hessian(definition: Definition, seed: int) -> dict[str, Any]:
    """``v . H w`` of a loss by forward over reverse and by reverse over reverse, beside second differences of the interpreter.

    The loss is, by ``seed``, a sum of squares that is zero (each head of the first derivative is zero, the Hessian is not), a sum of sines or of squares;
    a third of the inputs have elements that are equal to each other.

    Raises:
        AssertionError: the three differ; the differences count where the loss is smooth.
    """
    output, variables = definition.output, definition.variables
    if not variables or output.dtype != "float64":
        return {"empty": True}
    rng = np.random.default_rng(seed)
    feeds = dict(definition.feeds())
    if seed % 3 == 0:
        feeds |= {t: rng.choice([-0.5, 0.75, 1.25], t.shape) for t in variables}
    inputs = inputs_of([output])
    name, fn, target = LOSSES[seed % len(LOSSES)], te.function(inputs, output), interpreted(output, feeds)

    def loss(y: Any, own: Any) -> Any:
        return {"fit": lambda: own.sum((y - target) ** 2), "sine": lambda: own.sum(own.sin(y)), "square": lambda: own.sum(y * y)}[name]()  # fmt: skip

    def outputs(*moved: Any) -> Any:
        at = {**feeds, **dict(zip(variables, moved, strict=True))}
        return fn(*(at[t] for t in inputs))

    def of(*moved: Any) -> Any:
        return loss(outputs(*moved), jnp)

    given = tuple(jnp.asarray(feeds[t]) for t in variables)
    v, w = (tuple(jnp.asarray(rng.standard_normal(t.shape)) for t in variables) for _ in range(2))
    gradient = jax.grad(of, tuple(range(len(variables))))

    def dot(a: Any, b: Any) -> Any:
        return sum(jnp.vdot(x, y) for x, y in zip(a, b, strict=True))

    def both(*at: Any) -> Any:
        forward = dot(jax.jvp(gradient, at, v)[1], w)
        reverse = dot(jax.grad(lambda *p: dot(gradient(*p), w), tuple(range(len(at))))(*at), v)
        return forward, reverse

    forward, reverse = (float(x) for x in jax.jit(both)(*given))
    if not (np.isfinite(forward) and np.isfinite(reverse)):
        assert not np.isfinite(target).all() or not _smooth(definition, feeds, loss, v, w)[1], (
            forward,
            reverse,
        )
        return {"notes": ["infinite"]}
    differences, is_smooth = _smooth(definition, feeds, loss, v, w)
    size = max(1.0, abs(forward), abs(reverse))
    assert abs(forward - reverse) <= 1e-8 * size, f"{name}: forward {forward}, reverse {reverse}, differences {differences}, smooth {is_smooth}"  # fmt: skip
    if (
        is_smooth and seed % 3 == 0
    ):  # max(min(a, b), a) is a, of whose slope an operation each gives half to b where the two are equal
        is_smooth = all(_is_slope(definition, feeds, d, jax.jvp(outputs, given, d)[1]) for d in (v, w))
    if is_smooth:
        assert abs(forward - differences) <= 2e-3 * max(size, abs(differences)), f"{name}: {forward}, differences {differences}"  # fmt: skip
    return {"notes": [] if is_smooth else ["kink"]}


def _moved(definition: Definition, feeds: Any, moves: Any) -> np.ndarray:
    own = {t: feeds[t] + np.asarray(move) for t, move in zip(definition.variables, moves, strict=True)}
    return interpreted(definition.output, {**feeds, **own})


def _is_slope(definition: Definition, feeds: Any, direction: Any, slope: Any) -> bool:
    """Whether ``slope`` is what the output changes by along ``direction``."""
    ahead, behind = (_moved(definition, feeds, [s * STEP / 4 * d for d in direction]) for s in (1, -1))
    return bool(np.allclose((ahead - behind) * 2 / STEP, slope, rtol=1e-3, atol=1e-3))


def _smooth(definition: Definition, feeds: Any, loss: Any, v: Any, w: Any) -> tuple[float, bool]:
    """Second differences of the interpreter along ``v`` and ``w``, and whether two steps give the same."""

    def value(a: float, b: float) -> np.ndarray:
        moves = [a * np.asarray(dv) + b * np.asarray(dw) for dv, dw in zip(v, w, strict=True)]
        return _moved(definition, feeds, moves)

    def at(a: float, b: float) -> float:
        return float(loss(value(a, b), np))

    def by(step: float) -> float:
        corners = at(step, step) - at(step, -step) - at(-step, step) + at(-step, -step)
        return corners / (4 * step * step)

    def bent(step: float) -> float:
        """How far slopes on both sides differ: as much at a fourth of the step where there is a kink."""
        sides = [(1, 0), (0, 1), (1, 1), (1, -1)]
        values = [np.sum(np.abs(value(a * step, b * step) + value(-a * step, -b * step) - 2 * value(0, 0))) for a, b in sides]  # fmt: skip
        return float(max(values)) / step

    with np.errstate(all="ignore"):
        coarse, fine = by(STEP), by(STEP / 4)
        straight = bent(STEP / 4) <= 0.5 * bent(STEP) + 1e-7
    scale = max(1.0, abs(coarse), abs(fine))
    return fine, bool(np.isfinite(coarse + fine) and abs(coarse - fine) < 5e-4 * scale and straight)
