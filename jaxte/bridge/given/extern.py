"""Any JAX function as a node of the graph, differentiated by ``jax.vjp``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef, tree_flatten, tree_structure, tree_unflatten

from jaxte.bridge.given.extern_call import ExternCall
from jaxte.lang import dtypes
from jaxte.lang.checks import several, wants_arguments
from jaxte.lang.errors import DefinitionError, DtypeError, ShapeError
from jaxte.lang.expr import Expr
from jaxte.lang.nodes import AnnotatedArray
from jaxte.tensors.shapes import Shape, check_shape, shape_text
from jaxte.tensors.tensor import Tensor


@dataclass(frozen=True, eq=False)
class _Flat:
    """``fn`` with its outputs as a flat tuple."""

    fn: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return getattr(self.fn, "__name__", type(self.fn).__name__)

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        leaves, _ = tree_flatten(self.fn(*(jnp.asarray(a) for a in arrays)))
        return tuple(leaves)


@overload
def extern(
    shape_or_dtype_struct: jax.ShapeDtypeStruct | int | Shape,
    fn: Callable[..., object],
    inputs: Sequence[Tensor | AnnotatedArray],
    name: str | None = None,
) -> Tensor: ...
@overload
def extern(
    shape_or_dtype_struct: Sequence[jax.ShapeDtypeStruct],
    fn: Callable[..., object],
    inputs: Sequence[Tensor | AnnotatedArray],
    name: str | None = None,
) -> Sequence[Tensor]: ...
@overload
def extern(
    shape_or_dtype_struct: Mapping[str, jax.ShapeDtypeStruct],
    fn: Callable[..., object],
    inputs: Sequence[Tensor | AnnotatedArray],
    name: str | None = None,
) -> dict[str, Tensor]: ...
@overload
def extern(
    shape_or_dtype_struct: Any,
    fn: Callable[..., object],
    inputs: Sequence[Tensor | AnnotatedArray],
    name: str | None = None,
) -> Any: ...
@wants_arguments
def extern(
    shape_or_dtype_struct: Any,
    fn: Callable[..., object],
    inputs: Sequence[Tensor | AnnotatedArray],
    name: str | None = None,
) -> Any:
    """The result of any JAX function as a Tensor, differentiated by ``jax.vjp``.

    The emitted module has no source for ``fn``: it takes it from its globals, under the name of the node.

    Args:
        shape_or_dtype_struct: what ``fn`` returns: a ``jax.ShapeDtypeStruct``, a pytree of them for several
            outputs, or the shape alone for one output of the dtype of the first input.
        fn: takes one array for each of ``inputs``.
        inputs: the tensors whose arrays ``fn`` takes.
        name: label of the node, by default the name of ``fn``.

    Returns:
        A Tensor, or Tensors in the pytree of ``shape_or_dtype_struct``.

    Example:
        >>> S = te.extern((8, 8), jnp.linalg.inv, [A])
    """
    label = str(name or getattr(fn, "__name__", "extern"))
    sources = several(inputs, Tensor, f"the inputs of te.extern {label}", "Tensors")
    if not callable(fn):
        raise DefinitionError(f"te.extern {label}: {fn!r} is no function of arrays")
    structs, tree = _structs(shape_or_dtype_struct, sources, label)
    shapes = tuple(check_shape(s.shape, label) for s in structs)
    kinds = tuple(dtypes.dtype_name(s.dtype) for s in structs)
    _check(fn, sources, shapes, kinds, tree, label)
    tensors = ExternCall(label, _Flat(fn), shapes, kinds).tensors(sources)
    return tree_unflatten(tree, tensors)


@dataclass(frozen=True)
class _Struct:
    shape: Any
    dtype: Any


def _structs(given: Any, sources: Sequence[Tensor], label: str) -> tuple[list[Any], PyTreeDef]:
    """Shape and dtype of each output, and the pytree that they stand in."""
    if _is_shape(given):
        shape = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        return [_Struct(shape, sources[0].dtype if sources else "float32")], tree_structure(0)
    leaves, tree = tree_flatten(given)
    for leaf in leaves:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise DefinitionError(
                f"te.extern {label}: {leaf!r} says no shape and dtype; give jax.ShapeDtypeStruct(shape, dtype) for each output"
            )
    if not leaves:
        raise DefinitionError(f"te.extern {label}: a function without outputs is no node")
    return leaves, tree


def _is_shape(given: Any) -> bool:
    entries = given if isinstance(given, (tuple, list)) else (given,)
    return all(isinstance(e, (int, np.integer, Expr)) for e in entries)


def _check(
    fn: Callable[..., Any],
    sources: Sequence[Tensor],
    shapes: Sequence[Any],
    kinds: Sequence[str],
    tree: PyTreeDef,
    label: str,
) -> None:
    """That ``fn`` returns what was said, by ``jax.eval_shape``; not where sizes are symbolic."""
    if not all(isinstance(e, int) for shape in (*shapes, *(t.shape for t in sources)) for e in shape):
        return
    structs = [jax.ShapeDtypeStruct(t.shape, np.dtype(t.dtype)) for t in sources]
    leaves, found = tree_flatten(jax.eval_shape(fn, *structs))
    if found != tree:
        raise ShapeError(f"te.extern {label}: the function returns {found}, not {tree} as was said")
    for leaf, shape, kind in zip(leaves, shapes, kinds, strict=True):
        if tuple(leaf.shape) != tuple(shape):
            raise ShapeError(
                f"te.extern {label}: the function returns shape {shape_text(tuple(leaf.shape))}, not {shape_text(tuple(shape))} as was said"
            )
        if leaf.dtype.name != kind:
            raise DtypeError(
                f"te.extern {label}: the function returns dtype {leaf.dtype.name}, not {kind} as was said; give a "
                "jax.ShapeDtypeStruct with the right dtype"
            )
