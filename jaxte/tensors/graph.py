"""The graph that tensors form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jaxte.tensors.tensor import Tensor


def topological_order(
    tensors: Iterable[Tensor], sources: Callable[[Tensor], Sequence[Tensor]] | None = None
) -> list[Tensor]:
    """Every tensor that ``tensors`` need, each after its ``sources``, by default its inputs, in a fixed order."""
    done: dict[Tensor, None] = {}
    stack: list[tuple[Tensor, bool]] = [(t, False) for t in reversed(list(tensors))]
    entered: set[Tensor] = set()
    while stack:
        tensor, ready = stack.pop()
        if ready:
            done[tensor] = None
        elif tensor not in entered:
            entered.add(tensor)
            stack.append((tensor, True))
            own = tensor.inputs if sources is None else sources(tensor)
            stack.extend((t, False) for t in reversed(own))
    return list(done)
