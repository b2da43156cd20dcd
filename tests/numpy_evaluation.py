"""The results of a program in NumPy: an operation after the other by its row, programs within it and loops by their own operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import config
from jax._src.interpreters import pxla
from jax.extend.core import ClosedJaxpr, Literal

from jaxte.bridge.primitive.primitive import jaxte_p
from tests.numpy_operations import RULES
from tests.numpy_positions import refuse
from tests.program_keys import emitted

INNER = {
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "remat2": "jaxpr",
}
STEPS = 300  # of a loop: each takes as long as its operations do by themselves


def arrays_of(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results as arrays of JAX, on no device that somebody chose."""
    with np.errstate(all="ignore"):
        values = evaluated(program, args)
    device = jax.local_devices()[0] if config.default_device.value is None else config.default_device.value
    sharding = jax.sharding.SingleDeviceSharding(device)
    return [
        # a copy: what is a view of an argument must not change when that is given away
        pxla.batched_device_put(aval, sharding, [np.array(v, order="C")], [device], committed=False)
        for v, aval in zip(values, program.out_avals, strict=True)
    ]


def inside(equation: Any) -> ClosedJaxpr | None:
    """The program that an equation calls."""
    if equation.primitive is jaxte_p:
        return emitted(equation)
    inner = equation.params.get(INNER.get(equation.primitive.name))
    return inner if inner is None or isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())


def evaluated(program: ClosedJaxpr, args: Sequence[Any]) -> list[np.ndarray]:
    jaxpr, values = program.jaxpr, {}

    def read(atoms: Sequence[Any]) -> Iterator[np.ndarray]:
        return (np.asarray(v.val, v.aval.dtype) if isinstance(v, Literal) else values[v] for v in atoms)

    for variable, array in zip((*jaxpr.constvars, *jaxpr.invars), (*program.consts, *args), strict=True):
        values[variable] = np.asarray(array, variable.aval.dtype)
    for equation in jaxpr.eqns:
        operands, inner, name = list(read(equation.invars)), inside(equation), equation.primitive.name
        if inner is not None:
            found = evaluated(inner, operands)
        elif name in STEPWISE:
            found = STEPWISE[name](operands, equation.params)
        else:
            refuse(name not in RULES)
            found = RULES[name](*operands, **equation.params)
            found = found if equation.primitive.multiple_results else [found]
        for variable, array in zip(equation.outvars, found, strict=True):
            made = np.asarray(array, variable.aval.dtype)
            assert made.shape == variable.aval.shape, f"{equation}: {made.shape}"
            values[variable] = made
    return list(read(jaxpr.outvars))


def _scanned(operands: Sequence[np.ndarray], params: Mapping[str, Any]) -> list[np.ndarray]:
    program, consts, length = params["jaxpr"], params["num_consts"], params["length"]
    refuse(not 0 < length <= STEPS)
    end = consts + params["num_carry"]
    carried, rows = list(operands[consts:end]), []
    for n in reversed(range(length)) if params["reverse"] else range(length):
        found = evaluated(program, [*operands[:consts], *carried, *(x[n] for x in operands[end:])])
        carried = found[: len(carried)]
        rows.append(found[len(carried) :])
    stacks = zip(*(reversed(rows) if params["reverse"] else rows), strict=True)
    return [*carried, *map(np.stack, stacks)]


def _repeated(operands: Sequence[np.ndarray], params: Mapping[str, Any]) -> list[np.ndarray]:
    first = params["cond_nconsts"]
    second = first + params["body_nconsts"]
    asked, given, carried = operands[:first], operands[first:second], list(operands[second:])
    steps = 0
    while evaluated(params["cond_jaxpr"], [*asked, *carried])[0]:
        carried, steps = evaluated(params["body_jaxpr"], [*given, *carried]), steps + 1
        refuse(steps > STEPS)
    return carried


def _chosen(operands: Sequence[np.ndarray], params: Mapping[str, Any]) -> list[np.ndarray]:
    branches = params["branches"]
    return evaluated(branches[min(max(int(operands[0]), 0), len(branches) - 1)], operands[1:])


STEPWISE: dict[str, Callable[[Sequence[np.ndarray], Mapping[str, Any]], list[np.ndarray]]] = {
    "scan": _scanned,
    "while": _repeated,
    "cond": _chosen,
}
