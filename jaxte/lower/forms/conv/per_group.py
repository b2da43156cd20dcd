"""A grouped convolution as one convolution for each group, side by side.

The groups of a convolution have nothing in common: group ``g`` maps the input features ``[g * I, (g + 1) * I)`` to the output
features ``[g * O, (g + 1) * O)``. XLA's own grouped convolution is a plain loop on the CPU, up to a hundred times slower than the
dense one, most of all where the kernel is as large as an image, as in the gradient of the weights.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from jaxte.lang.expr import ONE, Const
from jaxte.lower.code.spec import Refusal, Write, reshaped, write_extent
from jaxte.lower.forms.conv.spec import ConvolutionSpec, call_source, finished_source

MOST_GROUPS = 64


def groups_of(spec: ConvolutionSpec) -> int | Refusal:
    """How many convolutions ``spec`` takes apart into."""
    if spec.groups is ONE:
        return Refusal("there is one group only")
    if not isinstance(spec.groups, Const):
        return Refusal("the number of groups is not known")
    count = int(spec.groups)
    return count if count <= MOST_GROUPS else Refusal(f"{count} groups are more than {MOST_GROUPS}")


def groups_source(spec: ConvolutionSpec, operands: Sequence[str], write: Write = write_extent) -> str:
    """The Python expression of ``spec`` on the texts of ``spec.operands``."""
    return finished_source(spec, per_group_source(spec, operands, write), operands, write)


def per_group_source(spec: ConvolutionSpec, operands: Sequence[str], write: Write = write_extent) -> str:
    """The convolutions alone, side by side."""
    count = int(spec.groups)
    lhs, rhs, out = spec.dimension_numbers
    texts = [
        reshaped(text, shape, write)
        for text, shape in zip(operands[:2], (spec.lhs_shape, spec.rhs_shape), strict=True)
    ]
    taken = {word for text in texts for word in re.findall(r"\w+", text)}
    names = list(itertools.islice((n for n in "abcdefgh" if n not in taken), 2))
    dense = replace(spec, groups=ONE, lhs_shape=None, rhs_shape=None)
    parts = [
        f"jnp.split({text}, {count}{_axis(dims.index(letter))})"
        for text, dims, letter in zip(texts, (lhs, rhs), "CO", strict=True)
    ]
    loop = f"for {', '.join(names)} in zip({', '.join(parts)})"
    return f"jnp.concatenate([{call_source(dense, names, write)} {loop}]{_axis(out.index('C'))})"


def _axis(axis: int) -> str:
    return f", axis={axis}" if axis else ""
