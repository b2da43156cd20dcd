"""What JAX runs outside of every program, one operation after the other, is computed by NumPy: to compile each takes XLA 20 ms.

References of tests are plain JAX, mostly run like that, and a test of one function has a dozen operations that no other one has. JAX's own rules
of differentiation and its types stay; only the numbers of single operations, and of the functions of ``jax.numpy`` that are programs of their
own, are NumPy's. What a test or jaxte puts under ``jax.jit`` is compiled, and so is all of a run with JAXTE_HYPOTHESIS=full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np
from jax._src import config, pjit
from jax._src.array import ArrayImpl
from jax._src.interpreters import pxla
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from tests.numpy_operations import RULES
from tests.numpy_positions import Refused

IS_KNOWN = version("jax").startswith(
    "0.10."
)  # what is replaced is no public name: other releases compile everything
OF_JAX = str(Path(jax.__file__).parent)
INNER = {
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
KINDS = "biuf"  # of NumPy's dtypes: bfloat16 and the like are others
OFTEN = 40  # calls, after which one compilation is cheaper


def run_in_numpy() -> None:
    """Replaces the function that compiles what runs by itself."""
    if not IS_KNOWN:
        return
    compiled = pjit._pjit_call_impl_python
    calls: WeakKeyDictionary[ClosedJaxpr, int] = WeakKeyDictionary()

    @wraps(compiled)
    def run(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        if jaxpr not in calls:
            calls[jaxpr] = 0 if _is_of_jax(jaxpr.jaxpr) and _is_known(jaxpr) else OFTEN
        calls[jaxpr] += 1
        if calls[jaxpr] > OFTEN or config.debug_nans.value or not all(map(_is_anywhere, args)):
            return compiled(*args, jaxpr=jaxpr, **params)
        try:
            # no executable: JAX asks here again the next time
            return _arrays(jaxpr, args), None, None, []
        except (Refused, TypeError, ValueError):  # also what NumPy refuses: an extremum of nothing
            calls[jaxpr] = OFTEN
            return compiled(*args, jaxpr=jaxpr, **params)

    pjit._pjit_call_impl_python = run


@contextmanager
def run_by_xla() -> Iterator[None]:
    """For tests of the last digits: everything is compiled, as users have it."""
    kept = pjit._pjit_call_impl_python
    pjit._pjit_call_impl_python = getattr(kept, "__wrapped__", kept)
    try:
        yield
    finally:
        pjit._pjit_call_impl_python = kept


def _is_of_jax(program: Jaxpr) -> bool:
    """Whether a function of JAX was traced, not one of a test."""
    info = program.debug_info
    return info is not None and OF_JAX in (info.func_src_info or "")


def _is_known(program: ClosedJaxpr) -> bool:
    jaxpr = program.jaxpr
    values = [*jaxpr.invars, *jaxpr.outvars, *(v for e in jaxpr.eqns for v in (*e.invars, *e.outvars))]
    return not jaxpr.effects and all(map(_is_plain, values)) and all(
        e.primitive.name in RULES or ((inner := _inside(e)) is not None and _is_known(inner)) for e in jaxpr.eqns
    )  # fmt: skip


def _is_plain(value: Any) -> bool:
    dtype = getattr(value.aval, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in KINDS and dtype.itemsize > 0 and dtype != np.float16


def _inside(equation: Any) -> ClosedJaxpr | None:
    inner = equation.params.get(INNER.get(equation.primitive.name))
    return inner if isinstance(inner, ClosedJaxpr) else None


def _is_anywhere(array: Any) -> bool:
    """On no device that a test chose."""
    return not isinstance(array, ArrayImpl) or not array.committed


def _arrays(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        values = evaluated(program, args)
    device = jax.local_devices()[0] if config.default_device.value is None else config.default_device.value
    sharding = jax.sharding.SingleDeviceSharding(device)
    return [
        # a copy: what is a view of an argument must not change when that is given away
        pxla.batched_device_put(aval, sharding, [np.array(v, order="C")], [device], committed=False)
        for v, aval in zip(values, program.out_avals, strict=True)
    ]


def evaluated(program: ClosedJaxpr, args: Sequence[Any]) -> list[np.ndarray]:
    """The results of a program of which each operation has its row."""
    jaxpr, values = program.jaxpr, {}

    def read(atoms: Sequence[Any]) -> Iterator[np.ndarray]:
        return (np.asarray(v.val, v.aval.dtype) if isinstance(v, Literal) else values[v] for v in atoms)

    for variable, array in zip((*jaxpr.constvars, *jaxpr.invars), (*program.consts, *args), strict=True):
        values[variable] = np.asarray(array, variable.aval.dtype)
    for equation in jaxpr.eqns:
        operands, inner = list(read(equation.invars)), _inside(equation)
        if inner is None:
            found = RULES[equation.primitive.name](*operands, **equation.params)
            found = found if equation.primitive.multiple_results else [found]
        else:
            found = evaluated(inner, operands)
        for variable, array in zip(equation.outvars, found, strict=True):
            made = np.asarray(array, variable.aval.dtype)
            assert made.shape == variable.aval.shape, f"{equation}: {made.shape}"
            values[variable] = made
    return list(read(jaxpr.outvars))
