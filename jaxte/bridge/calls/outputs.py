"""The inputs of a graph by position and by name, and the arrays given for them.

What a builder returned: tensors in a pytree, or an error that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax.tree_util import PyTreeDef, keystr, tree_flatten_with_path, tree_structure

from jaxte.bridge.calls.arrays import is_array, stated_dtype, x64_enabled
from jaxte.lang.checks import described
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DefinitionError, FeedError
from jaxte.lang.expr import Expr
from jaxte.lang.text import text
from jaxte.meaning.feeds import bind_sizes, check_feeds
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Placeholder, Tensor


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
