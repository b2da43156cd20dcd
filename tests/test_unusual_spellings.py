"""Functions of the corpus in a second, unusual spelling: values and gradients agree with plain JAX, and what XLA counts is within 1.5 times.

``OPEN`` has those beyond that, with the factor and what limits them. With ``JAXTE_HYPOTHESIS=full`` all of them instead of nine.
"""

from __future__ import annotations

import os

import jax
import numpy as np
import pytest

import jaxte as te
from harness.case import IDIOMATIC, JAXTE, load
from harness.inputs import draw
from harness.measure import difference
from harness.sides import function, heads, with_gradients
from tests.agreement import QUICKEST
from tests.spelled_counts import LIMIT, beyond
from tests.unusual_spellings import FUNCTIONS, Spelling

OPEN = {
    "chamfer": (1.6, "distances that stand in two minima are computed for each of them"),
    "non_local_means": (2.0, "the corpus' weights stand in two sums, and are computed for each of them"),
}
QUICK_ONES = (
    *("advection_upwind", "conv1d_short_causal", "fractional_pool", "gray_scott", "local_contrast"),
    *("polyphase_decimation", "relative_positions", "strided_dilated_conv2d", "wavelet_db4"),
)
IS_FULL = os.environ.get("JAXTE_HYPOTHESIS") == "full"
ASKED = [f for f in FUNCTIONS if IS_FULL or f.__name__ in QUICK_ONES]


@pytest.mark.parametrize("spelling", ASKED, ids=lambda f: f.__name__)
def test_unusual_spellings(spelling: Spelling) -> None:
    case = load(spelling.__name__)
    args = draw(case.inputs_at("quick"))
    numbers, head = case.differentiated(args), heads(case, IDIOMATIC, args)
    sides = {"corpus": function(case, JAXTE), "unusual": te.function(spelling)}
    programs = {name: jax.jit(with_gradients(f, numbers)).lower(head, *args) for name, f in sides.items()}
    limit, _ = OPEN.get(case.name, (LIMIT, ""))
    assert not beyond(programs, limit=limit)
    if case.name in OPEN:
        assert beyond(programs), f"{case.name} is not open any more"
    found = programs["unusual"].compile(compiler_options=QUICKEST)(head, *args)
    expected = with_gradients(function(case, IDIOMATIC), numbers)(head, *args)
    assert difference([np.asarray(x) for x in expected], [np.asarray(x) for x in found]) < case.tolerance
