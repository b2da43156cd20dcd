"""Recorded counts are those of XLA, and what is not recorded is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings

from harness.case import CORPUS, IDIOMATIC, load, names
from harness.inputs import draw
from harness.sides import function, heads, with_gradients
from tests import xla_counts
from tests.agreement import QUICK
from tests.xla_counts import Fused, count, recorded

QUICK_RUN = settings.default.max_examples < 1000


def lowered(fn: Any, *args: Any) -> Any:
    return jax.jit(fn).lower(*args)


def plain(name: str) -> Fused:
    """The idiomatic side with its gradients, of which the text is that of JAX alone."""
    case = load(name)
    args = draw(case.inputs_at("quick"))
    both = with_gradients(function(case, IDIOMATIC), case.differentiated(args))
    return Fused(lowered(both, heads(case, IDIOMATIC, args), *args))


def test_what_is_recorded_is_what_xla_counts() -> None:
    if not recorded():
        pytest.skip("another release of XLA, which counts otherwise")
    found = [program for name in names(CORPUS)[::30] if (program := plain(name)).key in recorded()]
    assert found, "no text is recorded any more: make test-all; python -m tests.xla_counts build/counts.jsonl"
    for program in found:
        assert recorded()[program.key] == count(program.lowered.compile(compiler_options=QUICK))


@pytest.mark.skipif(not QUICK_RUN, reason="everything is counted")
def test_a_program_that_is_recorded_is_not_compiled_for_its_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one of another text is; both are written down."""
    asked, kept = tmp_path / "counts.jsonl", tmp_path / "xla_counts.json"
    monkeypatch.setenv("JAXTE_COUNTS", str(asked))
    monkeypatch.setattr(xla_counts, "FILE", kept)
    monkeypatch.setattr(xla_counts, "recorded", recorded.__wrapped__)
    kept.write_text('{"jaxlib": "another", "counts": {}}')
    x = np.linspace(0, 1, 7, dtype="float32")
    program = Fused(lowered(lambda x: jnp.sin(x) * jnp.roll(x, 2), x))
    assert program.cost_analysis()["transcendentals"] == 7
    xla_counts.main(str(asked))
    (found,) = json.loads(kept.read_text())["counts"].values()
    assert found == count(program.lowered.compile(compiler_options=QUICK))

    again = Fused(lowered(lambda x: jnp.sin(x) * jnp.roll(x, 2), x))
    monkeypatch.setattr(xla_counts, "count", None)
    assert again.cost_analysis() == program.cost_analysis()
    np.testing.assert_allclose(again(x), np.sin(x) * np.roll(x, 2), rtol=1e-6)
    other = Fused(lowered(lambda x: jnp.sin(x) * jnp.roll(x, 3), x))
    with pytest.raises(TypeError, match="NoneType"):
        other.cost_analysis()
