"""What nodes have in common: shapes and dtypes that are those of an operand, or that are stated.

A class here names the fields that it reads; a node has them in the order that reads best, as fields of its own.
"""

from __future__ import annotations

from jaxte.lang.dtypes import Kind
from jaxte.lower.arrays.node import ArrayError, Node, Shape


class OfArray(Node):
    """A node of the dtype of its ``array``."""

    array: Node

    @property
    def kind(self) -> Kind:
        return self.array.kind


class LikeArray(OfArray):
    """A node of the shape and the dtype of its ``array``."""

    @property
    def shape(self) -> Shape:
        return self.array.shape


class LikeParts(Node):
    """A node of the shape and the dtype of the first of its ``parts``."""

    parts: tuple[Node, ...]

    @property
    def shape(self) -> Shape:
        return self.parts[0].shape

    @property
    def kind(self) -> Kind:
        return self.parts[0].kind


class OfExtents(Node):
    """A node whose shape is stated: ``extents``, None where it is a tuple of arrays, or only known to who calls it."""

    extents: Shape | None

    @property
    def is_tuple(self) -> bool:
        return self.extents is None

    @property
    def shape(self) -> Shape:
        if self.extents is None:
            raise ArrayError(f"{self} is no single array")
        return self.extents


class Stated(OfExtents):
    """A node whose shape and dtype are stated: it is the result of a function, or one of several arrays."""

    own_kind: Kind

    @property
    def kind(self) -> Kind:
        if not self.own_kind[0]:
            raise ArrayError(f"{self} has no dtype")
        return self.own_kind


class Converted(Node):
    """A node whose dtype is stated: ``own_dtype``, whatever it meets."""

    own_dtype: str

    @property
    def kind(self) -> Kind:
        return self.own_dtype, False


class Scalar(Node):
    """A node without dimensions."""

    @property
    def shape(self) -> Shape:
        return ()


class Several(Node):
    """A tuple of arrays, which has no shape and no dtype."""

    @property
    def is_tuple(self) -> bool:
        return True


class Together(Node):
    """``arrays`` that go through one operation together: one array, or a tuple of as many."""

    arrays: tuple[Node, ...]

    @property
    def is_tuple(self) -> bool:
        return len(self.arrays) > 1

    @property
    def item_shape(self) -> Shape:
        """The shape of each result."""
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        if self.is_tuple:
            raise ArrayError("several arrays are a tuple")
        return self.item_shape

    @property
    def kind(self) -> Kind:
        return self.arrays[0].kind
