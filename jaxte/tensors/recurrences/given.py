"""What a user gives to ``te.recurrence``, checked, and the group of tensors that it makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxte.lang import dtypes
from jaxte.lang.checks import described, one_of_type
from jaxte.lang.errors import ArgumentError, DefinitionError, RangeError, ShapeError
from jaxte.lang.expr import Axis, Expr, Read, ScalarLike, as_expr, cast
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, rewrite
from jaxte.sets.affine import normal
from jaxte.sets.index_forms import linear_or_none
from jaxte.tensors.bodies.functions import check_result, evaluated
from jaxte.tensors.compute import defined
from jaxte.tensors.recurrences.inner import Around, Inner, with_whole
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.recurrences.products import lags_of, unrolled, with_products
from jaxte.tensors.recurrences.starts import begun, guarded_read, number_of, with_values
from jaxte.tensors.recurrences.steps import step_of
from jaxte.tensors.shapes import Shape, check_shape, same_extent, shape_text
from jaxte.tensors.tensor import Compute, Tensor, new_axes

_GUESS = "float32"
Body = Callable[..., ScalarLike]


@dataclass(frozen=True)
class Given:
    """What the user gave, checked: of each tensor its own."""

    shapes: tuple[Shape, ...]
    fns: tuple[Callable[..., Any], ...]
    axes: tuple[tuple[Axis, ...], ...]
    names: tuple[str, ...]
    inits: tuple[Any, ...]
    kinds: tuple[str | None, ...]
    places: tuple[int, ...]
    reverse: bool
    is_one: bool
    is_tuple: bool

    @property
    def label(self) -> str:
        return ", ".join(self.names)

    @property
    def begins(self) -> list[Expr]:
        """What stands before the first position, where that is said by expressions."""
        return [e for e in map(self._begin, range(len(self.inits))) if e is not None]

    def _begin(self, number: int) -> Expr | None:
        """What stands before the first position of one tensor, where that is said by an expression."""
        init, place = self.inits[number], self.places[number]
        others = [a for n, a in enumerate(self.axes[number]) if n != place]
        if isinstance(init, Inner):
            return init[tuple(others)]
        if isinstance(init, Expr):
            return init
        return as_expr(evaluated(init, *others)) if callable(init) and not isinstance(init, Tensor) else None

    def within(self, around: Around) -> Given:
        """The same over the axes of the body that it stands in, too."""
        count = len(around.axes)
        return replace(
            self,
            shapes=tuple((*around.shape, *s) for s in self.shapes),
            axes=tuple((*around.own, *own) for own in self.axes),
            places=tuple(p + count for p in self.places),
            inits=tuple(around.init(i) for i in self.inits),
        )

    def first_kinds(self) -> list[str]:
        return [kind or self._kind_of_init(number) for number, kind in enumerate(self.kinds)]

    def _kind_of_init(self, number: int) -> str:
        """The dtype of the values before the first position, from which the body makes that of the others."""
        init = self.inits[number]
        if isinstance(init, Tensor):
            return init.dtype
        value = self._begin(number)
        return _GUESS if value is None or value.weak else value.dtype

    def evaluated(self, kinds: Sequence[str]) -> tuple[tuple[State, ...], list[Expr]]:
        """States of these dtypes, and what the bodies make of them."""
        states = tuple(map(State, self.names, self.shapes, kinds))
        if len(self.fns) == len(states) and not self.is_tuple:
            values = [evaluated(fn, *states, *own) for fn, own in zip(self.fns, self.axes, strict=True)]
        else:
            values = evaluated(self.fns[0], *states, *self.axes[0])
            if not isinstance(values, (tuple, list)) or len(values) != len(states):
                count = len(values) if isinstance(values, (tuple, list)) else 1
                raise DefinitionError(
                    f"the body of {self.label} returns {count} expressions for {len(states)} tensors; return a tuple of one for each"
                )
        return states, [check_result(v, n) for v, n in zip(values, self.names, strict=True)]

    def group(self, states: Sequence[State], results: Sequence[Expr]) -> Recurrence:
        """The recurrence, checked."""
        every = dict(zip(states, self.places, strict=True))
        bodies = [unrolled(r, every) for r in results]
        lags = lags_of(bodies, self.axes, every, self.reverse)
        before = {
            s: made
            for n, s in enumerate(states)
            if (made := self._before(n, s, max(lags.get(s, 0), 1))) is not None and s in lags
        }

        def rule(node: Expr) -> Expr:
            if isinstance(node, Read) and isinstance(node.tensor, State) and node.tensor in before:
                return self._read(node, every[node.tensor], before[node.tensor])
            return node

        typed = [cast(rewrite(b, rule), s.dtype) for b, s in zip(bodies, states, strict=True)]
        definitions: list[Compute] = []
        for label, axes, body in zip(self.names, self.axes, typed, strict=True):
            try:
                definitions += defined([label], axes, [body])
            except RangeError as error:
                raise RangeError(self._said(error, states, before)) from None
        plain = Recurrence(tuple(states), tuple(definitions), self.places, self.reverse)
        group = with_whole(with_products(plain))
        step_of(group)
        return group

    def _said(self, error: RangeError, states: Sequence[State], before: dict[State, Tensor]) -> str:
        said = str(error)
        found = [n for n, s in enumerate(states) if s not in before and said.startswith(f"{s.name}[")]
        if not found:
            return said
        name, clock = states[found[0]].name, self.axes[found[0]][self.places[found[0]]].name
        where, sign = ("behind the last", "+") if self.reverse else ("before the first", "-")
        if self.inits[found[0]] is None:
            return f"{said}; {name} has no values {where} position: give te.recurrence(..., init=...)"
        return (
            f"{said}; init is what reads of a fixed number of positions away, such as {name}[{clock} {sign} 1], find {where} position; other reads "
            "of it need a condition around them"
        )

    def _read(self, node: Read, place: int, before: Tensor) -> Expr:
        own = self.axes[self.names.index(node.tensor.name)] if node.tensor.name in self.names else ()
        index = node.indices[place]
        moving = [a for axes in (own, *self.axes) for a in axes if a in free_axes(index)]
        offset = linear_or_none(index - moving[0]) if moving else None
        if offset is None or not offset.is_constant or not offset.constant:
            return node
        indices = [normal(i) if n == place else i for n, i in enumerate(node.indices)]
        return guarded_read(node.tensor, place, Read(node.tensor, indices), before, self.reverse)

    def _before(self, number: int, state: State, length: int) -> Tensor | None:
        """The values before the first position as a tensor with the axis, which is as long as the recurrence looks back."""
        init, place = self.inits[number], self.places[number]
        if init is None:
            return None
        label = f"{state.name}_init"
        rest = (*state.shape[:place], *state.shape[place + 1 :])
        axes = new_axes((*rest[:place], length, *rest[place:]), [a.name for a in self.axes[number]])
        if isinstance(init, Tensor) and init.ndim == state.ndim:
            self._check_init(init, place, rest, state, length)
            extent = init.shape[place]
            if same_extent(extent, length) and init.dtype == state.dtype:
                return init
            shift = 0 if self.reverse else as_expr(extent) - length
            at = [a + shift if n == place else a for n, a in enumerate(axes)]
            return defined([label], axes, [begun(Read(init, at), state)])[0]
        others = [a for n, a in enumerate(axes) if n != place]
        if isinstance(init, Tensor):
            if not init.shape:
                others = []  # one number stands before all of the other axes
            elif len(init.shape) != len(rest) or not all(map(same_extent, init.shape, rest)):
                raise ShapeError(
                    f"init of {state.name} has shape {shape_text(init.shape)}; give {shape_text(rest)}, the shape of {state.name} without axis "
                    f"{place}, one number, or one with as many values along it as {state.name} looks back ({length})"
                )
            value: Expr = Read(init, others)
        else:
            value = (
                check_result(evaluated(init, *others), label) if callable(init) else number_of(init, state)
            )
        return defined([label], axes, [begun(value, state)])[0]

    def _check_init(self, init: Tensor, place: int, rest: Shape, state: State, length: int) -> None:
        own = (*init.shape[:place], *init.shape[place + 1 :])
        extent = init.shape[place]
        if not all(map(same_extent, own, rest)) or (isinstance(extent, int) and extent < length):
            raise ShapeError(
                f"init of {state.name} has shape {shape_text(init.shape)}; along axis {place} it holds the {length} values that {state.name} looks "
                f"back at, and the other extents are {shape_text(rest)}"
            )


def given_from(shape: Any, fn: Any, init: Any, axis: Any, reverse: Any, dtype: Any, name: Any) -> Given:
    """What was given, for each tensor."""
    several = isinstance(shape, (list, tuple)) and bool(shape) and isinstance(shape[0], (list, tuple))
    fns = tuple(fn) if isinstance(fn, (list, tuple)) else (fn,)
    _check_bodies(fns, len(shape) if several else None)
    shapes = [check_shape(s, "te.recurrence") for s in (shape if several else (shape,))]
    labels = [_parameters(own) for own in fns]
    count = len(shapes) if several else _count(fns[0], labels[0], len(shapes[0]), init)
    is_one, is_tuple = not several and count == 1, not several and count > 1
    shapes = shapes * count if is_tuple else shapes
    of_one_body = is_tuple and len(fns) == 1
    written = [labels[n if len(labels) > 1 else 0][count:] for n in range(count)]
    bodies = 1 if of_one_body else count  # each has axes of its own
    axes = [new_axes(s, _axis_names(own, len(s))) for s, own in zip(shapes, written[:bodies], strict=False)]
    default = (labels[0][:count] + [f"s{n}" for n in range(count)])[:count]
    names = _each(name, count, "name") if name is not None else default
    inits = [init] if is_one else _each(init, count, "init")
    return Given(
        tuple(shapes),
        fns,
        tuple(axes * (count // bodies)),
        tuple(one_of_type(n, str, "a name of te.recurrence", "a string") for n in names),
        tuple(with_values(i, n) for i, n in zip(inits, names, strict=True)),
        tuple(None if k is None else dtypes.dtype_name(k) for k in _each(dtype, count, "dtype")),
        _places(axis, shapes),
        bool(reverse),
        is_one,
        of_one_body,
    )


def _check_bodies(fns: Sequence[Any], count: int | None) -> None:
    """Refuses what is no function, and other than one function for each of ``count`` shapes, where there are several."""
    for own in fns:
        if not callable(own):
            raise ArgumentError(
                f"the body of te.recurrence is {described(own)}; give a function of the tensor itself and of one index for each axis"
            )
    if count is not None and len(fns) != count:
        raise ArgumentError(
            f"te.recurrence has {count} shapes and {len(fns)} bodies; give a function for each shape"
        )


def _parameters(fn: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(fn).parameters.values()
    return [
        p.name
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]


def _count(fn: Callable[..., Any], labels: Sequence[str], ndim: int, init: Any) -> int:
    """How many tensors a body is of: what it takes beside the axes, which ``*axes`` stands for."""
    if labels and any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(fn).parameters.values()):
        return len(labels)
    if len(labels) > ndim:
        return len(labels) - ndim
    if isinstance(init, (tuple, list)):
        return len(init)
    raise DefinitionError(
        f"the body of te.recurrence takes {len(labels)} arguments ({', '.join(labels)}) for {ndim} axes; its first ones are the tensors "
        "themselves, as in lambda h, t, i: ..."
    )


def _axis_names(names: Sequence[str], count: int) -> list[str]:
    return (list(names) + [f"i{n}" for n in range(len(names), count)])[:count]


def _each(value: Any, count: int, what: str) -> list[Any]:
    """One for each tensor; what is no tuple is that of all."""
    if isinstance(value, (tuple, list)):
        if len(value) != count:
            raise ArgumentError(
                f"te.recurrence: {what} has {len(value)} entries for {count} tensors; give one for each"
            )
        return list(value)
    if what == "name" and count > 1:
        own = one_of_type(
            value, str, "the name of te.recurrence", "a string, or a tuple of one for each tensor"
        )
        return [f"{own}_{n}" for n in range(count)]
    return [value] * count


def _places(axis: Any, shapes: Sequence[Shape]) -> tuple[int, ...]:
    """Which axis of each shape the positions are along, of which all have as many."""
    found = tuple(_place(axis, s) for s in shapes)
    extents = [s[p] for s, p in zip(shapes, found, strict=True)]
    if not all(same_extent(e, extents[0]) for e in extents):
        raise ShapeError(
            f"the tensors of a recurrence have {' and '.join(text(as_expr(e)) for e in extents)} positions along axis {axis}; give all the same"
        )
    return found


def _place(axis: Any, shape: Shape) -> int:
    if not isinstance(axis, int) or isinstance(axis, bool) or not -len(shape) <= axis < len(shape):
        raise ArgumentError(
            f"te.recurrence: axis={axis!r}; {shape_text(shape)} has the axes 0 to {len(shape) - 1}"
        )
    return axis % len(shape)
