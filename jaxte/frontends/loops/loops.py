"""``te.loops``: a Python function with loops as a function of arrays with derived gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar, Unpack, overload

from jaxte.bridge.functions.builder_function import BuilderFunction
from jaxte.bridge.functions.function import FunctionOptions, function
from jaxte.frontends.loops.equations.tensors import tensors_of
from jaxte.frontends.loops.program import Program
from jaxte.frontends.loops.reading.frames import Redo
from jaxte.frontends.loops.reading.recorder import Recorder
from jaxte.frontends.loops.reading.source import Written, written
from jaxte.frontends.loops.reading.statements import Reader
from jaxte.frontends.loops.reading.values import as_precise
from jaxte.lang import dtypes
from jaxte.lang.checks import described, typed
from jaxte.lang.dtypes import promote
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.lang.limits import LEVELS
from jaxte.tensors.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class LoopsFunction(BuilderFunction[P, R_co]):
    """What :func:`loops` returns: a function of arrays.

    Attributes:
        python: the function as it was given, which NumPy arrays go through step by step.
        written: its text.
        parameters: its signature.
    """

    def __init__(
        self,
        python: Callable[P, R_co],
        text: Written,
        parameters: inspect.Signature,
        plain: BuilderFunction[P, R_co],
    ) -> None:
        super().__init__(plain.builder, plain.__name__, plain.options, plain.static_argnames)
        self.python = python
        self.written = text
        self.parameters = parameters


class Decorator(Protocol):
    """What :func:`loops` with options alone returns."""

    def __call__(self, function: Callable[P, R], /) -> LoopsFunction[P, R]: ...


@overload
def loops(fn: Callable[P, R], **options: Unpack[FunctionOptions]) -> LoopsFunction[P, R]: ...
@overload
def loops(fn: None = None, **options: Unpack[FunctionOptions]) -> Decorator: ...
@typed
def loops(fn: Any = None, **options: Any) -> Any:
    """A Python function with loops, statements and overwritten variables, as a function of arrays with derived gradients.

    Its text is parsed, and never executed. It may have ``for`` over ranges (whose bounds are affine in sizes and outer counters), ``if`` on positions and
    on data, assignments of elements and slices, ``+=``, ``min`` and ``max``, local numbers and arrays (``np.zeros``, ``np.empty``,
    ``.copy()``), functions of NumPy on numbers and on whole arrays, and calls of functions within it and of other such functions.
    Exact dataflow finds what each read sees: what only accumulates becomes a reduction, what carries nothing a definition, and the
    rest a recurrence.

    Args:
        fn: the function. An array among its arguments that it writes is returned, where it has no ``return``; else it has to return it.
        options: those of :func:`function`.

    Returns:
        A jaxte function; ``.python`` is the function as it was given.

    Raises:
        DefinitionError: at the call, a statement that is not understood, a read of what was never written, with a caret under the place.
        RangeError: a read or a write out of range, with the iteration.

    Example:
        >>> @te.loops
        ... def returns(r, gamma):
        ...     g = np.zeros(len(r) + 1)
        ...     for t in reversed(range(len(r))):
        ...         g[t] = r[t] + gamma * g[t + 1]
        ...     return g
        >>> returns(jnp.array([1.0, 2.0, 4.0]), 0.5).tolist()
        [3.0, 4.0, 4.0, 0.0]
    """
    if fn is None:
        return lambda own: loops(own, **options)
    if not inspect.isfunction(fn):
        raise ArgumentError(f"te.loops of {described(fn)}; give a plain function, written with def")
    text, signature = written(fn), inspect.signature(fn)

    def build(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        program = program_of(text, bound.arguments)
        found = tensors_of(program)
        return found if program.is_tuple else found[0]

    build.__signature__ = signature  # type: ignore[attr-defined]
    build.__name__, build.__qualname__, build.__doc__ = fn.__name__, fn.__qualname__, fn.__doc__
    build.__module__ = fn.__module__
    return LoopsFunction(fn, text, signature, function(build, **options))


def program_of(text: Written, arguments: Mapping[str, Any]) -> Program:
    """The program of a function for its arguments: Tensors, and static objects.

    Raises:
        DefinitionError: a statement that is not understood, with a caret under it.
    """
    kinds: dict[object, str] = {}
    forced: set[object] = set()
    readings = 0
    # Readings of a text, until the dtypes of its variables are found.
    while readings < LEVELS:
        recorder = Recorder(kinds)
        try:
            reader = Reader(text, recorder, forced, _default_of(arguments), ())
            found = reader.run(arguments)
        except Redo as again:
            readings += again.key in forced  # one more of the same would be asked for without end
            forced.add(again.key)
            continue
        readings += 1
        before = dict(kinds)
        for key, variable in recorder.variables.items():
            if variable.is_inferred and variable in recorder.found:
                kind, weak = promote(recorder.found[variable])
                kinds[key] = as_precise(kind, reader.default) if weak else kind
        if before == kinds:
            return found
    raise DefinitionError(
        f"{text.source.who}: the dtypes of its variables depend on each other; give them by arrays"
    )


def _default_of(arguments: Mapping[str, Any]) -> str:
    """The dtype of floats: the widest of the arguments, that of doubles where there are wide integers alone."""
    own = [a.dtype for a in arguments.values() if isinstance(a, Tensor)]
    kinds = [(dtype, False) for dtype in own if dtypes.is_inexact(dtype)]
    if not kinds:
        return "float64" if "int64" in own or "uint64" in own else "float32"
    return dtypes.real_dtype(promote(kinds)[0])
