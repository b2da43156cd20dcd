"""The sides of a case as calls: the function, and the function with its gradients, compiled for given arguments."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.case import JAXTE, TORCH, Case
from harness.counts import counts
from harness.passes import BOTH

HAS_TORCH = importlib.util.find_spec("torch") is not None


@dataclass(frozen=True)
class Ready:
    """A side that can be called.

    Attributes:
        call: makes one call and waits for it.
        results: makes one call; the arrays to compare, as NumPy's.
        compile_seconds: tracing, deriving, lowering and compiling.
        counts: see :func:`harness.counts.counts`.
    """

    call: Callable[[], Any]
    results: Callable[[], list[np.ndarray]]
    compile_seconds: float | None = None
    counts: dict[str, Any] = field(default_factory=dict)


def outputs(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def heads(case: Case, side: str, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """An adjoint for each output, drawn by its shape; none where an output holds integers."""
    shapes = outputs(jax.eval_shape(function(case, side), *args))
    if any(not jnp.issubdtype(s.dtype, jnp.floating) for s in shapes):
        return []
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s.shape).astype(s.dtype) for s in shapes]


def function(case: Case, side: str) -> Callable[..., Any]:
    return te.function(case.sides[side]) if side == JAXTE else case.sides[side]


def with_gradients(fn: Callable[..., Any], argnums: tuple[int, ...]) -> Callable[..., Any]:
    """``(h, *args)`` to the outputs of ``fn`` and the gradients of ``sum(h * fn(*args))``, all in one list.

    The outputs themselves and not that sum: XLA would merge the last step of a form into the reduction to one number, where
    no use of the function in a larger program does so, and small forms would be judged by how well that merges.
    """

    def run(h: Sequence[Any], *args: Any) -> list[Any]:
        def of_some(*some: Any) -> list[Any]:
            given = list(args)
            for n, x in zip(argnums, some, strict=True):
                given[n] = x
            return outputs(fn(*given))

        found, pull = jax.vjp(of_some, *(args[n] for n in argnums))
        return [*found, *pull(list(h))]

    return run


def prepare(case: Case, side: str, which: str, args: Sequence[np.ndarray], h: Sequence[np.ndarray]) -> Ready:
    """One pass of one side, compiled."""
    argnums = case.differentiated(args)
    if side == TORCH:
        return _torch(case.sides[side], which, args, h, argnums)
    fn = function(case, side)
    arrays = [jnp.asarray(x) for x in args]
    if which == BOTH:
        fn, arrays = with_gradients(fn, argnums), [[jnp.asarray(x) for x in h], *arrays]
    start = time.perf_counter()
    lowered = jax.jit(fn).lower(*arrays)
    compiled = lowered.compile()
    taken = time.perf_counter() - start

    def results() -> list[np.ndarray]:
        return [np.asarray(x) for x in outputs(compiled(*arrays))]

    return Ready(lambda: jax.block_until_ready(compiled(*arrays)), results, taken, counts(lowered, compiled))


def _torch(
    fn: Callable[..., Any],
    which: str,
    args: Sequence[np.ndarray],
    h: Sequence[np.ndarray],
    argnums: tuple[int, ...],
) -> Ready:
    """PyTorch on the CPU, eagerly."""
    # an opponent that need not be installed, and takes seconds to import
    torch = importlib.import_module("torch")
    tensors = [torch.from_numpy(np.array(x)) for x in args]
    tensors = [x if x.is_floating_point() else x.long() for x in tensors]
    weights = [torch.from_numpy(np.array(x)) for x in h]
    leaves = [tensors[n].requires_grad_(which == BOTH) for n in argnums]

    def forward() -> Any:
        with torch.no_grad():
            return outputs(fn(torch, *tensors))

    def both() -> Any:
        found = outputs(fn(torch, *tensors))
        return [*found, *torch.autograd.grad(found, leaves, weights)]

    call = both if which == BOTH else forward
    return Ready(call, lambda: [x.detach().numpy() for x in call()])
