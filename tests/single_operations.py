"""What JAX runs outside of every program, one operation after the other, is computed by NumPy: to compile each takes XLA 20 ms.

References of tests are plain JAX, mostly run like that, and a test of one function has a dozen operations that no other one has. JAX's own rules
of differentiation and its types stay; only the numbers of single operations, and of the functions of ``jax.numpy`` that are programs of their
own, are NumPy's. What a test or jaxte puts under ``jax.jit`` is compiled unless XLA and NumPy are known to agree on it (tests/numpy_programs.py),
and so is all of a run with JAXTE_HYPOTHESIS=full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial, wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np
from jax._src import config, pjit
from jax._src.array import ArrayImpl
from jax._src.interpreters import pxla
from jax._src.sharding_impls import UnspecifiedValue
from jax.extend.core import ClosedJaxpr, Jaxpr

from jaxte.bridge.primitive.primitive import jaxte_p
from tests import numpy_programs
from tests.numpy_evaluation import arrays_of, inside
from tests.numpy_operations import RULES
from tests.numpy_positions import Refused

IS_KNOWN = version("jax").startswith(
    "0.10."
)  # what is replaced is no public name: other releases compile everything
OF_JAX = str(Path(jax.__file__).parent)
KINDS = "biuf"  # of NumPy's dtypes: bfloat16 and the like are others
# Long sums, of which XLA and NumPy round other digits, are compared before, within the program they stand in.
ALONE = RULES.keys() - {"conv_general_dilated", "reduce_window_sum"}
OFTEN = 40  # calls, after which one compilation is cheaper


class Deferred(pxla.MeshComputation):
    """A program whose text is made when something is asked of it: values and counts may be known by its operations."""

    def __init__(self, program: ClosedJaxpr, make: Callable[[], Any]) -> None:
        self.program = program
        self._make = make
        self._has_64_bits = config.enable_x64.value

    @cached_property
    def _text(self) -> Any:
        with jax.enable_x64(self._has_64_bits):
            return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._text, name)


def run_in_numpy() -> None:
    """Replaces the function that compiles what runs by itself."""
    if not IS_KNOWN:
        return
    compiled = pjit._pjit_call_impl_python
    calls: WeakKeyDictionary[ClosedJaxpr, int] = WeakKeyDictionary()

    @wraps(compiled)
    def run(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        known = _is_usual(params) and all(map(_is_anywhere, args))
        if known and jaxpr not in calls:
            is_single = _is_of_jax(jaxpr.jaxpr) and _is_known(jaxpr)
            calls[jaxpr] = OFTEN if is_single else numpy_programs.calls_of(jaxpr)
        if known and calls[jaxpr] > 0:
            calls[jaxpr] -= 1
            try:
                # no executable: JAX asks here again the next time
                return arrays_of(jaxpr, args), None, None, []
            except (Refused, TypeError, ValueError):  # also what NumPy refuses: an extremum of nothing
                calls[jaxpr] = 0
        made = compiled(*args, jaxpr=jaxpr, **params)
        if known and numpy_programs.is_new(jaxpr, args, made[0]):
            calls[jaxpr] = numpy_programs.calls_of(jaxpr)
            return run(*args, jaxpr=jaxpr, **params)
        return made

    pjit._pjit_call_impl_python = run
    lowered = pjit._resolve_and_lower

    @wraps(lowered)
    def with_program(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        is_usual = _is_usual(params)
        if is_usual and params["lowering_platforms"] is None:
            numpy_programs.calls_of(
                jaxpr
            )  # what jaxte emits is traced for its key, and not once more to be lowered
        make = partial(lowered, *args, jaxpr=jaxpr, **params)
        return Deferred(jaxpr, make) if is_usual and config.default_device.value is None else make()

    pjit._resolve_and_lower = with_program


@contextmanager
def run_by_xla() -> Iterator[None]:
    """For tests of the last digits: everything is compiled, as users have it."""
    kept = pjit._pjit_call_impl_python, pjit._resolve_and_lower
    pjit._pjit_call_impl_python, pjit._resolve_and_lower = (getattr(f, "__wrapped__", f) for f in kept)
    try:
        yield
    finally:
        pjit._pjit_call_impl_python, pjit._resolve_and_lower = kept


def _is_usual(params: Mapping[str, Any]) -> bool:
    """Whether nothing is asked of XLA but values."""
    places = (*params["in_shardings"], *params["out_shardings"])
    return (
        not config.debug_nans.value
        and not any(params["donated_invars"])
        and params["ctx_mesh"].empty
        and all(isinstance(p, UnspecifiedValue) for p in places)
    )


def _is_of_jax(program: Jaxpr) -> bool:
    """Whether a function of JAX was traced, not one of a test."""
    info = program.debug_info
    return info is not None and OF_JAX in (info.func_src_info or "")


def _is_known(program: ClosedJaxpr) -> bool:
    jaxpr = program.jaxpr
    values = [*jaxpr.invars, *jaxpr.outvars, *(v for e in jaxpr.eqns for v in (*e.invars, *e.outvars))]
    return not jaxpr.effects and all(map(_is_plain, values)) and all(
        e.primitive.name in ALONE or (e.primitive is not jaxte_p and (inner := inside(e)) is not None and _is_known(inner)) for e in jaxpr.eqns
    )  # fmt: skip


def _is_plain(value: Any) -> bool:
    dtype = getattr(value.aval, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in KINDS and dtype.itemsize > 0 and dtype != np.float16


def _is_anywhere(array: Any) -> bool:
    """On no device that a test chose."""
    return not isinstance(array, ArrayImpl) or not array.committed
