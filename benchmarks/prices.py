"""Prices of whole programs beside what was measured: how well the estimate orders them, and where its verdict is wrong.

    python benchmarks/prices.py [names] [--measure] [--fit]

Of each function in benchmarks/raised and benchmarks/unseen there are up to three programs of the value and the gradient: plain JAX, what te.grad raises by its rules of
structure, and all that has a rule. ``--measure`` compiles and times those that are asked for (all: an hour) and keeps the figures in benchmarks/prices.json. Without it,
the estimates are compared with these figures; ``--fit`` prints the paces that fit them best (it needs scipy, which comes with JAX).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.optimize import least_squares
from scipy.stats import spearmanr

from jaxte.bridge.price.amounts import Amounts, seconds
from jaxte.bridge.price.programs import amounts_of, with_gradient
from jaxte.frontends.jaxpr.plan.plan import Planner
from jaxte.frontends.jaxpr.plan.regions import Choice
from jaxte.frontends.jaxpr.run import evaluate
from jaxte.lower.cost.paces import CPU_PACES
from raised import EXAMPLES
from raising import interleaved
from unseen import LOSSES

FIGURES = Path(__file__).with_name("prices.json")
CHOICES = {"plain": Choice.NOTHING, "rules": Choice.ESTIMATED, "everything": Choice.EVERYTHING}
PLAIN = "plain"
SLOWER, FASTER, MARGIN = 0.95, 1.3, 1.15  # of a ratio that was measured, and of its estimate
NEAR_START = 0.25  # how much a pace is held to what it was
Call = tuple[Callable[..., Any], tuple[Any, ...]]


def functions() -> Iterator[tuple[str, Call]]:
    for name, example in EXAMPLES.items():
        yield name, (example.loss, example.arguments())
    for name, make in LOSSES.items():
        yield name, make()


def programs(call: Call) -> dict[str, Callable[..., Any]]:
    """The value and the gradient of each kind, of flat arrays."""
    f, args = call
    closed = jax.make_jaxpr(f)(*args)
    moving = [n for n, leaf in enumerate(jax.tree.leaves(args)) if leaf.dtype.kind == "f"]

    def run(choice: Choice) -> Callable[..., Any]:
        plan = Planner(choice, safe=choice is not Choice.NOTHING).plan(closed)
        return with_gradient(lambda *arrays: evaluate(plan, closed, arrays), moving)

    return {kind: run(choice) for kind, choice in CHOICES.items()}


def measured(call: Call) -> dict[str, float]:
    """Processor seconds of each program; those of the same text once."""
    args = jax.tree.leaves(call[1])
    lowered = {kind: jax.jit(f).lower(*args) for kind, f in programs(call).items()}
    texts: dict[str, str] = {}
    for kind, own in lowered.items():
        texts.setdefault(own.as_text().partition("\n")[2], kind)
    compiled = {kind: lowered[kind].compile() for kind in texts.values()}
    taken, _ = interleaved([lambda c=c: jax.block_until_ready(c(*args)) for c in compiled.values()])
    return dict(zip(compiled, taken, strict=True))


def priced(call: Call, kinds: Sequence[str]) -> dict[str, Amounts]:
    own = programs(call)
    args = jax.tree.leaves(call[1])
    return {kind: amounts_of(jax.make_jaxpr(own[kind])(*args)) for kind in kinds}


class Fit:
    """Programs with what they do and the time that they take, and paces for them."""

    def __init__(self, amounts: dict[str, dict[str, Amounts]], figures: dict[str, dict[str, float]]) -> None:
        rows = [(name, kind) for name, own in amounts.items() for kind in own]
        self.names = list(asdict(CPU_PACES))
        self.start = -np.log(np.array(list(asdict(CPU_PACES).values())))
        self.done = np.array([[amounts[n][k].get(a, 0.0) for a in self.names] for n, k in rows])
        self.taken = np.log([figures[n][k] for n, k in rows])
        at = {row: number for number, row in enumerate(rows)}
        self.pairs = np.array([(at[n, PLAIN], at[n, k]) for n, k in rows if k != PLAIN and (n, PLAIN) in at])

    def residuals(self, logs: np.ndarray) -> np.ndarray:
        """Ratios of programs of one function count most; times by themselves less."""
        off = np.log(self.done @ np.exp(logs)) - self.taken
        one, other = self.pairs.T
        return np.concatenate([0.3 * off, off[other] - off[one], NEAR_START * (logs - self.start)])

    def paces(self) -> dict[str, float]:
        found = least_squares(self.residuals, self.start, loss="soft_l1", f_scale=0.3).x
        return {name: float(f"{math.exp(-log):.2g}") for name, log in zip(self.names, found, strict=True)}


def report(amounts: dict[str, dict[str, Amounts]], figures: dict[str, dict[str, float]]) -> str:
    """How the ratios of programs are ordered, and which verdicts are wrong."""
    rows = [
        (figures[n][PLAIN] / figures[n][k], seconds(own[PLAIN], CPU_PACES) / seconds(own[k], CPU_PACES), n, k)
        for n, own in amounts.items()
        for k in own
        if k != PLAIN
    ]
    took, told = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    wrong = [r for r in rows if (r[0] < SLOWER and r[1] > MARGIN) or (r[0] > FASTER and r[1] < MARGIN)]
    lines = [
        f"{len(rows)} programs beside plain JAX: rank correlation of ratios {spearmanr(took, told)[0]:.2f}, ratios off by "
        f"{math.exp(float(np.sqrt(np.mean(np.log(took / told) ** 2)))):.2f} in the mean, {len(wrong)} wrong verdicts"
    ]
    return "\n".join(
        [*lines, *(f"  {n} {k}: measured {a:.2f}, estimated {b:.2f}" for a, b, n, k in sorted(wrong))]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--fit", action="store_true")
    asked = parser.parse_args()
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    amounts: dict[str, dict[str, Amounts]] = {}
    for name, call in functions():
        if asked.names and name not in asked.names:
            continue
        if asked.measure:
            figures[name] = measured(call)
            FIGURES.write_text(json.dumps(figures, indent=1))
        if len(figures.get(name, {})) > 1:
            amounts[name] = priced(call, list(figures[name]))
    print(report(amounts, figures))
    if asked.fit:
        print(Fit(amounts, figures).paces())


if __name__ == "__main__":
    main()
