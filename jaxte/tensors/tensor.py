"""Tensors: placeholders, computed tensors and extern nodes, and the graph that they form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.checks import counted, for_users
from jaxte.lang.errors import DefinitionError, IndexExpressionError, ShapeError, TruthValueError, nearest
from jaxte.lang.expr import Axis, Expr, Read, as_expr
from jaxte.lang.graphs import ordered
from jaxte.lang.operators import Op, Operand
from jaxte.lang.text import definition_text, index_text, text
from jaxte.lang.walk import at_positions, reads_of
from jaxte.tensors.facts import Fact
from jaxte.tensors.shapes import Shape, as_extent, shape_text

made_within: ContextVar[tuple[list[Tensor], ...]] = ContextVar("made_within", default=())
"""The lists of the regions under way, to which each tensor that is defined is added."""
# operators that are not called as the methods of arrays are
_OPERATORS = dict(T="transpose", mT="transpose", astype="cast", dot="matmul", ravel="flatten", var="variance")
_FIXED = {"shape": "te.ops.reshape(x, shape)", "dtype": 'te.ops.cast(x, "float32")'}
_operate: Callable[[Op, Sequence[Any]], Any]


def operate_with(elementwise: Callable[[Op, Sequence[Any]], Any]) -> None:
    """Lets the operators of whole tensors make what ``elementwise`` does, which broadcasts them."""
    global _operate
    _operate = elementwise


class Tensor(Operand[Any, "Tensor"]):
    """A node of the graph.

    Attributes:
        name: a label; any text, not necessarily unique.
        shape: extents, integers or expressions of sizes.
        dtype: name of the element type.
        facts: what is known of its values; see :mod:`jaxte.tensors.facts`.
        override: the derivative that was given for it where it was defined, in place of the derived one; wherever the
            tensor goes, it goes with it (see :mod:`jaxte.derivatives.overrides`).
    """

    __slots__ = ("__weakref__", "dtype", "facts", "name", "override", "shape")

    shape: Shape
    dtype: str

    def __init__(self, name: str, shape: Shape, dtype: str) -> None:
        self.name = name
        super().__setattr__("shape", shape)
        super().__setattr__("dtype", dtype)
        self.facts: tuple[Fact, ...] = ()
        self.override: Any = None
        for own in made_within.get():
            own.append(self)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that this one reads, in order of appearance."""
        return ()

    def __getitem__(self, indices: Any) -> Read:
        """The element at ``indices``: one index expression for each axis, ``X[()]`` for a scalar tensor."""
        if not isinstance(indices, tuple):
            indices = (indices,)
        if any(isinstance(index, slice) or index is Ellipsis or index is None for index in indices):
            shown = ", ".join(map(index_text, indices))
            raise DefinitionError(
                f"{self.name}[{shown}]: an element is read with one index expression for each axis, not with slices; "
                "te.ops.strided_slice and te.compute make slices"
            )
        if len(indices) != self.ndim:
            given = ", ".join(str(text(i) if isinstance(i, Expr) else i) for i in indices)
            found, wanted = counted(len(indices), "index", "indices"), counted(self.ndim, "axis", "axes")
            raise ShapeError(
                f"{self.name}[{given}] has {found}, but {self.name} has {wanted} "
                f"{shape_text(self.shape)}; give one index for each axis"
            )
        return Read(self, tuple(self._index(axis, index) for axis, index in enumerate(indices)))

    __call__ = __getitem__

    def _index(self, axis: int, index: Any) -> Expr:
        expr = as_expr(index)
        if not dtypes.is_integer(expr.dtype):
            raise IndexExpressionError(
                f"axis {axis} of {self.name} is indexed by `{text(expr)}` of dtype {expr.dtype}; "
                "an index is an integer: divide by //, and use te.cast(..., 'int32') on data"
            )
        return expr

    def with_facts(self, facts: Iterable[Fact]) -> Self:
        """This tensor, of whose values ``facts`` are known from now on, and no others."""
        self.facts = tuple(facts)
        return self

    def with_override(self, override: Any) -> None:
        """From now on the derivative of this tensor is ``override``, unless one stands already."""
        if self.override is None:
            self.override = override

    if not TYPE_CHECKING:  # to which every attribute that is not above is an error

        def __getattr__(self, name: str) -> Any:
            """Methods of arrays, which definitions are written without."""
            kind = type(self).__name__
            if name.startswith("_") or name in ("at", "aval", "item"):
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            own = [] if hasattr(np.ndarray, name) else [n for n in dir(self) if not n.startswith("_")]
            if near := nearest(name, own):
                raise AttributeError(f"{kind!r} object has no attribute {name!r}{near}")
            raise AttributeError(
                f"{kind!r} object has no attribute {name!r}: a Tensor is no array; write what one element is, as in te.sum(x[k], over=k) or "
                f"x[j, i] in te.compute, or call an operator on whole tensors, te.ops.{_OPERATORS.get(name, name)}(x) or the like; "
                "te.grad, te.value_and_grad and te.adjoint take functions of arrays as they are"
            )

    def __setitem__(self, indices: object, value: object) -> None:
        raise DefinitionError(
            f"the elements of {self.name} are what its definition says, and cannot be assigned; choose among values with te.select(i == 0, a, b), "
            "or write the loop with its assignments as a function of te.loops"
        )

    if not TYPE_CHECKING:  # to which an assignment of these is an error of its own

        def __setattr__(self, name: str, value: Any) -> None:
            """What reads a tensor was checked against its shape and dtype, so that they stay."""
            if name in _FIXED:
                raise DefinitionError(
                    f"the {name} of {self.name} cannot be assigned; {_FIXED[name]} makes another tensor"
                )
            super().__setattr__(name, value)

    def __len__(self) -> int:
        if self.shape and isinstance(self.shape[0], int):
            return self.shape[0]
        raise DefinitionError(f"{self!r} has no length that is known now; its extents are {self.name}.shape")

    def __iter__(self) -> Any:
        raise DefinitionError(f"tensor {self.name} cannot be iterated over; read its elements with indices")

    def __bool__(self) -> bool:
        raise TruthValueError(f"the tensor `{self!r}`")

    def _apply(self, op: Op, args: tuple[Any, ...]) -> Any:
        return _operate(op, args)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: object) -> Tensor:
        """Itself: what reads it refers to this tensor, not to another of the same name."""
        return self

    def __reduce__(self) -> Any:
        """With all that it is computed from; in another process it is another tensor of the same definition.

        What it is computed from comes first and in order, so that a long chain of tensors needs no deep recursion.
        """
        slots = [s for own in type(self).__mro__ for s in getattr(own, "__slots__", ()) if s != "__weakref__"]
        state = {slot: getattr(self, slot) for slot in slots}
        if isinstance(self, Compute):
            state["_inputs"] = None
        return (
            _blank,
            (type(self), self.name, self.shape, self.dtype),
            (ordered(self.inputs, lambda node: node.inputs), state),
        )

    def __setstate__(self, pickled: tuple[Any, dict[str, Any]]) -> None:
        for slot, value in pickled[1].items():
            super().__setattr__(slot, value)

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}{shape_text(self.shape)}"


