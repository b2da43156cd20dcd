"""How the arguments of a ``scan`` divide, whichever release of JAX wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def scan_counts(params: Mapping[str, Any]) -> tuple[int, int]:
    """How many arguments of a ``scan`` with these parameters are constants, and how many values it carries; its rows follow them.

    JAX 0.11 keeps three groups of arguments, ``ft_in``, in place of the two numbers.
    """
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carried, _ = params["ft_in"].unpack()
    return len(list(consts)), len(list(carried))
