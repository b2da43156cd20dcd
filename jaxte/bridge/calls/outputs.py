"""What counts as an array among the arguments of a function, and the dtypes that may pass.

The inputs of a graph by position and by name, and the arrays given for them.

What a builder returned: tensors in a pytree, or an error that says what is wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import jax
import numpy as np
from jax.tree_util import PyTreeDef, keystr, tree_flatten_with_path, tree_structure

from jaxte.lang.checks import described
from jaxte.lang.dtypes import DTYPES, is_inexact
from jaxte.lang.errors import DefinitionError, FeedError
from jaxte.lang.expr import Expr
from jaxte.lang.text import text
from jaxte.meaning.feeds import bind_sizes, check_feeds
from jaxte.tensors.elementwise import keep_wide_where
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor

_STATIC_TYPES = (
    *(bool, int, float, complex, str, bytes, type(None), type, np.dtype, slice, range),
    *(Enum, FunctionType, MethodType, BuiltinFunctionType, functools.partial, np.ufunc),
    *(jax.custom_jvp, jax.custom_vjp, type(jax.jit(abs))),  # what activations of jax.nn are
)
_WIDE = {"float64": "float32", "complex128": "complex64"}
_WIDE_INTEGERS = {"int64": "int32", "uint64": "uint32"}


def is_array(value: Any) -> bool:
    """Arrays of JAX and NumPy, NumPy scalars, tracers and shape-dtype structs."""
    return isinstance(value, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct))


def is_static(value: Any) -> bool:
    """Python scalars, strings, functions and the like: part of the definition, not of the data."""
    return isinstance(value, _STATIC_TYPES)


def plain_array(value: Any) -> Any:
    """``value``; of typed keys of ``jax.random`` their data, which a definition can hold."""
    if isinstance(value.dtype, np.dtype):
        return value
    if isinstance(value, jax.ShapeDtypeStruct):
        return jax.eval_shape(jax.random.key_data, value)
    return jax.random.key_data(value)


def x64_enabled() -> bool:
    return bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]


keep_wide_where(x64_enabled)


def canonical_dtype(value: Any, label: str) -> str:
    """The dtype that ``value`` has inside JAX, which has float32 for NumPy's float64, or an error that says why it cannot be used."""
    name = value.dtype.name
    refuse_masked(value, label)
    if not getattr(value.dtype, "isnative", True):
        raise FeedError(
            f"{label} has dtype {value.dtype.str}, whose bytes are not in the order of this machine, which JAX does not take; "
            f'convert it with .astype("{name}")'
        )
    if name not in DTYPES:
        raise FeedError(
            f"{label} has dtype {value.dtype}; jaxte takes arrays of {', '.join(DTYPES)}. Convert it with .astype(...)"
        )
    if x64_enabled():
        return name
    if name in _WIDE_INTEGERS:
        _check_integers(value, name, label)
    return _WIDE.get(name) or _WIDE_INTEGERS.get(name, name)


def stated_dtype(value: Any, label: str) -> str:
    """The same where the definition states the dtype: no number of an array is rounded to it."""
    found, name = canonical_dtype(value, label), value.dtype.name
    if name in _WIDE and found != name and not isinstance(value, np.generic):
        raise FeedError(
            f"{label} has dtype {name}, but 64-bit types are off in JAX, which would round it to {found}; "
            f'convert it with .astype("{found}"), or call jax.config.update("jax_enable_x64", True) at start'
        )
    return found


def refuse_masked(value: Any, label: str) -> None:
    if isinstance(value, np.ma.MaskedArray):
        raise FeedError(f"{label} is a masked array, whose mask would be lost; fill it with .filled(...)")


def needs_look(value: Any) -> bool:
    """Whether the values of an array, not its dtype alone, say if it may pass."""
    return (
        not x64_enabled()
        and value.dtype.name in _WIDE_INTEGERS
        and isinstance(value, (np.ndarray, np.generic))
    )


def _check_integers(value: Any, name: str, label: str) -> None:
    """JAX narrows 64-bit integers silently; values that do not fit are an error here."""
    if not isinstance(value, (np.ndarray, np.generic)) or not value.size:
        return
    limits = np.iinfo(_WIDE_INTEGERS[name])
    if int(value.max()) > limits.max or int(value.min()) < limits.min:
        raise FeedError(
            f"{label} has dtype {name} and values that do not fit {limits.dtype}, to which JAX narrows it while 64-bit "
            'types are off; call jax.config.update("jax_enable_x64", True) at start'
        )


