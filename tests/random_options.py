"""Random graphs under options: checkpoints of recurrences, budgets of memory, rows that are left out, on each platform.

Each is a seed that says all of it, and is checked beside the interpreter, or beside differences of what it gives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from jaxte.lower.program.rows import rows
from jaxte.planning.asked import planned_with
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute
from tests.agreement import assert_close, inputs_of, interpreted, pullback_of
from tests.choices import Seeded
from tests.lower.evaluation.program import evaluate_program
from tests.random_definitions import definition
from tests.random_recurrences import STEP, RandomRecurrences

Notes = dict[str, Any]


def check_checkpoints(seed: int) -> Notes:
    """Recurrences that keep some of their states: adjoints, and what a second derivative makes of a direction, beside differences.

    Raises:
        AssertionError: they differ.
    """
    own, f = Seeded(f"checkpoints {seed}"), RandomRecurrences(seed, mixed=bool(seed % 2))
    d = f.definition()
    inputs = inputs_of([d.output])
    names = dict.fromkeys(t.name for t in topological_order([d.output]) if isinstance(t, Compute))
    state = 8 * f.columns
    save = own.among(
        (
            "nothing",
            "single_use",
            *(state * own.number(0, 2 * f.rows) for _ in range(4)),
            [n for n in names if own.number(0, 1)],
            {n: bool(own.number(0, 1)) for n in names},
        )
    )
    rng = np.random.default_rng(seed)
    arrays, ways = ([rng.standard_normal(t.shape) for t in inputs] for _ in range(2))
    head = rng.standard_normal(d.output.shape)
    fn = te.function(inputs, d.output, save=save)

    def pulled(*given: Any) -> Any:
        value, pull = jax.vjp(fn, *given)
        return value, pull(jnp.asarray(head))

    at = te.placeholder(d.output.shape, d.output.dtype, "H")
    adjoints = te.differentiate(d.output, inputs, head=at)

    def meant(step: float) -> list[np.ndarray]:
        moved = {t: a + step * w for t, a, w in zip(inputs, arrays, ways, strict=True)}
        return [interpreted(t, {**moved, at: head}) for t in adjoints]

    (_, found), (_, slopes) = (
        jax.jvp(pulled, arrays, ways) if seed % 3 == 0 else (pulled(*arrays), (None, None))
    )
    for t, a, expected in zip(inputs, found, meant(0.0), strict=True):
        assert_close(np.asarray(a), expected, f"d{t.name}, save={save}", 1e-8)
    if slopes is not None:
        apart = [(a - b) / (2 * STEP) for a, b in zip(meant(STEP), meant(-STEP), strict=True)]
        for t, slope, expected in zip(inputs, slopes, apart, strict=True):
            assert_close(np.asarray(slope), expected, f"slope of d{t.name}, save={save}", 1e-5)
    return {}


def check_budgets(seed: int) -> Notes:
    """A definition, or a graph of recurrences, and its adjoints in few bytes, which may be too few, and without some of the rows.

    Raises:
        AssertionError: what is emitted has another value than the interpreter gives.
    """
    own = Seeded(f"budgets {seed}")
    d = RandomRecurrences(seed, mixed=True).definition() if seed % 2 else definition(own, stages=(1, 2))
    policy = Policy(own.among(("cpu", "gpu", "tpu")), max_memory=own.among((64, 256, 1024, None)))
    names = [name for kind in rows().values() for name, _ in kind]
    without = frozenset(own.among(names) for _ in range(own.number(0, 6)))
    policy = replace(policy, without=without)
    with planned_with(policy.facts.intermediates, policy.without, policy.debug):
        p = pullback_of(d.output, d.feeds(), d.variables, d.seed)
        tensors = [p.output, *(p.adjoints if p.variables else [])]
        expected = [interpreted(t, p.feeds) for t in tensors]
        try:
            program = lower("forward", inputs_of(tensors), tensors, policy)
        except te.LoweringError:
            return {"notes": ["refused"]}
    found = evaluate_program(program, [p.feeds[t] for t in inputs_of(tensors)])
    for tensor, value, meaning in zip(tensors, found, expected, strict=True):
        assert_close(value, meaning, f"{tensor.name} with {policy}", 1e-8)
    return {}
