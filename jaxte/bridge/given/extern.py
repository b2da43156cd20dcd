"""Any JAX function as a node of the graph, differentiated by ``jax.vjp``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef, tree_flatten, tree_structure, tree_unflatten

from jaxte.lang import dtypes
from jaxte.lang.checks import several, wants_arguments
from jaxte.lang.errors import DefinitionError, DtypeError, ShapeError
from jaxte.lang.expr import Expr
from jaxte.tensors.shapes import check_shape, shape_text
from jaxte.tensors.tensor import Extern, Tensor


@dataclass(frozen=True, eq=False)
class ExternCall:
    """One call of a function on arrays; its outputs are Extern tensors.

    Attributes:
        name: label of the node.
        fn: takes the arrays of the inputs, returns a tuple of arrays.
        shapes, kinds: shape and dtype of each output.
        in_forward_pass: whether the forward pass computes it, and keeps it, where only the backward pass reads it.
    """

    name: str
    fn: Callable[..., Any]
    shapes: tuple[tuple[Any, ...], ...]
    kinds: tuple[str, ...]
    in_forward_pass: bool = False
    _adjoints: dict[int, tuple[Tensor, list[Extern | None]]] = field(default_factory=dict)
    _tangents: dict[tuple[int, ...], list[Extern]] = field(
        default_factory=dict
    )  # these hold what the ids are of

    def tensors(self, inputs: Sequence[Tensor]) -> list[Extern]:
        """The outputs as tensors."""
        labels = (
            [self.name] if len(self.shapes) == 1 else [f"{self.name}_{n}" for n in range(len(self.shapes))]
        )
        rows = zip(labels, self.shapes, self.kinds, strict=True)
        return [Extern(label, s, d, self.fn, inputs, n, self) for n, (label, s, d) in enumerate(rows)]

    def moved(self, mapped: Sequence[int | None] | None, extent: Any) -> ExternCall:
        """The same call on other tensors: for each position of their axes at ``mapped``, where there are any."""
        if mapped is None:
            return ExternCall(self.name, self.fn, self.shapes, self.kinds, self.in_forward_pass)
        shapes = tuple((extent, *shape) for shape in self.shapes)
        batched = _Batched(self.fn, tuple(mapped))
        return ExternCall(self.name, batched, shapes, self.kinds, self.in_forward_pass)

    def adjoint(self, output: Extern, head: Tensor) -> list[Extern | None]:
        """The adjoint of each input of the call, for the adjoint ``head`` of one of its outputs.

        All of them come from one call of ``jax.vjp``. ``head`` may have a prefix of axes; integer inputs have no
        adjoint (None).
        """
        made = self._adjoints.get(output.position)
        if made is None or made[0] is not head:
            made = head, self._adjoint(output, head)
            self._adjoints[output.position] = made
        return made[1]

    def tangent(self, output: Extern, moving: Mapping[Tensor, Tensor], prefix: int) -> Extern:
        """The tangent of one of the outputs from those of the inputs that are ``moving``, by ``jax.jvp``.

        The tangents of all outputs come from one call. Each of ``moving`` has ``prefix`` axes before those of its tensor.
        """
        key = tuple(id(t) for pair in moving.items() for t in pair)
        made = self._tangents.get(key)
        if made is None:
            wanted = tuple(n for n, t in enumerate(output.inputs) if t in moving)
            heads = [moving[output.inputs[n]] for n in wanted]
            extents = heads[0].shape[:prefix]
            fn = _Jvp(self.fn, len(output.inputs), wanted, self.kinds, prefix)
            call = ExternCall(f"{self.name}_jvp", fn, tuple((*extents, *s) for s in self.shapes), self.kinds)
            made = call.tensors([*output.inputs, *heads])
            self._tangents[key] = made
        return made[output.position]

    def _adjoint(self, output: Extern, head: Tensor) -> list[Extern | None]:
        inputs = output.inputs
        wanted = tuple(n for n, t in enumerate(inputs) if dtypes.is_inexact(t.dtype))
        found: list[Extern | None] = [None] * len(inputs)
        if not wanted:
            return found
        prefix = head.shape[: head.ndim - output.ndim]
        fn = _Vjp(self.fn, len(inputs), wanted, output.position, len(prefix))
        shapes = tuple((*prefix, *inputs[n].shape) for n in wanted)
        call = ExternCall(f"{self.name}_vjp", fn, shapes, tuple(inputs[n].dtype for n in wanted))
        for n, tensor in zip(wanted, call.tensors([*inputs, head]), strict=True):
            found[n] = tensor
        return found


@dataclass(frozen=True, eq=False)
class _Vjp:
    """The adjoints of the ``wanted`` inputs of ``fn``, from its inputs and the adjoint of one output.

    ``prefix`` is the number of axes that the adjoint has in front of those of the output.
    """

    fn: Callable[..., Any]
    inputs: int
    wanted: tuple[int, ...]
    position: int
    prefix: int

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        *primals, head = arrays

        def of_wanted(*values: Any) -> Any:
            filled = list(primals)
            for n, value in zip(self.wanted, values, strict=True):
                filled[n] = value
            return self.fn(*filled)[self.position]

        _, pull = jax.vjp(of_wanted, *(jnp.asarray(primals[n]) for n in self.wanted))
        for _ in range(self.prefix):
            pull = jax.vmap(pull)
        return pull(jnp.asarray(head))


@dataclass(frozen=True, eq=False)
class _Jvp:
    """The tangents of the outputs of ``fn``, from its inputs and the tangents of those that are ``wanted``.

    ``prefix`` is the number of axes that the tangents have in front of those of the inputs.
    """

    fn: Callable[..., Any]
    inputs: int
    wanted: tuple[int, ...]
    kinds: tuple[str, ...]
    prefix: int

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        primals, tangents = arrays[: self.inputs], arrays[self.inputs :]

        def of_wanted(*values: Any) -> Any:
            filled = list(primals)
            for n, value in zip(self.wanted, values, strict=True):
                filled[n] = value
            return self.fn(*filled)

        def push(*moves: Any) -> Any:
            _, moved = jax.jvp(of_wanted, tuple(jnp.asarray(primals[n]) for n in self.wanted), moves)
            return tuple(
                jnp.zeros(m.shape, kind) if m.dtype == jax.dtypes.float0 else m
                for m, kind in zip(moved, self.kinds, strict=True)
            )

        for _ in range(self.prefix):
            push = jax.vmap(push)
        return push(*map(jnp.asarray, tangents))


@dataclass(frozen=True, eq=False)
class _Batched:
    """``fn`` for each position of the axes ``mapped`` of its arguments, in front of its results."""

    fn: Callable[..., Any]
    mapped: tuple[int | None, ...]

    @property
    def __name__(self) -> str:
        return getattr(self.fn, "__name__", type(self.fn).__name__)

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        return jax.vmap(self.fn, self.mapped)(*map(jnp.asarray, arrays))


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


@wants_arguments
def extern(
    shape_or_dtype_struct: Any, fn: Callable[..., Any], inputs: Sequence[Tensor], name: str | None = None
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
