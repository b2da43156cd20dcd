"""``tune="first call"``: what is raised is measured by itself, once for arguments of each shape, and kept in a file where one is given."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxte.bridge.tuning.tuning_file import Choices, kept_choices, save_choices
from jaxte.frontends.jaxpr.kept_plans import Fingerprint
from jaxte.frontends.jaxpr.plan.items import Plan
from jaxte.frontends.jaxpr.tune import choices_of, chosen_again, tuned

FIRST_CALL = "first call"


def measured_or_kept(
    closed: Any, arrays: Sequence[Any], own: Fingerprint, safe: bool, file: Any = None
) -> Plan:
    """The plan that ``file`` has for this program on this machine; else the fastest one, which is added to the file."""
    key = _key(own, safe)
    kept: Choices | None = None if file is None else kept_choices(file).get(key)
    if kept is not None:
        return chosen_again(closed, kept, safe)
    with jax.ensure_compile_time_eval():
        plan, planner = tuned(closed, [_stand_in(a) for a in arrays], safe)
    if file is not None and plan.measured is not None:
        save_choices(file, {key: choices_of(planner, plan.measured)})
    return plan


def _key(own: Fingerprint, safe: bool) -> str:
    """Equal for equal programs in all processes: without the addresses of functions that a jaxpr prints."""
    text = re.sub(r"0x[0-9a-f]+", "", f"{own.text} {own.rest} {own.x64} {safe}")
    return hashlib.sha256(text.encode() + own.constants).hexdigest()


def _stand_in(array: Any) -> Any:
    """The array itself; for one that is being traced, numbers of its shape that logarithms, roots and quotients can take."""
    if not isinstance(array, jax.core.Tracer):
        return array
    dtype = np.dtype(array.dtype)
    if not jax.numpy.issubdtype(dtype, np.inexact):
        return np.zeros(array.shape, dtype)
    return np.random.default_rng(0).uniform(0.5, 1.5, array.shape).astype(dtype)
