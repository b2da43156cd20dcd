"""Lowers tensors, runs the emitted text as it stands and compares with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import jaxte as te
from jaxte.lang.expr import Axis, Expr, Reduce
from jaxte.lower.code.lines import sources_of
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import Program
from jaxte.lower.forms.conv.recognise import match_convolution
from jaxte.lower.forms.conv.spec import ConvolutionSpec, specify
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from jaxte.meaning.interpret import interpret
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor
from tests.lower.evaluation.program import evaluate_program
from tests.stages import FORMS, TEXT

SIZE = 5  # what symbolic sizes are in tests
VIEWS_ONLY = ("gather", "scatter", "dynamic_slice", "sort", "while")


def recognise_convolution(
    axes: Sequence[Axis], node: Reduce, guards: Sequence[Expr] = ()
) -> ConvolutionSpec | Refusal:
    """The convolution that ``node`` is, as one call."""
    found = match_convolution(axes, node, guards)
    if isinstance(found, Refusal):
        return found
    return specify(found.match, tuple(axes), node.dtype, found.outer, found.guards)


def inputs_of(*outputs: Tensor) -> list[Placeholder]:
    return [t for t in topological_order(outputs) if isinstance(t, Placeholder)]


def program_of(*outputs: Tensor) -> Program:
    return lower("forward", inputs_of(*outputs), outputs)


def text_of(*outputs: Tensor) -> str:
    return module_text([program_of(*outputs)])


def sources(*outputs: Tensor) -> list[str]:
    """The right-hand sides of the emitted assignments."""
    return sources_of(program_of(*outputs))


def arrays_for(program: Program, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for _, tensor in program.params:
        shape = tuple(e if isinstance(e, int) else SIZE for e in tensor.shape)
        if tensor.dtype.startswith(("int", "uint")):
            arrays.append(rng.integers(-2 if tensor.dtype[0] == "i" else 0, 7, shape).astype(tensor.dtype))
        elif tensor.dtype == "bool":
            arrays.append(rng.random(shape) < 0.5)
        else:
            arrays.append(rng.standard_normal(shape).astype(tensor.dtype))
    return arrays


def load_program(program: Program) -> Any:
    """The function in the emitted text as it stands."""
    namespace: dict[str, Any] = {}
    exec(compile(module_text([program]), "<emitted>", "exec"), namespace)
    return namespace[program.name]


def run(program: Program, arrays: list[np.ndarray]) -> list[Any]:
    found = jax.jit(load_program(program))(*arrays)
    return list(found) if len(program.results) > 1 else [found]


def check(*outputs: Tensor, tolerance: float = 1e-4, seed: int = 0) -> list[str]:
    """Compares values, shapes and dtypes with the interpreter, of the nodes and of what runs; returns the emitted right-hand sides."""
    program = program_of(*outputs)
    arrays = arrays_for(program, seed)
    expected = interpret(list(outputs), {t: a for (_, t), a in zip(program.params, arrays, strict=True)})
    for stage, results in ((FORMS, evaluate_program(program, arrays)), (TEXT, run(program, arrays))):
        for output, found, wanted in zip(outputs, results, expected, strict=True):
            value = np.asarray(found)
            assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype), (stage, output)
            np.testing.assert_allclose(
                value.astype("complex128"),
                wanted.astype("complex128"),
                rtol=tolerance,
                atol=tolerance,
                err_msg=stage,
            )
    return sources_of(program)


def primitives(*outputs: Tensor) -> str:
    """The StableHLO of the emitted function."""
    program = program_of(*outputs)
    return jax.jit(load_program(program)).lower(*arrays_for(program)).as_text()


def check_view(*outputs: Tensor) -> list[str]:
    """:func:`check`, and that no index array is left, in the text or in what XLA gets."""
    found = check(*outputs)
    hlo = primitives(*outputs)
    assert not any(f"stablehlo.{name}" in hlo for name in VIEWS_ONLY), found
    assert not any("jnp.take" in source or ".at[" in source for source in found)
    return found


def one(extent: tuple[Any, ...], fn: Any, name: str = "Y") -> Tensor:
    return te.compute(extent, fn, name)
