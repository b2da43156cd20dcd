"""A graph and the jitted function that runs it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.tree_util import tree_unflatten

from jaxte.bridge.calls.options import NO_OPTIONS, Options
from jaxte.bridge.calls.outputs import Outputs
from jaxte.bridge.compiled.compile import Graph
from jaxte.bridge.primitive.lazy import lazy
from jaxte.bridge.primitive.primitive import bind
from jaxte.derivatives.overrides import overrides_of
from jaxte.lower.code.identifiers import identifier
from jaxte.lower.rewrites.gather_layout import LAID_OUT, gathers_laid_out
from jaxte.meaning.fact_checks import check_facts
from jaxte.planning.asked import planned_with
from jaxte.planning.graph import planned
from jaxte.tensors.graph import topological_order


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
        program, single, tree = self.graph.program, self.outputs.is_single, self.outputs.tree

        def run(*arrays: Any) -> Any:
            # Drops weak types, which would not promote as the placeholders do; nothing otherwise.
            strong = [jax.lax.convert_element_type(a, d) for a, d in zip(arrays, dtypes, strict=True)]
            if self.debug:
                jax.debug.callback(self._check, *strong)
            results = bind(program, *strong)
            return results[0] if single else tree_unflatten(tree, results)

        run.__name__ = identifier(self.graph.name)
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


def compiled(name: str, inputs: Sequence[Any], outputs: Outputs, options: Options = NO_OPTIONS) -> Compiled:
    """The code between ``inputs`` and ``outputs``."""
    policy = options.policy()
    tensors = outputs.tensors
    if options.save.chosen:
        options.save.check(topological_order([*inputs, *tensors]))
    if not overrides_of(tensors, options.override) and options.fdiff is None:
        with planned_with(policy.facts.intermediates, policy.without, policy.debug):
            tensors = planned(tensors if LAID_OUT in policy.without else gathers_laid_out(tensors))
    graph = Graph(name, tuple(inputs), tensors, outputs.with_head, options.override, options.fdiff, policy)
    return Compiled(graph, outputs, options.debug)