@dataclass(frozen=True)
class NamedInputs:
    """Placeholders in the order of the arguments, each with the name that it goes by as a keyword."""

    tensors: tuple[Placeholder, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, inputs: Any) -> NamedInputs:
        """From one placeholder, several, or a dict of them by name."""
        if isinstance(inputs, Tensor):
            inputs = (inputs,)
        named = list(inputs.items()) if isinstance(inputs, Mapping) else [(None, t) for t in inputs]
        for _, tensor in named:
            if not isinstance(tensor, Placeholder):
                raise DefinitionError(
                    f"te.function(inputs, outputs): the inputs hold {described(tensor)}; inputs are made by te.placeholder"
                )
        tensors = tuple(t for _, t in named)
        if len(set(tensors)) < len(tensors):
            raise DefinitionError("te.function(inputs, outputs): a placeholder stands twice among the inputs")
        return cls(tensors, tuple(t.name if n is None else str(n) for n, t in named))

    @property
    def by_name(self) -> dict[str, Placeholder] | tuple[Placeholder, ...]:
        """What :meth:`of` makes the same inputs from."""
        named = dict(zip(self.names, self.tensors, strict=True))
        return named if len(named) == len(self.tensors) else self.tensors

    def arrays(self, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arrays of a call in the order of the inputs, checked."""
        feeds: dict[Tensor, Any] = dict(zip(self.tensors, args, strict=False))
        if len(args) > len(self.tensors):
            raise FeedError(
                f"{label} takes {len(self.tensors)} arrays ({self._listed()}), but {len(args)} were given"
            )
        for name, value in kwargs.items():
            tensor = self._named(label, name)
            if tensor in feeds:
                raise FeedError(f"{label}: the array for {name} is given twice, by position and by name")
            feeds[tensor] = value
        for given, value in feeds.items():
            check_value(label, given, value)
        return list(checked_arrays(self.tensors, feeds))

    def _named(self, label: str, name: str) -> Placeholder:
        found = [t for n, t in zip(self.names, self.tensors, strict=True) if n == name]
        if not found:
            raise FeedError(f"{label} has no input {name}; its inputs are {self._listed()}")
        if len(found) > 1:
            raise FeedError(f"{label} has {len(found)} inputs named {name}; pass their arrays by position")
        return found[0]

    def _listed(self) -> str:
        return ", ".join(self.names) or "none"


def check_value(label: str, tensor: Tensor, value: Any) -> None:
    """That ``value`` is an array (or a Python number or list) that JAX takes as it is."""
    if is_array(value):
        stated_dtype(value, f"the array for {tensor.name} of {label}")
    elif not isinstance(value, (bool, int, float, complex, list, tuple)):
        raise FeedError(
            f"{label}: the array for {tensor.name}: {tensor.dtype}{shape_text(tensor.shape)} is {described(value)}; "
            "give an array of JAX or NumPy"
        )
    elif tensor.dtype in ("float64", "complex128") and not x64_enabled():
        raise FeedError(
            f"{label}: {tensor.name} has dtype {tensor.dtype}, but 64-bit types are off in JAX; call "
            'jax.config.update("jax_enable_x64", True) at start'
        )


def checked_arrays(tensors: tuple[Placeholder, ...], feeds: Mapping[Tensor, Any]) -> Any:
    """The arrays for ``tensors``, of the right ranks, dtypes and extents."""
    narrowed = {t: _narrowed(t, value) for t, value in feeds.items()}
    arrays = check_feeds(tensors, narrowed)
    if all(isinstance(extent, int) for a in arrays.values() for extent in a.shape):
        bind_sizes(arrays)
    return arrays.values()


def _narrowed(tensor: Tensor, value: Any) -> Any:
    """64-bit integers of NumPy as the 32-bit ones that JAX makes of them while 64-bit types are off."""
    if not is_array(value) or not hasattr(value, "astype") or value.dtype.name == tensor.dtype:
        return value
    dtype = stated_dtype(value, tensor.name)
    return value.astype(dtype) if dtype != value.dtype.name else value


@dataclass(frozen=True)
class Outputs:
    """The tensors of a result, and the pytree that they stand in.

    Attributes:
        main: how many of them come first that are differentiated, where the rest is auxiliary.
    """

    tensors: tuple[Tensor, ...]
    tree: PyTreeDef
    main: int

    @property
    def with_head(self) -> tuple[int, ...]:
        """Positions of the tensors that have a derivative."""
        return tuple(n for n, t in enumerate(self.tensors[: self.main]) if is_inexact(t.dtype))

    @property
    def is_single(self) -> bool:
        return self.tree == tree_structure(0)


def collect_outputs(result: Any, label: str, has_aux: bool = False) -> Outputs:
    """The tensors of ``result``; with ``has_aux``, those of the first of a pair have derivatives."""
    if has_aux and not (isinstance(result, (tuple, list)) and len(result) == 2):
        raise DefinitionError(
            f"{label}: with has_aux=True the function returns a pair (output, auxiliary), not {described(result)}"
        )
    found, tree = tree_flatten_with_path(result)
    for path, leaf in found:
        if not isinstance(leaf, Tensor):
            raise DefinitionError(_not_a_tensor(leaf, f"{label} returns{_at(keystr(path))}"))
    if not found:
        raise DefinitionError(
            f"{label} returns {described(result)}, no Tensor; end the builder with `return` and the Tensor (or a tuple, "
            "list or dict of Tensors) that it makes"
        )
    main = len(tree_flatten_with_path(result[0])[0]) if has_aux else len(found)
    return Outputs(tuple(leaf for _, leaf in found), tree, main)


def _at(where: str) -> str:
    return f" at {where}" if where else ""


def _not_a_tensor(leaf: Any, where: str) -> str:
    if isinstance(leaf, Expr):
        shown = text(leaf)
        return f"{where} the scalar expression `{shown}`; make it a Tensor with te.compute(lambda: {shown})"
    return f"{where} {described(leaf)}, no Tensor; return Tensors, made by te.compute or te.ops"


def check_inputs(inputs: Sequence[Placeholder], outputs: Sequence[Tensor], label: str) -> None:
    """Every placeholder that ``outputs`` need is among ``inputs``."""
    known = set(inputs)
    missing = [t for t in topological_order(outputs) if isinstance(t, Placeholder) and t not in known]
    if missing:
        names = ", ".join(repr(t) for t in missing)
        raise DefinitionError(
            f"{label} needs {names}, which {'is' if len(missing) == 1 else 'are'} not among its inputs "
            f"({', '.join(t.name for t in inputs) or 'none'}); pass every placeholder that the outputs depend on"
        )
