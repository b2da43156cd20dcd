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

from harness.case import CORPUS, JAXTE, load, names
from harness.inputs import draw
from harness.sides import function
from tests import xla_counts
from tests.agreement import QUICK
from tests.xla_counts import COSTS, Fused, count, recorded

QUICK_RUN = settings.default.max_examples < 1000


def lowered(fn: Any, *args: Any) -> Any:
    return jax.jit(fn).lower(*args)


@pytest.mark.parametrize("name", names(CORPUS)[::30])
def test_what_is_taken_from_the_record_is_what_xla_counts(name: str) -> None:
    case = load(name)
    program = Fused(lowered(function(case, JAXTE), *draw(case.inputs_at("quick"))))
    expected = count(program.lowered.compile(compiler_options=QUICK))
    assert [program.cost_analysis()[key] for key in COSTS] == expected[:-1]
    assert program.memory_analysis().temp_size_in_bytes == expected[-1]


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
