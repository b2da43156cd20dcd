"""Calls of functions on arrays as nodes of the graph: their adjoints, tangents and batches, by those of JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.graphs import filled_in
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
    # these hold what the ids are of
    _tangents: dict[tuple[int, ...], list[Extern]] = field(default_factory=dict)

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
        prefix = head.shape[: head.ndim - output.ndim]
        linear = _transposed(self.fn, output.position, inputs[-1].shape) if wanted else None
        if linear is not None and _is_there(linear, [*inputs[:-1], output]):
            # adjoints are linear in their heads: their adjoints in these do not depend on them
            pushed = _AtPrefix(linear, len(prefix))
            own = inputs[-1]
            made = ExternCall(f"{self.name}_transposed", pushed, ((*prefix, *own.shape),), (own.dtype,))
            (found[-1],) = made.tensors([*inputs[:-1], head])
            wanted = tuple(n for n in wanted if n < len(inputs) - 1)
        if not wanted:
            return found
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
            return self.fn(*filled_in(primals, self.wanted, values))[self.position]

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
            return self.fn(*filled_in(primals, self.wanted, values))

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


def _transposed(fn: Callable[..., Any], position: int, shape: Sequence[Any]) -> Callable[..., Any] | None:
    """The transpose of what is linear in its last argument: from the other arguments and the adjoint of one output to that of the argument.

    For adjoints it is the tangent of the function whose adjoints they are, for that the adjoint again. None where ``fn`` is something else.

    Args:
        shape: of the last argument.
    """
    match fn:
        case _Vjp():
            return _Tangent(fn, position)
        case _AtPrefix() if all(isinstance(e, int) for e in shape):
            return _Transpose(fn, tuple(shape))
        case _Batched(inner, mapped):
            own = [e for n, e in enumerate(shape) if n != mapped[-1]]
            one = _transposed(inner, position, own)
            return None if one is None else _OfEach(one, mapped)
    return None


def _is_there(transposed: Callable[..., Any], arguments: Sequence[Tensor]) -> bool:
    """Whether JAX has the transpose: not that of a ``jax.custom_vjp``."""
    if not all(isinstance(e, int) for t in arguments for e in t.shape):
        return True
    structs = [jax.ShapeDtypeStruct(t.shape, np.dtype(t.dtype)) for t in arguments]
    try:
        return not is_of_custom_vjp(jax.make_jaxpr(transposed)(*structs))
    except (TypeError, NotImplementedError):
        return False


def is_of_custom_vjp(jaxpr: Any) -> bool:
    """Whether a jaxpr has the tangent of a ``jax.custom_vjp``, which no one can evaluate."""
    return "custom_lin[" in str(jaxpr)


@dataclass(frozen=True, eq=False)
class _Tangent:
    """The tangent of the output that ``adjoints`` are of, where one of the inputs moves."""

    adjoints: _Vjp
    position: int

    def __call__(self, *arrays: Any) -> Any:
        *primals, moved = arrays
        of = self.adjoints
        at = of.wanted[self.position]

        def of_one(value: Any) -> Any:
            return of.fn(*primals[:at], value, *primals[at + 1 :])[of.position]

        def push(move: Any) -> Any:
            return jax.jvp(of_one, (jnp.asarray(primals[at]),), (move,))[1]

        for _ in range(of.prefix):
            push = jax.vmap(push)
        return push(moved)


@dataclass(frozen=True, eq=False)
class _OfEach:
    """A transpose for each position of the axes ``mapped`` of what is transposed, of which the last is that of its last argument."""

    fn: Callable[..., Any]
    mapped: tuple[int | None, ...]

    def __call__(self, *arrays: Any) -> Any:
        *others, last = self.mapped
        found = jax.vmap(self.fn, (*others, 0), 0 if last is None else last)(*arrays)
        return found.sum(0) if last is None else found


@dataclass(frozen=True, eq=False)
class _AtPrefix:
    """``fn`` at every position of the axes that its last argument has in front, as one output."""

    fn: Callable[..., Any]
    prefix: int

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        *primals, moved = map(jnp.asarray, arrays)

        def push(move: Any) -> Any:
            return self.fn(*primals, move)

        for _ in range(self.prefix):
            push = jax.vmap(push)
        return (push(moved),)


@dataclass(frozen=True, eq=False)
class _Transpose:
    """The transpose of ``fn`` in its last argument, which has the shape ``shape``."""

    fn: _AtPrefix
    shape: tuple[int, ...]

    def __call__(self, *arrays: Any) -> Any:
        *primals, head = arrays
        struct = jax.ShapeDtypeStruct(self.shape, head.dtype)
        (found,) = jax.linear_transpose(lambda move: self.fn(*primals, move)[0], struct)(head)
        return found
