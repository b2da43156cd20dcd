"""Every primitive of the installed JAX has a row in docs/results/primitives.md: raised, or kept for a reason."""

from pathlib import Path

import pytest

from jaxte.frontends.jaxpr.coverage import primitive_names, row, table
from jaxte.frontends.jaxpr.equations.table import RULES

PAGE = Path(__file__).parent.parent.parent / "docs" / "results" / "primitives.md"


@pytest.mark.parametrize("name", primitive_names())
def test_a_primitive_is_raised_or_says_why_not(name: str) -> None:
    kind, reason = row(name)
    assert reason, (
        f"{name} is new in this JAX: give it a rule in jaxte/frontends/jaxpr/rules, or say in coverage.py why it is kept"
    )
    assert (kind == "raised") >= (name in RULES)


def test_the_page_has_the_table() -> None:
    """Rows, not names: another release of JAX has a few primitives more or less."""
    page = PAGE.read_text(encoding="utf-8")
    written = page.partition("<!-- primitives -->")[2].partition("<!-- /primitives -->")[0]
    missing = [
        line
        for line in table().splitlines()
        if line.split("|")[2:] not in [w.split("|")[2:] for w in written.splitlines()]
    ]
    assert not missing, "renew it with python -m jaxte.frontends.jaxpr.coverage"
