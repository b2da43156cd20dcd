"""The graph of tensors as a diagram: Mermaid's text, and SVG for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from jaxte.show.layered import Box, drawn
from jaxte.tensors.graph import topological_order
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.tensor import Compute, Tensor

# what stands around a label in Mermaid's text: tensors that are computed, inputs, functions of arrays
_SIDES = {"computed": ("[", "]"), "input": ("([", "])"), "array": ("[[", "]]")}


class Diagram(str):
    """The text of a diagram in Mermaid, which GitHub and this site draw; notebooks show :meth:`svg`."""

    def __new__(cls, mermaid: str, boxes: Sequence[Box]) -> Self:
        return super().__new__(cls, mermaid)

    def __init__(self, mermaid: str, boxes: Sequence[Box]) -> None:
        self._boxes = boxes

    def svg(self) -> str:
        """The diagram as SVG."""
        return drawn(self._boxes)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": str(self)}


def diagram(tensors: Sequence[Tensor]) -> Diagram:
    """What ``tensors`` are computed from."""
    shown = topological_order(tensors)
    numbers = {tensor: number for number, tensor in enumerate(shown)}
    boxes = [
        Box(f"{t.name} {shape_text(t.shape)}", _kind(t), tuple(dict.fromkeys(numbers[s] for s in t.inputs)))
        for t in shown
    ]
    lines = ["graph TD"]
    for number, box in enumerate(boxes):
        left, right = _SIDES[box.kind]
        lines.append(f'    t{number}{left}"{_harmless(box.label)}"{right}')
    lines += [f"    t{source} --> t{target}" for target, box in enumerate(boxes) for source in box.sources]
    return Diagram("\n".join(lines), boxes)


def _kind(tensor: Tensor) -> str:
    return "computed" if isinstance(tensor, Compute) else "array" if tensor.inputs else "input"


def _harmless(label: str) -> str:
    return "".join(c if c.isalnum() or c in "_ '(),*+-" else f"#{ord(c)};" for c in label)
