"""The graph that tensors form."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from jaxte.tensors.tensor import Tensor

Node = TypeVar("Node", bound=Hashable)


def topological_order(
    tensors: Iterable[Tensor], sources: Callable[[Tensor], Sequence[Tensor]] | None = None
) -> list[Tensor]:
    """Every tensor that ``tensors`` need, each after its ``sources``, by default its inputs, in a fixed order."""
    return ordered(tensors, (lambda tensor: tensor.inputs) if sources is None else sources)


def ordered(nodes: Iterable[Node], sources: Callable[[Node], Sequence[Node]]) -> list[Node]:
    """``nodes`` and all that they need of a graph without circles, each after its ``sources``, in a fixed order."""
    done: dict[Node, None] = {}
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(list(nodes))]
    entered: set[Node] = set()
    while stack:
        node, ready = stack.pop()
        if ready:
            done[node] = None
        elif node not in entered:
            entered.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in reversed(sources(node)))
    return list(done)
