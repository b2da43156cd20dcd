"""What this machine does in a second: the row of numbers that ``jaxte.lower.cost.platforms`` has for its platform.

    python benchmarks/rates.py

Prints a table beside the row in use. Each kind of work is one small program in float32, timed in turn with the others;
medians. ``cache`` is the largest array whose passes are still twice as fast as those over arrays that are far larger.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxte.lower.cost.platform import Rates
from jaxte.lower.cost.platforms import platform_of
from timing import interleaved, markdown

_CHAIN = 64
_TERMS = 256


@dataclass(frozen=True)
class Probe:
    """A program that does ``amount`` units of one kind of work."""

    kind: str
    amount: float
    call: Callable[[], Any]


def _random(*shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape), "float32")


def _conv(x: Any, w: Any, groups: int) -> Any:
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"), feature_group_count=groups
    )


def _volume_conv(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1, 1), "SAME", dimension_numbers=("NCDHW", "OIDHW", "NCDHW"))


def _taps(x: Any) -> Any:
    n, m = x.shape[-2] - 4, x.shape[-1] - 4
    return sum(x[..., i : i + n, j : j + m] for i in range(5) for j in range(5))


def _chained(x: Any) -> Any:
    """Products too small to take time themselves."""
    for _ in range(_CHAIN):
        x = x @ x
    return x


def _compiled(x: Any) -> Any:
    """What XLA makes of many shifted terms, compiled anew."""
    return jax.jit(lambda x: sum(x[:, i : i + 200] * (1 + i) for i in range(_TERMS))).lower(x).compile()


def probes(large: int) -> Iterator[Probe]:
    """One program of each kind; ``large`` is the number of elements of arrays that fit in no cache."""
    a, x, image = _random(1024, 1024), _random(large), _random(8, 3, 256, 256)
    yield _probe("dot", 2 * 1024**3, jnp.matmul, a, a)
    dense = _random(8, 64, 32, 32), _random(64, 64, 3, 3)
    yield _probe("convolution", 2 * 8 * 64 * 64 * 32 * 32 * 9, lambda x, w: _conv(x, w, 1), *dense)
    grouped = _random(8, 64, 32, 32), _random(64, 1, 3, 3)
    yield _probe("grouped_convolution", 2 * 8 * 64 * 32 * 32 * 9, lambda x, w: _conv(x, w, 64), *grouped)
    volume = _random(2, 16, 24, 24, 24), _random(16, 16, 3, 3, 3)
    yield _probe("volume_convolution", 2 * 2 * 16 * 16 * 24**3 * 27, _volume_conv, *volume)
    yield _probe("stream", 8 * large, lambda x: x + 1, x)
    yield _probe("tap", 25 * 8 * 3 * 252 * 252, _taps, image)
    window = (1, 1, 5, 5)
    yield _probe(
        "window",
        25 * 8 * 3 * 252 * 252,
        lambda x: lax.reduce_window(x, 0.0, lax.add, window, (1, 1, 1, 1), "VALID"),
        image,
    )
    yield _probe("scan", 8 * 100_000, lambda x: jnp.cumsum(x, axis=1), _random(8, 100_000))
    yield _probe(
        "step",
        100_000,
        lambda x: lax.scan(lambda t, e: (t + e, t + e), 0.0, x, unroll=4)[1],
        _random(100_000),
    )
    yield _probe("transcendental", 1e6, lambda x: jnp.exp(x), _random(1_000_000))
    at = jnp.asarray(np.random.default_rng(1).integers(0, 1_000_000, 1_000_000), "int32")
    yield _probe("gather", 1e6, lambda x, i: x[i], _random(1_000_000), at)
    yield _probe("scatter", 1e6, lambda x, i: jnp.zeros_like(x).at[i].add(x), _random(1_000_000), at)
    yield _probe("kernel", _CHAIN, _chained, _random(4, 4))
    yield Probe("written", _TERMS, lambda: _compiled(_random(96, 512)))


def _probe(kind: str, amount: float, function: Callable[..., Any], *args: Any) -> Probe:
    run = jax.jit(function)
    return Probe(kind, amount, lambda: run(*args))


_LONGER = 10  # rounds for functions of few elements, of which a call takes microseconds
_WITHIN = 0.4  # what an inverse function takes: arguments are below three
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(jnp, name) for name in ("expm1", "log1p", "sinh", "cosh", "sin", "cos", "tan", "cbrt")},
    **{name: getattr(jax.nn, name) for name in ("softplus", "gelu")},
    **{name: getattr(lax, name) for name in ("erfc", "lgamma", "digamma")},
    "asinh": jnp.arcsinh,
    "acosh": lambda x: jnp.arccosh(1 + x),
    "atanh": lambda x: jnp.arctanh(x * _WITHIN),
    "asin": lambda x: jnp.arcsin(x * _WITHIN),
    "acos": lambda x: jnp.arccos(x * _WITHIN),
    "atan": jnp.arctan,
    "atan2": lambda x: jnp.arctan2(x, 1 - x),
    "erfinv": lambda x: lax.erf_inv(x * _WITHIN),
    "power": lambda x: x ** (1 + x),
    "logaddexp": lambda x: jnp.logaddexp(x, 1 - x),
}


def function_times(rounds: int) -> dict[str, float]:
    """How many times as long as ``exp`` an element of each function takes, in the cache and beyond what reading and adding takes."""
    x = jnp.abs(_random(256, 1024)) + 0.2
    own = {"add": lambda x: x, "exp": jnp.exp, **_FUNCTIONS}
    calls = {name: _probe(name, x.size, lambda x, f=f: f(x) + x, x).call for name, f in own.items()}
    seconds = interleaved(calls, rounds)
    exp = seconds["exp"] - seconds["add"]
    return {name: (seconds[name] - seconds["add"]) / exp for name in _FUNCTIONS}


def measure(rounds: int, large: int = 16_000_000) -> dict[str, float]:
    """Units a second of each kind."""
    found = list(probes(large))
    seconds = interleaved({p.kind: p.call for p in found}, rounds)
    return {p.kind: p.amount / seconds[p.kind] for p in found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=11, help="timed calls of each program")
    args = parser.parse_args()
    device = jax.devices()[0]
    used: Rates = platform_of(device.platform).rates
    measured = measure(args.rounds)
    rows = [(kind, f"{rate:.2g}", f"{getattr(used, kind):.2g}") for kind, rate in measured.items()]
    print(f"{device.device_kind}, jax {jax.__version__}, units a second\n")
    print(markdown(("kind of work", "measured", "in use"), rows))
    functions = platform_of(device.platform).functions
    times = function_times(args.rounds * _LONGER)
    rows = [(name, f"{own:.1f}", f"{functions.of(name)}") for name, own in times.items()]
    print(markdown(("times as long as exp", "measured", "in use"), rows))


if __name__ == "__main__":
    main()
