"""Three meanings of one definition: the interpreter's, that of its array programs, that of the compiled module.

The first that differs from the one before it says where the fault is: in what makes nodes of definitions (forms, rules, tiles), or in
what makes text of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import numpy as np

import jaxte as te
from jaxte.bridge.compiled.compile import Graph
from jaxte.lower.code.vocabulary import Program
from jaxte.lower.cost.policy import Policy
from jaxte.tensors.tensor import Tensor
from tests.agreement import assert_close, compiled_run, draw_numbers, inputs_of
from tests.lower.evaluation.program import evaluate_program

FORMS = "wrong from definitions to nodes"
TEXT = "wrong from nodes to the module"
Arrays = Mapping[Tensor, np.ndarray]


class Pass:
    """A definition with its derivative, as ``te.function`` has them, and numbers for both."""

    def __init__(self, output: Tensor, feeds: Arrays, policy: Policy | None = None, seed: int = 0) -> None:
        self.output = output
        self.graph = Graph("f", tuple(inputs_of([output])), (output,), (0,), policy=policy or Policy())
        self.back = self.graph.backward
        rng = np.random.default_rng(seed)
        self.feeds = {**feeds, **{head: draw_numbers(rng, head) for head in self.back.heads}}

    @property
    def results(self) -> list[Tensor]:
        return [self.output, *self.back.adjoints]

    def interpreted(self) -> list[np.ndarray]:
        """What the definitions say."""
        needed = inputs_of(self.results)
        return [np.asarray(a) for a in te.interpret(self.results, {t: self.feeds[t] for t in needed})]

    def evaluated(self) -> list[np.ndarray]:
        """What the nodes say: forward, forward with residuals, backward."""
        values = dict(self.feeds)
        for program in self.graph.programs:
            values |= evaluated(program, values)
        return [values[t] for t in self.results]

    def compiled(self) -> list[np.ndarray]:
        """What the module returns."""
        inputs, heads = list(self.graph.inputs), list(self.back.heads)
        places = list(self.graph.differentiable)

        def run(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
            own, fn = list(arrays[: len(inputs)]), self.graph.module["fn"]
            if not self.back.adjoints:
                return (fn(*own),)
            value, pull = jax.vjp(fn, *own)
            cotangents = pull(*arrays[len(inputs) :])
            return (value, *(cotangents[n] for n in places))

        return list(compiled_run(run, [self.feeds[t] for t in (*inputs, *heads)], optimised=False))


def evaluated(program: Program, values: Arrays) -> dict[Tensor, np.ndarray]:
    """The results of ``program`` by its nodes."""
    arrays = [values[t] for _, t in program.params]
    return dict(zip(program.tensors, evaluate_program(program, arrays), strict=True))


def compare(
    results: Sequence[Tensor], found: Sequence[np.ndarray], expected: Sequence[np.ndarray], stage: str
) -> None:
    """Equal up to rounding; an infinity may stand for a NaN, since a factor may have left a sum."""
    for tensor, own, wanted in zip(results, found, expected, strict=True):
        both = ~np.isfinite(own) & ~np.isfinite(wanted) if own.shape == wanted.shape else np.array(False)
        assert_close(np.where(both, 0, own), np.where(both, 0, wanted), f"{stage}: {tensor!r}")


def check_stages(own: Pass, compile_too: bool = True) -> None:
    """Raises where two meanings differ, with the stage between them."""
    nodes = own.evaluated()
    compare(own.results, nodes, own.interpreted(), FORMS)
    if compile_too:
        compare(own.results, own.compiled(), nodes, TEXT)
