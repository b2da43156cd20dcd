"""Functions of JAX and of libraries: every primitive in their jaxprs has a row in docs/results/primitives.md, with a reason where it is kept."""

from typing import Any

import pytest
from hypothesis import settings

from jaxte.frontends.jaxpr.coverage import row
from tests.frontends.libraries import MODULES, jaxprs, layers, primitives

EVERY = 1 if settings.default.max_examples >= 1000 else 7


def without_reason(jaxpr: Any) -> set[str]:
    return {name for name in primitives(jaxpr.jaxpr) if not row(name)[1]}


@pytest.mark.parametrize("module", MODULES)
def test_functions(module: str) -> None:
    for name, jaxpr in jaxprs(module, EVERY).items():
        assert not without_reason(jaxpr), (
            f"{module}.{name}: give it a rule, or say in coverage.py why it is kept"
        )


@pytest.mark.parametrize("library", ["equinox.nn", "flax.linen"])
def test_layers(library: str) -> None:
    made = layers().get(library)
    if made is None:
        pytest.skip(f"{library} is not installed")
    for name, jaxpr in made.items():
        assert not without_reason(jaxpr()), name
