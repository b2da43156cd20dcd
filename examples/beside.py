"""What the two network examples share: two training steps side by side, their losses, times, memory, and a picture."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import matplotlib
import numpy as np
import optax
from tqdm import tqdm

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogFormatter

# Rounding differs. What it leaves grows tenfold every few steps once a relu or a batch norm has met it, by Adam most of all: gradients that are zero but for rounding move
# their parameters as far as others do.
EQUAL_STEPS, EQUAL_LOSSES = 20, 1e-4

# (parameters, what a step hands to the next one, a batch) to (loss, what it hands on), with gradients of the parameters
ValueAndGrad = Callable[..., tuple[tuple[Any, Any], Any]]


@dataclass
class Side:
    """One of the two networks: its step, compiled, where it stands, and the losses so far."""

    name: str
    step: Any
    state: Any
    losses: list[float] = field(default_factory=list)

    def advance(self, batch: Any) -> None:
        self.state, loss = self.step(self.state, *batch)
        self.losses.append(loss)

    @property
    def temporaries(self) -> int:
        """Bytes that a step needs beside its arguments and results."""
        return int(self.step.memory_analysis().temp_size_in_bytes)


def side(name: str, value_and_grad: ValueAndGrad, params: Any, carried: Any, batch: Any, rate: float) -> Side:
    """A network with Adam, compiled for batches such as ``batch``."""
    optimizer = optax.adam(rate)

    @jax.jit
    def step(state: Any, *batch: Any) -> tuple[Any, Any]:
        params, carried, moments = state
        (loss, carried), grads = value_and_grad(params, carried, *batch)
        updates, moments = optimizer.update(grads, moments)
        return (optax.apply_updates(params, updates), carried, moments), loss

    state = params, carried, optimizer.init(params)
    return Side(name, step.lower(state, *batch).compile(), state)


def train(sides: list[Side], batches: Iterator[Any], steps: int) -> None:
    """Both networks on the same batches."""
    with tqdm(total=steps, desc="training", unit="step") as bar:
        for _, batch in zip(range(steps), batches, strict=False):
            for one in sides:
                one.advance(batch)
            bar.update()
            bar.set_postfix(loss=f"{float(sides[0].losses[-1]):.4f}", refresh=False)
    for one in sides:
        one.losses = [float(loss) for loss in one.losses]


def report(sides: list[Side], batch: Any, rounds: int) -> bool:
    """Prints how far the losses are apart, the time of a step and its memory; whether the losses are equal."""
    first, second = (np.array(one.losses[:EQUAL_STEPS]) for one in sides)
    apart = float(np.max(np.abs(first - second) / np.abs(second)))
    taken = _milliseconds(sides, batch, rounds)
    for one, ms in zip(sides, taken, strict=True):
        print(
            f"{one.name}: {ms:.2f} ms a step, {one.temporaries / 1e6:.2f} MB of temporaries, last loss {one.losses[-1]:.4f}"
        )
    print(f"speed: {taken[1] / taken[0]:.2f} of {sides[1].name}")
    print(f"largest relative difference of the losses of the first {len(first)} steps: {apart:.1e}")
    return apart <= EQUAL_LOSSES


def _milliseconds(sides: list[Side], batch: Any, rounds: int) -> list[float]:
    """The median time of a step of each, measured in turn."""
    taken: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for times, one in zip(taken, sides, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(one.step(one.state, *batch))
            times.append(time.perf_counter() - start)
    return [1e3 * float(np.median(times)) for times in taken]


def draw(sides: list[Side], title: str, path: str) -> None:
    """The curves of the losses; where they are equal, the second covers the first but for its wider line."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for one, style in zip(sides, (dict(linewidth=4, alpha=0.4), dict(linewidth=1)), strict=True):
        axes.plot(range(1, len(one.losses) + 1), one.losses, label=one.name, **style)
    axes.set(title=title, xlabel="step", ylabel="loss", yscale="log")
    for formatted in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        formatted(LogFormatter(minor_thresholds=(2, 0.5)))
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"losses drawn in {path}")


def options(description: str, steps: int, picture: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--rounds", type=int, default=30, help="how often a step is timed")
    parser.add_argument("--picture", default=picture, help="where the curves are drawn")
    return parser.parse_args()


def finish(equal: bool) -> None:
    if not equal:
        sys.exit(f"the losses differ by more than {EQUAL_LOSSES} within {EQUAL_STEPS} steps")
