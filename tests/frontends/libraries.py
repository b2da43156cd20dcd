"""The jaxprs of public functions of JAX and of libraries: which primitives they are made of, and what becomes of these.

python -m tests.frontends.libraries     # renews the table of libraries in docs/results/primitives.md
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.frontends.jaxpr.coverage import row

PAGE = Path(__file__).parent.parent.parent / "docs" / "results" / "primitives.md"
BEGIN, END = "<!-- libraries -->", "<!-- /libraries -->"
MODULES = (
    *("jax.numpy", "jax.numpy.fft", "jax.numpy.linalg", "jax.nn", "jax.image", "jax.lax", "jax.lax.linalg"),
    *(
        "jax.scipy.fft",
        "jax.scipy.integrate",
        "jax.scipy.interpolate",
        "jax.scipy.linalg",
        "jax.scipy.ndimage",
    ),
    *(
        "jax.scipy.signal",
        "jax.scipy.spatial.transform",
        "jax.scipy.special",
        "jax.scipy.stats.norm",
        "jax.scipy.stats.gamma",
    ),
    *("optax.losses", "optax.projections"),
)
X, V, N = np.ones((4, 4), "float32"), np.ones(4, "float32"), np.arange(4)
CALLS: tuple[tuple[Any, ...], ...] = (
    *(
        (X,),
        (X, X),
        (V,),
        (V, V),
        (X, 1),
        (X, X, X),
        (V, V, V),
        (X, (1, 2)),
        (X, X, 1),
        (X, N),
        (N,),
        (N, N),
        (X, N, 1),
    ),
    *((4,), ((4, 4),), (4, 4), ((X, X),), (X, (2, 8)), (X, (8, 8), "bilinear"), (X, 0, 1), (X, V, V, V)),
)


def traced(function: Callable[..., Any]) -> Any:
    """The jaxpr of ``function`` for the first arguments that it takes; None for none."""
    for args in CALLS:
        arrays = [a for a in args if isinstance(a, np.ndarray)]

        def call(*own: Any, args: tuple[Any, ...] = args) -> Any:
            left = iter(own)
            return function(*(next(left) if isinstance(a, np.ndarray) else a for a in args))

        try:
            return jax.make_jaxpr(call)(*map(jnp.asarray, arrays))
        except Exception:  # whatever a function of a library says of arguments that are not its own
            continue
    return None


def primitives(jaxpr: Any) -> Iterator[str]:
    """The primitives of a jaxpr and of the jaxprs in it."""
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from primitives(inner)


def functions(name: str) -> dict[str, Callable[..., Any]]:
    """The public functions of a module; empty where it is not installed."""
    if importlib.util.find_spec(name.split(".")[0]) is None:
        return {}
    module = importlib.import_module(name)
    members = {n: getattr(module, n) for n in dir(module) if not n.startswith("_")}
    return {
        n: f for n, f in members.items() if callable(f) and not inspect.isclass(f) and not n.endswith("_p")
    }


def layers() -> dict[str, dict[str, Callable[[], Any]]]:
    """Layers of flax and equinox, each as a function that makes its jaxpr, where these are installed."""
    found: dict[str, dict[str, Callable[[], Any]]] = {}
    image, rows = jnp.ones((2, 8, 8, 4)), jnp.ones((2, 6, 4))
    if importlib.util.find_spec("flax"):
        nn = importlib.import_module("flax.linen")

        def of(module: Any, *args: Any) -> Callable[[], Any]:
            variables = jax.eval_shape(module.init, jax.random.key(0), *args)
            return lambda: jax.make_jaxpr(module.apply)(variables, *args)

        modules = (
            nn.Dense(3),
            nn.LayerNorm(),
            nn.RMSNorm(),
            nn.GroupNorm(2),
            nn.MultiHeadDotProductAttention(2),
            nn.Conv(4, (3, 3)),
            nn.ConvTranspose(4, (3, 3)),
        )
        found["flax.linen"] = {type(m).__name__: of(m, image) for m in modules}
        found["flax.linen"] |= {"avg_pool": lambda: jax.make_jaxpr(lambda x: nn.avg_pool(x, (2, 2)))(image)}
        found["flax.linen"] |= {"max_pool": lambda: jax.make_jaxpr(lambda x: nn.max_pool(x, (2, 2)))(image)}
        cells = (nn.LSTMCell(4), nn.GRUCell(4), nn.SimpleCell(4))
        found["flax.linen"] |= {f"RNN({type(c).__name__})": of(nn.RNN(c), rows) for c in cells}
    if importlib.util.find_spec("equinox"):
        eqn = importlib.import_module("equinox").nn
        key = jax.random.key(0)
        planes, row = jnp.ones((4, 8, 8)), jnp.ones(4)
        made = {
            "Linear": (eqn.Linear(4, 3, key=key), (row,)),
            "Conv2d": (eqn.Conv2d(4, 4, 3, key=key), (planes,)),
            "ConvTranspose2d": (eqn.ConvTranspose2d(4, 4, 3, key=key), (planes,)),
            "LayerNorm": (eqn.LayerNorm(4), (row,)),
            "GroupNorm": (eqn.GroupNorm(2, 4), (planes,)),
            "MaxPool2d": (eqn.MaxPool2d(2, 2), (planes,)),
            "AvgPool2d": (eqn.AvgPool2d(2, 2), (planes,)),
            "AdaptiveAvgPool2d": (eqn.AdaptiveAvgPool2d(3), (planes,)),
            "GRUCell": (eqn.GRUCell(4, 4, key=key), (row, row)),
            "LSTMCell": (eqn.LSTMCell(4, 4, key=key), (row, (row, row))),
            "MultiheadAttention": (eqn.MultiheadAttention(2, 4, key=key), (rows[0],) * 3),
            "RotaryPositionalEmbedding": (eqn.RotaryPositionalEmbedding(4), (rows[0],)),
            "Embedding": (eqn.Embedding(6, 4, key=key), (jnp.int32(2),)),
            "MLP": (eqn.MLP(4, 3, 8, 2, key=key), (row,)),
        }
        found["equinox.nn"] = {n: (lambda f=f, a=a: jax.make_jaxpr(f)(*a)) for n, (f, a) in made.items()}
    return found


def jaxprs(module: str, every: int = 1) -> dict[str, Any]:
    """The jaxprs of each of ``every`` functions of a module."""
    listed = list(functions(module).items())[::every]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = {name: traced(f) for name, f in listed}
    return {name: jaxpr for name, jaxpr in made.items() if jaxpr is not None}


def kept(names: Sequence[str]) -> set[str]:
    return {n for n in names if row(n)[0] == "kept"}


def table_row(module: str, found: dict[str, Any]) -> str:
    """How many functions there are, how many are made of primitives that are raised alone, and what the rest keeps."""
    inside = {name: kept(list(primitives(jaxpr.jaxpr))) for name, jaxpr in found.items()}
    whole = sum(not k for k in inside.values())
    names = sorted({n for k in inside.values() for n in k})
    return f"| `{module}` | {len(found)} | {whole} | {', '.join(f'`{n}`' for n in names)} |"


def table() -> str:
    lines = [
        "| library | functions traced | of raised primitives alone | what the others keep |",
        "|---|---|---|---|",
    ]
    lines += [table_row(module, found) for module in MODULES if (found := jaxprs(module))]
    lines += [table_row(name, {n: f() for n, f in made.items()}) for name, made in layers().items()]
    return "\n".join(lines)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")
