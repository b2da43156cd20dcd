"""What jaxte costs before anything runs: deriving, lowering, importing, calling.

    python benchmarks/latency.py conv2d        # one cold measurement in this process, as JSON
    python benchmarks/latency.py chain:2000

Each function measures once, in the process that it runs in; ``cold`` starts fresh ones and takes the median. All of
it is the work of one thread. ``cpu`` seconds are what it takes on an idle core; ``wall`` seconds grow with what else the
machine does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import jax
import jax.numpy as jnp
import numpy as np

from timing import interleaved

ROOT = Path(__file__).parent.parent


Times = dict[str, float]


class Stopwatch:
    """Processor and wall time since it was made."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def read(self) -> Times:
        return {"cpu": time.process_time() - self._cpu, "wall": time.perf_counter() - self._wall}


def cold(name: str, runs: int) -> Times:
    """The medians of what the function ``name`` of this file measures, each time in a fresh process."""
    taken = [in_fresh_process(name) for _ in range(runs)]
    return {part: median(t[part] for t in taken) for part in taken[0]}


def in_fresh_process(name: str) -> Times:
    done = subprocess.run(
        [sys.executable, __file__, name], capture_output=True, text=True, cwd=ROOT, check=False
    )
    if done.returncode:
        raise RuntimeError(f"measuring {name}:\n{done.stderr}")
    return json.loads(done.stdout)


def importing() -> Times:
    """``import jaxte`` after ``import jax``."""
    watch = Stopwatch()
    import jaxte

    assert jaxte.__version__
    return watch.read()


def conv2d() -> Times:
    """Both adjoints of a convolution with stride 2 and padding 1, to the text of it and of them."""
    import jaxte as te

    jax.devices()  # starting XLA's client is JAX's own time
    X, W = te.placeholder((8, 16, 32, 32), name="X"), te.placeholder((32, 16, 3, 3), name="W")
    Y = te.ops.conv2d(X, W, strides=2, padding=1)
    H = te.placeholder(Y.shape, name="H")
    watch = Stopwatch()
    te.source([Y, *te.differentiate(Y, [X, W], head=H)])
    return watch.read()


def digits() -> Times:
    """The whole module of the digits network's loss: defined, differentiated, lowered and written."""
    sys.path.insert(0, str(ROOT / "examples"))
    import digits as example

    params = jax.tree.map(np.asarray, example.initial_params(np.random.default_rng(0)))
    images, targets = np.zeros((example.BATCH, 1, 8, 8), "float32"), np.zeros((example.BATCH, 10), "float32")
    watch = Stopwatch()
    example.loss.source(params, images, targets)
    return watch.read()


def chain(tensors: int) -> Times:
    """A graph of so many tensors, each read by the next one."""
    import jaxte as te

    watch = Stopwatch()
    X = te.placeholder((16,), name="X")
    T: te.Tensor = X
    for _ in range(tensors):
        T = te.compute((16,), lambda i, T=T: te.tanh(T[i]) * 1.01, "T")
    te.source(te.differentiate(T, [X], head=te.placeholder(T.shape, name="H")))
    return watch.read()


def deep(levels: int) -> Times:
    """One tensor whose body is so many calls deep."""
    import jaxte as te

    def body(i: te.Axis) -> te.Expr:
        value = X[i]
        for level in range(levels):
            value = te.sin(value) + level
        return value

    watch = Stopwatch()
    X = te.placeholder((16,), name="X")
    Y = te.compute((16,), body, "Y")
    te.source(te.differentiate(Y, [X], head=te.placeholder(Y.shape, name="H")))
    return watch.read()


def call() -> Times:
    """A call of a compiled function and of the same function under a bare ``jax.jit``: seconds per call."""
    import jaxte as te

    x, w = jnp.ones((4, 4)), jnp.ones((4, 4))
    plain = jax.jit(lambda x, w: x @ w.T)
    function = te.function(lambda x, w: te.ops.dense(x, w))
    repeat = range(1000)

    def calls(fn):
        return lambda: [fn(x, w) for _ in repeat][-1]

    taken = interleaved({"jit": calls(plain), "jaxte": calls(function)}, rounds=9)
    return {name: total / len(repeat) for name, total in taken.items()}


def costs(stride: int) -> tuple[int, int]:
    """``te.cost`` of the adjoints of a small convolution: iterations and memory."""
    import jaxte as te

    X, W = te.placeholder((1, 2, 10, 10), name="X"), te.placeholder((2, 2, 3, 3), name="W")
    Y = te.ops.conv2d(X, W, strides=stride)
    found = te.cost(te.differentiate(Y, [X, W], head=te.placeholder(Y.shape, name="H")))
    return found.iterations, found.memory


MEASUREMENTS = {"import": importing, "conv2d": conv2d, "digits": digits, "call": call}


if __name__ == "__main__":
    which, *size = sys.argv[1].split(":")
    measured = {"chain": chain, "deep": deep}[which](int(size[0])) if size else MEASUREMENTS[which]()
    print(json.dumps(measured))
