"""What a form would make of its operands, to be counted before it is chosen: operands are names, and so is what it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxte.lower.arrays.leaves import Name
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.spec import Array


def on_names(arrays: Sequence[Array]) -> list[Node]:
    """Names of ``arrays``."""
    return [Name(f"operand_{n}", own.shape, (own.dtype, False)) for n, own in enumerate(arrays)]


class Dry:
    """Takes the place of what names nodes in statements, and has all that was named."""

    def __init__(self) -> None:
        self.named: dict[Node, Name] = {}

    def __call__(self, node: Node, target: str = "") -> Name:
        own = Name(target or f"step_{len(self.named)}", node.shape, node.kind)
        return self.named.setdefault(node, own)

    def roots(self, result: Node) -> Iterator[Node]:
        """What was named, and the result."""
        yield from self.named
        yield result