for _name, _method in list(vars(Operand).items()):
    # operators of whole tensors stand in the code of users alone, unlike those of expressions
    if isinstance(_method, FunctionType) and _name.startswith("__") and _name not in vars(Tensor):
        setattr(Tensor, _name, for_users(_method))


class Compute(Tensor):
    """A tensor given by what one element is.

    Attributes:
        axes: one axis for each entry of ``shape``, from 0.
        body: the scalar expression of the element at ``axes``.
        part_of: the name of the tensor that it was made for, which stands for it where forms are named; its own name where there is none.
        planned_by: the names of the steps of planning that made the body what it is.
    """

    __slots__ = ("_inputs", "axes", "body", "part_of", "planned_by")

    def __init__(self, name: str, axes: Sequence[Axis], body: Expr) -> None:
        super().__init__(name, tuple(as_extent(a.hi) for a in axes), body.dtype)
        self.axes = tuple(axes)
        self.body = body
        self.part_of = name
        self.planned_by: tuple[str, ...] = ()
        self._inputs: tuple[Tensor, ...] | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        if self._inputs is None:
            self._inputs = tuple(dict.fromkeys([read.tensor for read in reads_of(self.body)]))
        return self._inputs

    def element(self, indices: Iterable[Expr]) -> Expr:
        """What the element at ``indices`` is, in place of a read of it."""
        return at_positions(self.body, dict(zip(self.axes, indices, strict=True)))

    def over(self, axes: Sequence[Axis], body: Expr) -> Compute:
        """A tensor of the same name and kind with another definition."""
        return type(self)(self.name, axes, body).as_part_of(self.part_of)

    def renewed(self, body: Expr, axes: Sequence[Axis] | None = None) -> Compute:
        """A tensor of the same values, of which the same is known, written as ``body``."""
        made = self.alike(self.name, self.axes if axes is None else axes, body)
        return made.with_facts(self.facts).as_part_of(self.part_of).as_planned_by(self.planned_by)

    def as_part_of(self, name: str) -> Self:
        """This tensor, made for the one called ``name``: where forms are named, that name stands for it too."""
        self.part_of = name
        return self

    def as_planned_by(self, steps: Iterable[str]) -> Self:
        """This tensor, whose body is what ``steps`` of planning made of it."""
        self.planned_by = tuple(steps)
        return self

    def alike(self, name: str, axes: Sequence[Axis], body: Expr) -> Compute:
        """A tensor that stands for this one, or for a part of it."""
        return Compute(name, axes, body)

    def __repr__(self) -> str:
        return definition_text(self.name, self.axes, self.body)


class Extern(Tensor):
    """One output of a function on arrays, opaque to index notation.

    Attributes:
        fn: takes the arrays of ``inputs``, returns one array for each of the node's outputs.
        position: which output this tensor is.
        group: the object that all outputs of one call share.
    """

    __slots__ = ("_inputs", "fn", "group", "position")

    def __init__(
        self,
        name: str,
        shape: Shape,
        dtype: str,
        fn: Callable[..., Any],
        inputs: Sequence[Tensor],
        position: int,
        group: object,
    ) -> None:
        super().__init__(name, shape, dtype)
        self.fn = fn
        self._inputs = tuple(inputs)
        self.position = position
        self.group = group

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self._inputs


def _blank(kind: type[Tensor], name: str, shape: Shape, dtype: str) -> Tensor:
    """A tensor of which only what its readers ask for is known yet."""
    made = kind.__new__(kind)
    Tensor.__init__(made, name, shape, dtype)
    return made


def new_axes(shape: Shape, names: Sequence[str] | None = None) -> tuple[Axis, ...]:
    """Output axes over ``shape``; i0, i1, ... where no names are given."""
    names = [f"i{n}" for n in range(len(shape))] if names is None else names
    return tuple(Axis(name, 0, extent) for name, extent in zip(names, shape, strict=True))


# --- arrays of numbers


# --- the graph
