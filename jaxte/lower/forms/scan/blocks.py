"""Cumulative reductions in blocks: every block of four positions goes on from what those before it come to.

What the blocks come to is a quarter as many values, reduced in the same way, so a function calls itself; see
``lower.printing.prefix_function``. All elements are read twice and written once, by loops that XLA fuses, with temporaries of a third of
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lower.arrays.combiners import identity_of
from jaxte.lower.arrays.data import Call
from jaxte.lower.arrays.leaves import Name
from jaxte.lower.arrays.loops import Tuple
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.vocabulary import PrefixFunction
from jaxte.lower.forms.scan.recognise import Scan, ScanSpec
from jaxte.lower.forms.scan.write import carried_values, step_node


def has_blocks(spec: ScanSpec) -> bool:
    """Whether the steps hand on one value, the one that is asked for."""
    return all(len(carried_values(spec, scan)) == 1 for scan in spec.scans)


def prefix_function(
    spec: ScanSpec, scan: Scan, values: Sequence[Node], scope: str, name: str
) -> PrefixFunction:
    """The function ``name`` of ``x``, an array or one for each value of the reducer."""
    arity = spec.reducer.arity
    blocks = [(v.shape, v.kind) for v in values]  # an element of a block is as wide as the blocks are many
    part = Name("part", *blocks[0]) if arity == 1 else Name("part")
    step = step_node(spec, scan, Name("total", *blocks[spec.position]), part, blocks)
    identities = tuple(identity_of(spec.reducer, n) for n in range(arity))
    ndim = len(values[0].shape)
    return PrefixFunction(
        scope, name, spec.reducer, spec.position, ndim, scan.axis, scan.reverse, step, identities
    )


def in_blocks(spec: ScanSpec, values: Sequence[Node], name: str) -> Node:
    """The call of the function of :func:`prefix_function`."""
    own = values[spec.position]
    return Call(name, (values[0] if len(values) == 1 else Tuple(tuple(values)),), own.shape, own.kind)
