"""Derivatives of tensors by functions of arrays: a forward and a backward function, or a function with rules of its own in JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten, tree_leaves, tree_unflatten

from jaxte.bridge.given.extern_call import ExternCall, is_of_custom_vjp
from jaxte.derivatives.overrides import Override, Rule, listed_names
from jaxte.lang.checks import described, several, wants_arguments
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DifferentiationError, DtypeError, ShapeError
from jaxte.lang.graphs import filled_in
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.tensor import Extern, Tensor


@dataclass(frozen=True, eq=False)
class ArrayGradient(Rule):
    """See :func:`array_gradient`."""

    inputs: tuple[Tensor, ...]
    forward: Callable[..., Any] | None
    backward: Callable[..., Any] | None
    jvp: Callable[..., Any] | None

    def of(self, outputs: Sequence[Tensor], region: bool) -> Override:
        hook = _Hook(self, tuple(outputs), region)
        tangent = hook.tangents if self.jvp is not None or self.backward is None else None
        moving = tuple(t for t in self.inputs if is_inexact(t.dtype))
        return Override(tuple(outputs), moving, hook.adjoints, tangent, region)


@wants_arguments
def array_gradient(
    inputs: Tensor | Sequence[Tensor],
    forward: Callable[..., object],
    backward: Callable[..., object] | None = None,
    jvp: Callable[..., object] | None = None,
) -> ArrayGradient:
    """A derivative by functions of arrays, to be given as ``override={tensor: te.array_gradient(...)}``, for a region of tensors too.

    The value stays that of the definition; what is derived before and after it is derived as ever. Sizes have to be known.

    Args:
        inputs: the tensors whose arrays the functions take; every input of the tensor has to be among them, or behind them.
        forward: with ``backward``, ``forward(*arrays) -> (value, residuals)`` as in ``jax.custom_vjp``: residuals, any pytree of
            arrays, are kept for the backward pass; the value, which may be None, is not used. Alone, any function ``forward(*arrays) -> value``, with the
            rules that it has in JAX: a ``jax.custom_vjp`` or ``jax.custom_jvp``, for instance.
        backward: ``backward(residuals, cotangent) -> (cotangent of each input)``, None for an integer input or one without.
        jvp: ``jvp(primals, tangents) -> (value, tangent)`` for forward mode, as in ``jax.custom_jvp``; without ``backward`` its transpose is the
            reverse mode.

    Raises:
        DifferentiationError: an input that is not covered; forward mode of a backward function without ``jvp``.

    Example:
        >>> X = te.placeholder((3,), name="X")
        >>> Y = te.compute((3,), lambda i: te.sqrt(X[i]), "Y")
        >>> safe = te.array_gradient(X, lambda x: (jnp.sqrt(x), x), lambda x, ct: (ct / (2 * jnp.sqrt(x) + 1e-6),))
        >>> (dX,) = te.differentiate(Y, [X], te.placeholder((3,), name="H"), override={Y: safe})
    """
    sources = several(inputs, Tensor, "the inputs of te.array_gradient", "Tensors")
    for what, fn in (("forward", forward), ("backward", backward), ("jvp", jvp)):
        if not callable(fn) and not (fn is None and what != "forward"):
            raise DifferentiationError(
                f"the {what} function of te.array_gradient is {described(fn)}; give a function of arrays"
            )
    return ArrayGradient(tuple(sources), forward, backward, jvp)


@dataclass(frozen=True, eq=False)
class _Hook:
    """The rule of given tensors, as nodes of the graph."""

    rule: ArrayGradient
    outputs: tuple[Tensor, ...]
    region: bool

    @property
    def label(self) -> str:
        return listed_names(self.outputs)

    def adjoints(self, outs: Any, moving: Sequence[Tensor], heads: Any) -> list[Tensor]:
        inputs = self.rule.inputs
        listed = list(heads) if self.region else [heads]
        prefix = listed[0].shape[: listed[0].ndim - self.outputs[0].ndim]
        wanted = [n for n, t in enumerate(inputs) if is_inexact(t.dtype)]
        if self.rule.backward is None:
            residuals: list[Tensor] = list(inputs)
            fn: Callable[..., Any] = (
                _pulled(self.rule.forward, len(inputs), wanted)
                if self.rule.jvp is None and self.rule.forward is not None
                else _transposed(self.rule, [n in wanted for n in range(len(inputs))])
            )
        else:
            kept, tree = self._residuals(inputs)
            residuals = list(kept)
            fn = _backward(self.rule.backward, tree, len(kept), self._structs(inputs), wanted, self)
        call = ExternCall(
            f"backward_{self.outputs[0].name}",
            _over_prefix(fn, len(residuals), len(prefix)),
            tuple((*prefix, *inputs[n].shape) for n in wanted),
            tuple(inputs[n].dtype for n in wanted),
        )
        return list(call.tensors([*residuals, *listed]))

    def tangents(self, outs: Any, moving: Sequence[Tensor], moves: Sequence[Tensor]) -> list[Tensor]:
        inputs = self.rule.inputs
        prefix = moves[0].shape[: moves[0].ndim - moving[0].ndim]
        fn = _pushed(self.rule, [is_inexact(t.dtype) for t in inputs])
        try:
            traced = jax.make_jaxpr(fn)(*self._structs(inputs), *self._structs(moving))
        except TypeError as error:
            raise self._no_forward_mode(str(error).splitlines()[0]) from None
        if is_of_custom_vjp(traced):
            raise self._no_forward_mode("it is a jax.custom_vjp")
        call = ExternCall(
            f"jvp_{self.outputs[0].name}",
            _over_prefix(fn, len(inputs), len(prefix)),
            tuple((*prefix, *t.shape) for t in self.outputs),
            tuple(t.dtype for t in self.outputs),
        )
        return list(call.tensors([*inputs, *moves]))

    def _no_forward_mode(self, why: str) -> DifferentiationError:
        return DifferentiationError(
            f"the override of {self.label} has no forward mode: {why}; give the tangent too, by jvp= of te.array_gradient or "
            "defjvp of te.custom_gradient"
        )

    def _structs(self, tensors: Sequence[Tensor]) -> list[jax.ShapeDtypeStruct]:
        for t in tensors:
            if not all(isinstance(e, int) for e in t.shape):
                raise ShapeError(
                    f"the override of {self.label} by functions of arrays needs known sizes; {t.name} has {shape_text(t.shape)}"
                )
        return [jax.ShapeDtypeStruct(t.shape, np.dtype(t.dtype)) for t in tensors]

    def _residuals(self, inputs: Sequence[Tensor]) -> tuple[list[Extern], Any]:
        """What the forward function keeps, as nodes that the forward pass computes."""
        forward = self.rule.forward
        assert forward is not None
        found = jax.eval_shape(forward, *self._structs(inputs))
        if not (isinstance(found, tuple) and len(found) == 2):
            raise DifferentiationError(
                f"the forward function of the override of {self.label} returns {described(found)}; it has to return a pair "
                "(value, residuals), as that of a jax.custom_vjp"
            )
        self._check_value(tree_leaves(found[0]))
        leaves, tree = tree_flatten(found[1])
        if not leaves:
            return [], tree
        call = ExternCall(
            f"residuals_{self.outputs[0].name}",
            lambda *arrays: tuple(map(jnp.asarray, tree_leaves(forward(*map(jnp.asarray, arrays))[1]))),
            tuple(leaf.shape for leaf in leaves),
            tuple(leaf.dtype.name for leaf in leaves),
            in_forward_pass=True,
        )
        return call.tensors(inputs), tree

    def _check_value(self, found: Sequence[Any]) -> None:
        """The value is not used, but one of another shape says that the function is of something else."""
        own = [t.shape for t in self.outputs]
        if found and [value.shape for value in found] != own:
            shapes = ", ".join(shape_text(value.shape) for value in found)
            raise ShapeError(
                f"the forward function of the override of {self.label} returns a value of shape {shapes}; it has to be "
                f"{', '.join(map(shape_text, own))}, or None"
            )


def _transposed(rule: ArrayGradient, moving: Sequence[bool]) -> Callable[..., tuple[Any, ...]]:
    """The transpose of the tangent rule, from the inputs and the heads."""
    push = _pushed(rule, moving)

    def pull(*arrays: Any) -> tuple[Any, ...]:
        primals, heads = arrays[: len(moving)], arrays[len(moving) :]
        own = tuple(p for p, m in zip(primals, moving, strict=True) if m)
        found: tuple[Any, ...] = jax.linear_transpose(lambda *moves: push(*primals, *moves), *own)(heads)
        return found

    return pull


def _pulled(fn: Callable[..., Any], inputs: int, wanted: Sequence[int]) -> Callable[..., tuple[Any, ...]]:
    """The adjoints of the ``wanted`` inputs by the rules that ``fn`` has in JAX, from its inputs and the heads."""

    def pull(*arrays: Any) -> tuple[Any, ...]:
        primals, heads = arrays[:inputs], arrays[inputs:]

        def of_wanted(*values: Any) -> Any:
            return fn(*filled_in(primals, wanted, values))

        value, back = jax.vjp(of_wanted, *(primals[n] for n in wanted))
        leaves, tree = tree_flatten(value)
        return tuple(back(tree_unflatten(tree, heads if len(leaves) == len(heads) else heads[:1])))

    return pull


def _backward(
    fn: Callable[..., Any],
    tree: Any,
    residuals: int,
    structs: Sequence[jax.ShapeDtypeStruct],
    wanted: Sequence[int],
    hook: _Hook,
) -> Callable[..., tuple[Any, ...]]:
    """The adjoints of the ``wanted`` inputs by a backward function, from residuals and heads; what it returns is checked."""

    def back(*arrays: Any) -> tuple[Any, ...]:
        kept, heads = tree_unflatten(tree, arrays[:residuals]), arrays[residuals:]
        found = fn(kept, tuple(heads) if hook.region else heads[0])
        listed = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(listed) != len(structs):
            raise DifferentiationError(
                f"the backward function of the override of {hook.label} returns {len(listed)} cotangents for {len(structs)} inputs "
                f"({listed_names(hook.rule.inputs)}); return a tuple of one for each"
            )
        return tuple(_checked(listed[n], structs[n], hook.rule.inputs[n], hook) for n in wanted)

    return back


def _checked(value: Any, struct: jax.ShapeDtypeStruct, source: Tensor, hook: _Hook) -> Any:
    if value is None:
        return jnp.zeros(struct.shape, struct.dtype)
    where = f"the backward function of the override of {hook.label} returns for {source.name}"
    if not isinstance(value, (jax.Array, np.ndarray, np.generic, int, float, complex)):
        raise DifferentiationError(
            f"{where} {described(value)}; return an array of shape {shape_text(struct.shape)}"
        )
    value = jnp.asarray(value)
    if value.shape != struct.shape:
        raise ShapeError(f"{where} shape {shape_text(value.shape)}; it has to be {shape_text(struct.shape)}")
    if value.dtype != struct.dtype:
        raise DtypeError(f"{where} dtype {value.dtype}; {source.name} has {struct.dtype}")
    return value


def _pushed(rule: ArrayGradient, moving: Sequence[bool]) -> Callable[..., tuple[Any, ...]]:
    """The tangents of the outputs, from the inputs and the tangents of those that are ``moving``."""

    def push(*arrays: Any) -> tuple[Any, ...]:
        primals, given = arrays[: len(moving)], iter(arrays[len(moving) :])
        moves = tuple(
            next(given) if m else np.zeros(p.shape, jax.dtypes.float0)
            for p, m in zip(primals, moving, strict=True)
        )
        push_by: Any = functools.partial(jax.jvp, rule.forward) if rule.jvp is None else rule.jvp  # type: ignore[arg-type]
        own = push_by(primals, moves)
        return tuple(tree_leaves(own[1]))

    return push


def _over_prefix(fn: Callable[..., Any], primals: int, prefix: int) -> Callable[..., tuple[Any, ...]]:
    """``fn`` at every position of the axes that its arguments after the first ``primals`` have in front."""

    def call(*arrays: Any) -> tuple[Any, ...]:
        values = [jnp.asarray(a) for a in arrays]

        def linear(*moves: Any) -> Any:
            return fn(*values[:primals], *moves)

        for _ in range(prefix):
            linear = jax.vmap(linear)
        found: tuple[Any, ...] = linear(*values[primals:])
        return found

    return call
