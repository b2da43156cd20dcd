"""No form falls by more than its work between two sizes: counts of functions and their gradients at sizes that are doubled."""

import jax
import jax.numpy as jnp
import pytest

import jaxte as te
from tests.doubled_functions import FUNCTIONS

SIZES = (512, 1024, 2048)
MOST = 2.5  # times the operations for each of the definition that one size may take beside the one before
FEWEST = 8  # rows in a tile
SMALL = (64, 128, 256, 512)


def attention_by_distance(q, k, v, bias):
    n = q.shape[0]
    c, j = te.reduce_axis((0, q.shape[1]), "c"), te.reduce_axis((0, n), "j")
    scores = te.compute(
        (n, n), lambda i, j: te.sum(q[i, c] * k[j, c], axis=c) + bias[i - j + n - 1], "scores"
    )
    p = te.ops.softmax(scores)
    return te.compute(v.shape, lambda i, c: te.sum(p[i, j] * v[j, c], axis=j), "o")


def distances(x, w):
    n = x.shape[0]
    c, j = te.reduce_axis((0, x.shape[1]), "c"), te.reduce_axis((0, n), "j")
    d = te.compute((n, n), lambda i, j: te.sum((x[i, c] - x[j, c]) ** 2, axis=c), "d")
    return te.compute((n,), lambda i: te.sum(te.exp(-d[i, j]) * w[j], axis=j), "y")


def long_window(x):
    k = te.reduce_axis((0, x.shape[0] // 16), "k")
    return te.compute((x.shape[0] - x.shape[0] // 16,), lambda i: te.max(x[i + k], axis=k), "y")


def prefixes(x, w):
    k = te.reduce_axis((0, x.shape[0]), "k")
    return te.compute(x.shape, lambda i: te.sum(te.sin(x[k]), axis=k, where=k <= i) * w[i], "y")


def turned_bits(x):
    bits = min(5, x.shape[0].bit_length() - 1)
    return te.compute(x.shape, lambda s: sum((x[s ^ (1 << q)] for q in range(bits)), start=x[s]), "y")


SHAPES = {
    attention_by_distance: lambda n: [(n, 32)] * 3 + [(2 * n - 1,)],
    distances: lambda n: [(n, 3), (n,)],
    long_window: lambda n: [(n,)],
    prefixes: lambda n: [(n,), (n,)],
    turned_bits: lambda n: [(n,)],
}


def rows_of_tiles(told):
    """Of each pass in tiles; steps take one position at a time, each for all of the result."""
    return [t.size for made, t in told.tiles.items() if not str(told.forms[made]).startswith("steps of")]


@pytest.mark.parametrize("build", SHAPES, ids=lambda f: f.__name__)
def test_counts_at_doubled_sizes(build) -> None:
    before = None
    for n in SIZES:
        told = te.explain(
            te.function(build), *[jax.ShapeDtypeStruct(s, jnp.float32) for s in SHAPES[build](n)]
        )
        assert all(size >= FEWEST for size in rows_of_tiles(told)), told.forms
        verdicts = told.verdicts.values()
        share = sum(v.flops for v in verdicts) / max(1, sum(v.asked for v in verdicts))
        assert before is None or share <= MOST * max(1.0, before), told.forms
        before = share


@pytest.mark.filterwarnings("ignore::jaxte.PerformanceWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_three_doublings(name: str) -> None:
    """Operations for each of the definition, bytes held for each point that counts, and reads and additions at positions that are data."""
    build, shapes = FUNCTIONS[name]
    before: tuple[float, float] | None = None
    for n in SMALL:
        told = te.explain(te.function(build), *[jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes(n)])
        verdicts = told.verdicts.values()
        work = sum(v.flops for v in verdicts) / max(1, sum(v.asked for v in verdicts))
        held = max((v.held / (v.needed + 4 * v.counting) for v in verdicts), default=0.0)
        assert not told.scatters, told.forms
        assert all(size >= FEWEST for size in rows_of_tiles(told)), told.forms
        if before is not None:
            assert work <= MOST * max(1.0, before[0]), told.forms
            assert held <= MOST * max(1.0, before[1]), told.forms
        before = work, held
