"""The inputs of a graph by position and by name, and the arrays given for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxte.bridge.calls.arrays import is_array, stated_dtype, x64_enabled
from jaxte.lang.checks import described
from jaxte.lang.errors import DefinitionError, FeedError
from jaxte.meaning.feeds import bind_sizes, check_feeds
from jaxte.tensors.shapes import shape_text
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
