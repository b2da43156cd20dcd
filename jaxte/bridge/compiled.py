"""A graph and the jitted function that runs it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.tree_util import tree_unflatten

from jaxte.autodiff.overrides import overrides_of
from jaxte.bridge.compile import Graph
from jaxte.bridge.lazy import lazy
from jaxte.bridge.options import NO_OPTIONS, Options
from jaxte.bridge.outputs import Outputs
from jaxte.lower.rewrites.gather_layout import gathers_laid_out
from jaxte.meaning.fact_checks import check_facts
from jaxte.planning.graph import planned


@dataclass(frozen=True, eq=False)
class Compiled:
    """A graph and what runs it."""

    graph: Graph
    outputs: Outputs
    debug: bool = False

    @lazy
    def run(self) -> Any:
        """The compiled function of flat arrays; it returns the pytree of the outputs."""
        dtypes = [t.dtype for t in self.graph.inputs]
        call, single, tree = self.graph.call, self.outputs.is_single, self.outputs.tree
        several = len(self.outputs.tensors) > 1

        def run(*arrays: Any) -> Any:
            # Drops weak types, which would not promote as the placeholders do; nothing otherwise.
            strong = [jax.lax.convert_element_type(a, d) for a, d in zip(arrays, dtypes, strict=True)]
            if self.debug:
                jax.debug.callback(self._check, *strong)
            result = call(*equally_varying(strong))
            return result if single else tree_unflatten(tree, result if several else (result,))

        run.__name__ = self.graph.call.__name__
        return self._checked(jax.jit(run, inline=True)) if self.debug else jax.jit(run, inline=True)

    def _check(self, *arrays: Any) -> None:
        check_facts(dict(zip(self.graph.inputs, arrays, strict=True)))

    def _checked(self, run: Any) -> Any:
        """``run`` after a test of the facts, where the arrays are there to be tested."""

        @functools.wraps(run)
        def checked(*arrays: Any) -> Any:
            if not any(isinstance(a, jax.core.Tracer) for a in arrays):
                self._check(*arrays)
            return run(*arrays)

        checked.lower = run.lower  # type: ignore[attr-defined]
        return checked


def equally_varying(arrays: Sequence[Any]) -> Sequence[Any]:
    """Inside ``jax.shard_map``, all arrays varying over the same mesh axes.

    A custom_vjp has to return cotangents that vary as its arguments do. Those of an argument that is the same on every
    device are summed over the devices, which is the transpose of the cast.
    """
    own = [_varying(a) for a in arrays]
    every = frozenset().union(*own)
    if not every:
        return arrays
    missing = [tuple(sorted(every - vma, key=str)) for vma in own]
    return [jax.lax.pcast(a, m, to="varying") if m else a for a, m in zip(arrays, missing, strict=True)]


def _varying(array: Any) -> frozenset[Any]:
    """The mesh axes that ``array`` varies over, under the names that releases of JAX have for them."""
    aval = jax.typeof(array)
    manual = getattr(aval, "manual_axis_type", None)
    return manual.varying if manual is not None else getattr(aval, "vma", frozenset())


def compiled(name: str, inputs: Sequence[Any], outputs: Outputs, options: Options = NO_OPTIONS) -> Compiled:
    """The code between ``inputs`` and ``outputs``."""
    own = options.override, options.fdiff, options.policy()
    tensors = outputs.tensors
    if not overrides_of(tensors, options.override) and options.fdiff is None:
        tensors = planned(gathers_laid_out(tensors))
    graph = Graph(name, tuple(inputs), tensors, outputs.with_head, *own)
    return Compiled(graph, outputs, options.debug)
