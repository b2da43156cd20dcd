"""The graph of tensors as a diagram: SVG by Graphviz where it is installed, and Mermaid's text."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from typing import Any, Self

from jaxte.tensors.graph import topological_order
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.tensor import Compute, Tensor

# what stands around a label in Mermaid's text, and the shape of Graphviz: tensors that are computed, inputs, functions of arrays
_KINDS = {"computed": ("[", "]", "box"), "input": ("([", "])", "oval"), "array": ("[[", "]]", "component")}
# boxes are filled and lines gray, so that both are seen on light and on dark pages
_STYLE = 'bgcolor="transparent"; node [style=filled, fillcolor="#e8eaf6", color="#888888", fontname="sans-serif"]; edge [color="#888888"];'


class Diagram(str):
    """The text of a diagram in Mermaid, which GitHub, this site and JupyterLab 4.1 and later draw.

    Notebooks show :meth:`svg` where Graphviz's ``dot`` is installed, and the text elsewhere.
    """

    def __new__(cls, mermaid: str, dot: str) -> Self:
        return super().__new__(cls, mermaid)

    def __init__(self, mermaid: str, dot: str) -> None:
        self.dot = dot

    def svg(self) -> str | None:
        """The diagram as SVG; None where ``dot`` is not installed."""
        program = shutil.which("dot")
        if program is None:
            return None
        drawn = subprocess.run([program, "-Tsvg"], input=self.dot, capture_output=True, text=True, check=True)
        return drawn.stdout[drawn.stdout.index("<svg") :]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        drawn = self.svg()
        picture = {"text/vnd.mermaid": str(self)} if drawn is None else {"image/svg+xml": drawn}
        return picture | {"text/plain": str(self)}


def diagram(tensors: Sequence[Tensor]) -> Diagram:
    """What ``tensors`` are computed from."""
    shown = topological_order(tensors)
    names = {tensor: f"t{number}" for number, tensor in enumerate(shown)}
    mermaid, dot = ["graph TD"], ["digraph {", f"    {_STYLE}"]
    for tensor, name in names.items():
        left, right, shape = _KINDS[_kind(tensor)]
        label = f"{tensor.name} {shape_text(tensor.shape)}"
        mermaid.append(f'    {name}{left}"{_harmless(label)}"{right}')
        dot.append(f"    {name} [label={_quoted(label)}, shape={shape}];")
    for source, target in ((names[s], names[t]) for t in shown for s in t.inputs):
        mermaid.append(f"    {source} --> {target}")
        dot.append(f"    {source} -> {target};")
    return Diagram("\n".join(mermaid), "\n".join([*dot, "}"]))


def _kind(tensor: Tensor) -> str:
    return "computed" if isinstance(tensor, Compute) else "array" if tensor.inputs else "input"


def _harmless(label: str) -> str:
    return "".join(c if c.isalnum() or c in "_ '(),*+-" else f"#{ord(c)};" for c in label)


def _quoted(label: str) -> str:
    return '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'
