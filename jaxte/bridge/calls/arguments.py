"""Arguments of a function over a builder: which are arrays, which are static, and the key under which code is kept."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.tree_util import PyTreeDef, keystr, tree_flatten_with_path, tree_unflatten

from jaxte.bridge.calls.outputs import canonical_dtype, is_array, is_static, plain_array, refuse_masked
from jaxte.bridge.primitive.sizes import shapes_of
from jaxte.lang.checks import described
from jaxte.lang.errors import ArgumentError, FeedError, JaxteError, nearest
from jaxte.lower.code.lines import identifier
from jaxte.tensors.inputs import Placeholder, placeholder
from jaxte.tensors.tensor import Tensor

_NAMES = re.compile(r"[^\W\d]\w*")
_CONCRETE = {type(None): False, np.ndarray: True, np.float32: True, np.int32: True}


@dataclass(frozen=True)
class Static:
    """The value of a parameter named in ``static_argnames``, not looked into."""

    value: Any


@dataclass(frozen=True)
class Slot:
    """Where the array at ``number`` among the arrays of a call stands."""

    number: int


def split(leaves: Sequence[Any]) -> tuple[list[Any], list[Hashable]]:
    """The arrays among ``leaves``, and a key that is equal for calls that can share code."""
    arrays, key = [], []
    for leaf in leaves:
        kind = _CONCRETE.get(type(leaf))
        if kind is None:
            kind = is_array(leaf)
            refuse_masked(leaf, "an argument")
            if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
                _CONCRETE[type(leaf)] = True
        if kind:
            leaf = plain_array(leaf)
            arrays.append(leaf)
            key.append(leaf.shape)
            key.append(leaf.dtype)
        else:
            key.append(static_key(leaf))
    return arrays, key


def static_key(value: Any) -> Hashable:
    """A key that tells 1, 1.0 and True apart, and 0.0 and -0.0."""
    if isinstance(value, Static):
        value = value.value
    elif not is_static(value):
        raise FeedError(
            f"an argument is {described(value)}, which is neither an array nor a Python scalar or string; convert it "
            "with jnp.asarray, register its class with jax.tree_util.register_dataclass if it holds arrays, or name "
            "the parameter in static_argnames"
        )
    if isinstance(value, (float, complex)):
        return type(value), repr(value)
    if isinstance(value, jax.core.Tracer):
        raise FeedError(
            f"a static argument is traced by JAX ({value}): it is part of the definition, so it has to be a value; pass a Python value, "
            "as jax.jit does with static_argnames, and call the function once for each where jax.vmap maps it"
        )
    try:
        hash(value)
    except TypeError:
        raise FeedError(
            f"the static argument {described(value)} is not hashable, so no code can be kept for it; pass a tuple or "
            "another immutable value"
        ) from None
    return type(value), value


@dataclass(frozen=True)
class Parameters:
    """The arguments of a call by parameter, in one order whichever way they were passed.

    Attributes:
        args, kwargs: what the builder is called with: placeholders for arrays, statics as they are.
        placeholders: one for each array.
        paths: where the placeholders of leaves stand, ``params['w']`` for ``params_w``.
        order: the position of each placeholder's array among the arrays of the call.
        key: equal for calls that differ in the way of passing only.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    placeholders: tuple[Placeholder, ...]
    paths: Mapping[str, str]
    order: tuple[int, ...]
    key: Hashable

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Errors of definitions say which leaves the names in them are."""
        try:
            yield
        except AttributeError as error:
            given = [*self.args, *self.kwargs.values()]
            plain = [
                v for v in given if v is error.obj or (error.obj is None and type(v) in (int, float, complex))
            ]
            if plain and type(plain[0]) in (int, float, complex):
                error.add_note(
                    f"{plain[0]!r} is a number of Python, which the builder sees as it is; jnp.asarray({plain[0]!r}) is a Tensor in it"
                )
            elif plain and not isinstance(plain[0], Tensor):
                error.add_note(
                    f"an argument is {described(plain[0])}, which the builder sees as it is; an array of JAX or NumPy is a Tensor in it"
                )
            raise
        except JaxteError as error:
            words = set(_NAMES.findall(str(error)))
            said = [f"{name} is {path}" for name, path in self.paths.items() if name in words]
            if said:
                error.append(f"({', '.join(said)})")
            raise


def bind_parameters(
    signature: inspect.Signature, label: str, treedef: PyTreeDef, leaves: Sequence[Any], arrays: Sequence[Any]
) -> Parameters:
    """The arguments that ``leaves`` make, bound to the parameters of ``signature``."""
    numbers = iter(range(len(arrays)))
    slots = [Slot(next(numbers)) if is_array(leaf) else leaf for leaf in leaves]
    args, kwargs = tree_unflatten(treedef, slots)
    bound = bind(signature, label, args, kwargs)
    bound.apply_defaults()
    names = list(bound.arguments)
    found, tree = tree_flatten_with_path(list(bound.arguments.values()))
    shapes = shapes_of([array.shape for array in arrays])
    tensors: dict[int, Placeholder] = {}
    paths: dict[str, str] = {}
    values: list[Any] = []
    key: list[Hashable] = [tuple(names), tree]
    for path, leaf in found:
        if isinstance(leaf, Slot):
            own = f"{names[path[0].idx]}{keystr(path[1:])}"
            tensors[leaf.number] = placeholder(
                shapes[leaf.number], canonical_dtype(arrays[leaf.number], f"argument {own}"), identifier(own)
            )
            values.append(tensors[leaf.number])
            if len(path) > 1:
                paths[values[-1].name] = own
            key += [values[-1].shape, values[-1].dtype]
        else:
            if is_array(leaf):
                raise FeedError(
                    f"{label}: parameter {names[path[0].idx]} has an array as its default; pass it as an argument"
                )
            values.append(leaf.value if isinstance(leaf, Static) else leaf)
            key.append(static_key(leaf))
    bound.arguments.update(zip(names, tree_unflatten(tree, values), strict=True))
    return Parameters(bound.args, bound.kwargs, tuple(tensors.values()), paths, tuple(tensors), tuple(key))


def bind(
    signature: inspect.Signature, label: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """Arguments by parameter, or an error that names the function and its parameters."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        raise FeedError(f"{label}{signature}: {_unknown(signature, args, kwargs) or error}") from None


