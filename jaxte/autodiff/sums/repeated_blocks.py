"""Definitions that are equal up to names are derived once: the steps of a user's own loop, layers of one kind.

What one tensor passes on to another is a sum over reads of both, of what they read, and of the head. The next pair of tensors with an equal definition gets
that sum over its own tensors and axes of its own: what would be derived for it, node by node, with what its reads have in common and its sums at
multiples. Whatever is told apart by more than the definition (tensors that all adjoints of one share; facts) is derived by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jaxte.autodiff.rules.seeds import Adjoint, Origin, seed_of
from jaxte.autodiff.sums.blocks import diff_building_block
from jaxte.autodiff.terms.shared import Shared, shared_part
from jaxte.autodiff.terms.support import LatticeSum
from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce
from jaxte.lang.graphs import among, place_of
from jaxte.lang.walk import all_of, fold, postorder
from jaxte.tensors.structure import Structure, structure_of, topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, eq=False)
class _Block:
    """What ``head`` passes on through ``output`` to ``input``, and the parts that it is computed in, the first one first."""

    output: Compute
    input: Tensor
    head: Tensor
    seed: Compute
    adjoint: Adjoint
    parts: tuple[Compute, ...]

    def prefix(self, part: Compute) -> str:
        """What the name of ``part`` begins with that is of these tensors."""
        return (
            f"shared_{self.output.name}" if isinstance(part, Shared) else f"d{self.input.name}_at_multiples"
        )


@dataclass
class RepeatedBlocks:
    """The building blocks of one accumulation.

    Definitions are compared where an earlier one looks alike, so that graphs in which nothing is repeated do not pay for it.
    """

    _first: dict[Hashable, _Block] = field(default_factory=dict)
    _compared: set[_Block] = field(default_factory=set)
    _known: dict[Hashable, _Block] = field(default_factory=dict)
    _structures: dict[Compute, Structure | None] = field(default_factory=dict)

    def block(self, output: Tensor, input: Tensor, head: Tensor) -> Tensor | None:
        """:func:`diff_building_block`, or that of equal tensors over these."""
        if not isinstance(output, Compute) or head.ndim > output.ndim or not among(input, output.inputs):
            return diff_building_block(output, input, head, missing_ok=True)
        outline = _outline(output, input, head)
        key = self._key(output, input, head) if outline in self._first else None
        self._compare(self._first.get(outline))
        known = None if key is None else self._known.get(key)
        if known is not None:
            return _over(known, output, input, head)
        found = diff_building_block(output, input, head, missing_ok=True)
        block = _block_of(found, output, input, head)
        if block is not None:
            if outline not in self._first:
                self._first[outline] = block
            elif key is not None:
                self._known[key] = block
        return found

    def _compare(self, first: _Block | None) -> None:
        """From now on, others are compared with ``first``."""
        if first is None or first in self._compared:
            return
        self._compared.add(first)
        key = self._key(first.output, first.input, first.head)
        if key is not None:
            self._known[key] = first

    def _key(self, output: Compute, input: Tensor, head: Tensor) -> Hashable:
        """What the adjoint depends on; None where that is more than can be said."""
        if output not in self._structures:
            self._structures[output] = structure_of(output)
        structure, seed = self._structures[output], _seed(output, head)
        flows = None if structure is None else structure_of(seed)
        if flows is None:
            return None
        places = tuple(
            place_of(t, output.inputs) if among(t, output.inputs) else None
            for t in (input, head, *seed.inputs)
        )
        return structure, flows, places, _axis_names(input), id(type(head))


def _seed(output: Compute, head: Tensor) -> Compute:
    """What flows into each element of ``output``: an element of ``head``, guarded or not, or what that is."""
    return Compute(f"d{output.name}", output.axes, seed_of(head, output.axes, output))


def _outline(output: Compute, input: Tensor, head: Tensor) -> Hashable:
    """What equal definitions have in common that is cheap to tell."""
    node = output.body
    op = getattr(node, "op", None)
    names = tuple(a.name for a in output.axes)
    place = place_of(input, output.inputs)
    return type(node), op and op.name, output.shape, names, len(output.inputs), place, type(head)


def _axis_names(tensor: Tensor) -> tuple[str, ...] | None:
    """The names that axes of an adjoint of ``tensor`` get of it."""
    return tuple(a.name for a in tensor.axes) if isinstance(tensor, Compute) else None


def _block_of(found: Tensor | None, output: Compute, input: Tensor, head: Tensor) -> _Block | None:
    """``found`` as it can be said over other tensors; None where more is known of it, or of what it reads, than its definition."""
    if not isinstance(found, Adjoint) or type(found) is not Adjoint:
        return None
    if [(o.reader, o.tensor, o.head) for o in found.origins] != [(output, input, head)]:
        return None
    seed = _seed(output, head)
    known = {output, *output.inputs, head, *seed.inputs}
    made = [t for t in topological_order([found], lambda t: () if t in known else t.inputs) if t not in known]
    parts = tuple(t for t in made if isinstance(t, (Shared, LatticeSum)))
    block = _Block(output, input, head, seed, found, parts)
    is_plain = (
        len(parts) == len(made) - 1
        and all(part.name.startswith(block.prefix(part)) for part in parts)
        and all(_is_plain(t) for t in (found, *parts))
    )
    return block if is_plain else None


def _is_plain(tensor: Compute) -> bool:
    """Whether nothing is known of the axes in ``tensor`` but numbers or sizes between which they are."""
    axes = all_of(Axis, tensor.body)
    stated = any(a.given is not TRUE or a.ends != (None, None) for a in axes)
    return not stated and not any(isinstance(n, Axis) for a in axes for n in postorder(a.lo, a.hi))


def _over(block: _Block, output: Compute, input: Tensor, head: Tensor) -> Adjoint:
    """The adjoint of ``block`` over other tensors, and over axes of its own."""
    seed = _seed(output, head)
    before = (block.output, *block.output.inputs, block.head, *block.seed.inputs)
    tensors = dict(zip(before, (output, *output.inputs, head, *seed.inputs), strict=True))
    own = replace(block, output=output, input=input)
    for part in block.parts:
        name = own.prefix(part) + part.name.removeprefix(block.prefix(part))
        make = shared_part if isinstance(part, Shared) else type(part)
        tensors[part] = make(name, *_definition(part, tensors))
    axes, body = _definition(block.adjoint, tensors)
    return Adjoint(f"d{input.name}", axes, body, [head], [Origin(output, input, head)])


def _definition(tensor: Compute, tensors: Mapping[Tensor, Tensor]) -> tuple[list[Axis], Expr]:
    """Axes and body of ``tensor`` over other ``tensors``."""
    own = {a: _fresh(a) for a in tensor.axes}
    return list(own.values()), _renamed(tensor.body, tensors, own.copy())


def _renamed(root: Expr, tensors: Mapping[Tensor, Tensor], axes: dict[Axis, Axis]) -> Expr:
    """``root`` over other ``tensors`` and ``axes``, which grow by those that are summed over."""

    def step(node: Expr, children: list[Any]) -> Expr:
        match node:
            case Axis():
                return axes.setdefault(node, _fresh(node))
            case Read():
                return Read(tensors[node.tensor], children)
            case Reduce():
                own = [axes.setdefault(a, _fresh(a)) for a in node.axes]
                return node.changed(exprs=children[:-1], axes=own, where=children[-1])
        same = all(new is old for new, old in zip(children, node.children, strict=True))
        return node if same else node.rebuild(children)

    return fold(root, step)  # type: ignore[no-any-return]


def _fresh(axis: Axis) -> Axis:
    return Axis(axis.name, axis.lo, axis.hi, axis.reduction)
