"""The text of array programs: each node as a Python expression."""

from __future__ import annotations

from collections.abc import Mapping

from jaxte.lang.expr import Var
from jaxte.lower.printing import data, elementwise, loops, products, views
from jaxte.lower.printing.writer import Rules, Writer

RULES: Rules = {**elementwise.RULES, **views.RULES, **products.RULES, **loops.RULES, **data.RULES}


class Printer(Writer):
    """Writes nodes and extents, with symbolic sizes under the identifiers that the function gives them."""

    def __init__(self, names: Mapping[Var, str]) -> None:
        super().__init__(names, RULES)