def _unknown(signature: inspect.Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """What is said of a keyword that is no parameter, nothing where all are."""
    parameters = signature.parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return ""
    wrong = [name for name in kwargs if name not in parameters]
    if not wrong:
        return ""
    missing = [name for name in list(parameters)[len(args) :] if name not in kwargs]
    close = nearest(wrong[0], missing)
    if not close and len(wrong) == 1 and len(missing) == 1:
        close = f"; did you mean {missing[0]}=?"
    return f"got an unexpected keyword argument {wrong[0]!r}{close}"


def has_tensor(leaves: Sequence[Any]) -> bool:
    return any(isinstance(leaf, Tensor) for leaf in leaves)


def mark_static(
    signature: inspect.Signature,
    label: str,
    names: Sequence[str],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with those named in ``static_argnames`` wrapped, so that they are not looked into."""
    bound = bind(signature, label, args, kwargs)
    for name in names:
        if name in bound.arguments:
            bound.arguments[name] = Static(bound.arguments[name])
    return bound.args, bound.kwargs


def signature_of(builder: Callable[..., Any], static_argnames: Sequence[str]) -> inspect.Signature:
    """The signature of ``builder``, in which every name of ``static_argnames`` has to be."""
    try:
        signature = inspect.signature(builder)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{described(builder)} is no builder: its parameters are unknown; give a function of Tensors"
        ) from None
    for name in static_argnames:
        if name not in signature.parameters:
            raise FeedError(
                f"static_argnames has {name!r}, but the parameters are {', '.join(signature.parameters) or 'none'}"
            )
    return signature
