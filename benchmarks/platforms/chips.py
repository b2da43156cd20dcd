"""Programs for eight chips: what jaxte emits, sharded by JAX, beside a ``shard_map`` by hand, with what moves between the chips.

    python benchmarks/platforms/chips.py --write                   # in the environment of the TPU: renews docs/results/platforms-chips.md
    python benchmarks/platforms/chips.py --only "stencil, rows"    # some rows
    python benchmarks/platforms/chips.py --host                    # the same rows partitioned by XLA for eight devices of the CPU

Each row is a function with its gradients, compiled for ``v5e:2x4``. Both sides get and return arrays that are sharded alike. Bytes are those that one
chip sends. The partitioner is XLA's; what is asked here is whether the emitted code leaves it what it needs: shifts as slices and pads, whose halos
are permuted between neighbours, and nothing that has to be gathered first.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
if "--host" in sys.argv:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
ROOT = Path(__file__).parents[2]
sys.path[0] = str(ROOT / "benchmarks")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import jaxte as te  # noqa: E402
from platforms.kernels import array_bytes  # noqa: E402
from timing import markdown  # noqa: E402

PAGE = ROOT / "docs" / "results" / "platforms-chips.md"
TOPOLOGY, CHIPS, AXIS = "v5e:2x4", 8, "x"
COLLECTIVES = ("collective-permute", "all-gather", "all-reduce", "reduce-scatter", "all-to-all")
_CALL = re.compile(rf"= (.*?) ({'|'.join(COLLECTIVES)})(-start)?\(")


@dataclass(frozen=True)
class Row:
    """A function of arrays, sharded.

    Attributes:
        name: what is computed, and along what it is sharded.
        ours: by jaxte, of whole arrays.
        by_hand: of the shards of one chip, within ``shard_map``.
        shapes: of the arguments.
        specs: their shardings; the gradients have the same.
        result: that of the result.
    """

    name: str
    ours: Callable[..., Any]
    by_hand: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    specs: tuple[P, ...]
    result: P


# --- the functions by jaxte


def stencil(u: Any) -> Any:
    """A step of the heat equation, zeros around."""
    n, m = u.shape

    def at(i: Any, j: Any) -> Any:
        inside = te.logical_and(te.logical_and(i >= 0, i < n), te.logical_and(j >= 0, j < m))
        return te.select(inside, u[i, j], 0.0)

    return te.compute(
        u.shape,
        lambda i, j: (
            u[i, j] + 0.1 * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * u[i, j])
        ),
        "heat",
    )


def convolution(x: Any, w: Any) -> Any:
    return te.ops.conv2d(x, w, padding="SAME")


def local_attention(q: Any, k: Any, v: Any) -> Any:
    """Each position attends to the eight before it and to itself."""
    n, d = q.shape
    c, w = te.reduce_axis((0, d), "c"), te.reduce_axis((0, 9), "w")

    def before(a: Any, i: Any, w: Any, e: Any) -> Any:
        return te.select(i + w >= 8, a[i + w - 8, e], 0.0)

    s = te.compute((n, 9), lambda i, w: te.sum(q[i, c] * before(k, i, w, c), axis=c), "s")
    p = te.ops.softmax(s)
    return te.compute((n, d), lambda i, e: te.sum(p[i, w] * before(v, i, w, e), axis=w), "o")


def pair_sums(x: Any, y: Any) -> Any:
    j, c = te.reduce_axis((0, y.shape[0]), "j"), te.reduce_axis((0, x.shape[1]), "c")
    far = te.compute((x.shape[0], y.shape[0]), lambda i, j: te.sum((x[i, c] - y[j, c]) ** 2, axis=c), "far")
    return te.compute((x.shape[0],), lambda i: te.sum(te.exp(-far[i, j]), axis=j), "pairs")


def contraction(a: Any, b: Any) -> Any:
    k = te.reduce_axis((0, a.shape[1]), "k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "product")


# --- the same on the shards of a chip


def from_neighbours(u: Any, before: int, after: int, axis: int = 0) -> Any:
    """A shard with rows of its neighbours around it, zeros at the ends."""
    up = [(n, n + 1) for n in range(CHIPS - 1)]
    down = [(n + 1, n) for n in range(CHIPS - 1)]
    size = u.shape[axis]
    parts = [lax.ppermute(lax.slice_in_dim(u, size - before, size, axis=axis), AXIS, up)] if before else []
    parts.append(u)
    if after:
        parts.append(lax.ppermute(lax.slice_in_dim(u, 0, after, axis=axis), AXIS, down))
    return jnp.concatenate(parts, axis)


def stencil_by_hand(u: Any) -> Any:
    wide = jnp.pad(from_neighbours(u, 1, 1), ((0, 0), (1, 1)))
    around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    return u + 0.1 * (around - 4 * u)


def plain_convolution(x: Any, w: Any, padding: Any = "SAME") -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=("NCHW", "OIHW", "NCHW"))


def convolution_of_rows(x: Any, w: Any) -> Any:
    return plain_convolution(from_neighbours(x, 1, 1, axis=2), w, ((0, 0), (1, 1)))


def local_attention_by_hand(q: Any, k: Any, v: Any) -> Any:
    n = q.shape[0]
    keys, values = from_neighbours(k, 8, 0), from_neighbours(v, 8, 0)
    s = jnp.stack([jnp.sum(q * keys[w : w + n], axis=1) for w in range(9)], axis=1)
    p = jax.nn.softmax(s, axis=1)
    return sum(p[:, w, None] * values[w : w + n] for w in range(9))


def pair_sums_by_hand(x: Any, y: Any) -> Any:
    return jnp.sum(jnp.exp(-jnp.sum((x[:, None] - y[None]) ** 2, axis=2)), axis=1)


def pair_sums_of_both(x: Any, y: Any) -> Any:
    return pair_sums_by_hand(x, lax.all_gather(y, AXIS, tiled=True))


def contraction_summed(a: Any, b: Any) -> Any:
    return lax.psum(a @ b, AXIS)


IMAGES, FILTERS = (8, 32, 64, 64), (64, 32, 3, 3)
LINES, SQUARE = ((4096, 64),) * 3, ((2048, 1024), (1024, 512))
X, ALL = P(AXIS), P()
ROWS = [
    Row("stencil, rows", stencil, stencil_by_hand, ((1024, 1024),), (X,), X),
    Row("convolution, batch", convolution, plain_convolution, (IMAGES, FILTERS), (X, ALL), X),
    Row("convolution, rows", convolution, convolution_of_rows, (IMAGES, FILTERS), (P(None, None, AXIS), ALL), P(None, None, AXIS)),
    Row("convolution, features", convolution, plain_convolution, (IMAGES, FILTERS), (ALL, X), P(None, AXIS)),
    Row("local attention, positions", local_attention, local_attention_by_hand, LINES, (X, X, X), X),
    Row("pair sums, one side", pair_sums, pair_sums_by_hand, ((1024, 3), (1024, 3)), (X, ALL), X),
    Row("pair sums, both sides", pair_sums, pair_sums_of_both, ((1024, 3), (1024, 3)), (X, X), X),
    Row("contraction, batch", contraction, jnp.matmul, SQUARE, (X, ALL), X),
    Row("contraction, space", contraction, contraction_summed, SQUARE, (P(None, AXIS), X), ALL),
    Row("contraction, features", contraction, jnp.matmul, SQUARE, (ALL, P(None, AXIS)), P(None, AXIS)),
]  # fmt: skip


def with_gradients(run: Callable[..., Any]) -> Callable[..., Any]:
    def both(head: Any, *args: Any) -> Any:
        value, pull = jax.vjp(run, *args)
        return value, pull(head)

    return both


def compiled(row: Row, by_hand: bool, mesh: Mesh, platform: str) -> str:
    """The text of one side of a row for the devices of ``mesh``."""
    if by_hand:
        run = jax.shard_map(row.by_hand, mesh=mesh, in_specs=row.specs, out_specs=row.result)
    else:
        run = te.function(row.ours, platform=platform)
    args = [
        jax.ShapeDtypeStruct(s, "float32", sharding=NamedSharding(mesh, spec))
        for s, spec in zip(row.shapes, row.specs, strict=True)
    ]
    value = jax.eval_shape(te.function(row.ours), *args)
    head = jax.ShapeDtypeStruct(value.shape, "float32", sharding=NamedSharding(mesh, row.result))
    out = NamedSharding(mesh, row.result), tuple(NamedSharding(mesh, s) for s in row.specs)
    traced = jax.jit(with_gradients(run), out_shardings=out).trace(head, *args)
    return str(traced.lower(lowering_platforms=(platform,)).compile().as_text())


def moved(text: str) -> tuple[dict[str, int], float]:
    """How many collectives of each kind a program has, and the bytes that one chip sends."""
    counts: Counter[str] = Counter()
    total = 0.0
    for line in text.splitlines():
        if found := _CALL.search(line):
            made, kind, started = found.groups()
            counts[kind] += 1
            # what starts has its operand beside its result; of what is gathered a chip sends its own part
            size = array_bytes(re.sub(r"S\(1\)|T\([\d,]+\)(\(\d+,\d+\))?", "", made)) / (2 if started else 1)
            total += size / CHIPS if kind == "all-gather" else size
    return dict(counts), total


def mesh_of(host: bool) -> Mesh:
    if host:
        return Mesh(np.array(jax.devices()[:CHIPS]), (AXIS,))
    try:
        found = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGY)
    except RuntimeError as error:
        raise SystemExit(
            f"nothing compiles for {TOPOLOGY} here: {error}; make platforms installs what does"
        ) from None
    return Mesh(np.array(found.devices).reshape(-1), (AXIS,))


def shown(found: tuple[dict[str, int], float]) -> str:
    counts, sent = found
    listed = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())) or "none"
    return f"{listed}: {sent / 1e3:.1f} kB"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    mesh, platform = mesh_of(options.host), "cpu" if options.host else "tpu"
    table: list[list[str]] = []
    for row in ROWS:
        if options.only and row.name not in options.only:
            continue
        own, hand = (moved(compiled(row, by_hand, mesh, platform)) for by_hand in (False, True))
        table.append([row.name, shown(own), shown(hand)])
        print(*table[-1], sep=" | ", flush=True)
    if options.write:
        head = f"# Platforms: eight chips\n\n`python benchmarks/platforms/chips.py --write`: forward + backward, for `{TOPOLOGY}`; collectives, and what one chip sends.\n"
        PAGE.write_text(
            head + "\n" + markdown(["function, sharded along", "jaxte", "`shard_map` by hand"], table) + "\n"
        )


if __name__ == "__main__":
    main()
