"""Nodes that are sums of products: einsum, convolutions, Fourier transforms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxte.lang import dtypes
from jaxte.lang.dtypes import Kind
from jaxte.lang.expr import ONE, Expr
from jaxte.lower.arrays.node import ArrayError, Node, Shape, windows
from jaxte.sets.intervals import plus, same


@dataclass(frozen=True, eq=False)
class Einsum(Node):
    """A sum of products; ``spec`` is that of ``jnp.einsum``, ``exact`` asks for products in full precision."""

    spec: str
    factors: tuple[Node, ...]
    exact: bool = False

    @cached_property
    def shape(self) -> Shape:
        inputs, _, out = self.spec.partition("->")
        found: dict[str, Expr] = {}
        for letters, factor in zip(inputs.split(","), self.factors, strict=True):
            for letter, extent in zip(letters, factor.shape, strict=True):
                if found.setdefault(letter, extent) is not extent and not same(found[letter], extent):
                    raise ArrayError(f"{self.spec}: {letter} is {found[letter]!r} and {extent!r}")
        return tuple(found[letter] for letter in out)

    @property
    def kind(self) -> Kind:
        return dtypes.promote(f.kind for f in self.factors)


@dataclass(frozen=True, eq=False)
class Tensordot(Node):
    """The product over the last dimension of ``lhs`` and the first one of ``rhs``."""

    lhs: Node
    rhs: Node

    @property
    def shape(self) -> Shape:
        return (*self.lhs.shape[:-1], *self.rhs.shape[1:])

    @property
    def kind(self) -> Kind:
        return dtypes.promote((self.lhs.kind, self.rhs.kind))


@dataclass(frozen=True, eq=False)
class Convolution(Node):
    """``lax.conv_general_dilated``; strides, padding and dilations are in the order of the kernel's spatial dimensions."""

    lhs: Node
    rhs: Node
    strides: tuple[int, ...]
    padding: tuple[tuple[Expr, Expr], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    dimensions: tuple[str, str, str]
    groups: Expr = ONE

    @cached_property
    def shape(self) -> Shape:
        lhs, rhs, out = self.dimensions
        found = {"N": self.lhs.shape[lhs.index("N")], "C": self.rhs.shape[rhs.index("O")]}
        for n, letter in enumerate(c for c in rhs if c not in "OI"):
            x, k = self.lhs.shape[lhs.index(letter)], self.rhs.shape[rhs.index(letter)]
            own = x, self.lhs_dilation[n], self.padding[n], k, self.rhs_dilation[n]
            found[letter] = windows(*own, self.strides[n])
        return tuple(found[letter] for letter in out)

    @property
    def kind(self) -> Kind:
        return self.lhs.kind


@dataclass(frozen=True, eq=False)
class Fourier(Node):
    """A discrete Fourier transform: ``function`` is "fft" or, of real numbers, "rfft", or one of their inverses, of ``points`` in ``axes``."""

    function: str
    array: Node
    points: tuple[int, ...]
    axes: tuple[int, ...]

    @cached_property
    def shape(self) -> Shape:
        found = list(self.array.shape)
        for axis, count in zip(self.axes, self.points, strict=True):
            found[axis] = plus(count)
        if self.function == "rfft":
            found[self.axes[-1]] = plus(self.points[-1] // 2 + 1)
        return tuple(found)

    @property
    def kind(self) -> Kind:
        own = self.array.dtype
        if self.function == "irfft":
            return dtypes.real_dtype(own), False
        return {"float32": "complex64", "float64": "complex128"}.get(own, own), False
