"""Formulas of tensors, as plain text, HTML and LaTeX.

Y[b, t, o] = sum over k, c of X[b, t + k, c] * W[k, c, o]  (b < 8, t < 32, o < 32, k < 3, c < 16)

Emitted code with its words in colours, as notebooks show it, with a button that copies it.
"""

from __future__ import annotations

import html as _html
import io
import keyword
import token
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxte.lang.checks import described
from jaxte.lang.errors import ArgumentError
from jaxte.lang.expr import Axis, Expr
from jaxte.show.notation import Notation, Writer, as_word, distinct_names, reduction_axes, writer_for
from jaxte.show.plain import Html, Plain, axis_ranges
from jaxte.show.tex import Latex, broken
from jaxte.tensors.bodies.open_uses import OpenAxis
from jaxte.tensors.recurrences.inner import copied_by
from jaxte.tensors.recurrences.node import Recurrent, State, definition_of
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Extern, Tensor

ROWS = 40  # definitions shown at most


def _equation(tensor: Tensor, notation: Plain, names: Mapping[Tensor, str] | None, ranges: bool) -> str:
    own = definition_of(tensor)
    if own is None:
        of = Writer(notation, names)
        inputs = ", ".join(of.tensor(t) for t in tensor.inputs)
        call = f" = extern({inputs})" if isinstance(tensor, Extern) else ""
        shape = (
            _html.escape(shape_text(tensor.shape)) if isinstance(notation, Html) else shape_text(tensor.shape)
        )
        return f"{of.tensor(tensor)}: {tensor.dtype}{shape}{call}"
    of = writer_for(own, notation, names)
    left = notation.element(of.tensor(tensor), [of.axis(a) for a in own.axes])
    equation = f"{left} = {of.text(own.body)}"
    listed = axis_ranges((*own.axes, *reduction_axes(own.body)), of) if ranges else ""
    return f"{equation}  ({notation.markup(listed)})" if listed else equation


def formula(
    tensor: Tensor, names: Mapping[Tensor, str] | None = None, ranges: bool = True, ascii: bool = False
) -> str:
    """The definition of ``tensor`` on one line.

    Args:
        names: what tensors are called instead of by their labels; of several with one label, all but the first are numbered.
        ranges: whether the ranges of the axes stand at the end.
        ascii: keep to ASCII, without quotes and backslashes, so that it can stand in a docstring.

    Example:
        >>> k = te.reduce_axis((0, 8), "k")
        >>> te.formula(te.compute((4,), lambda i: te.sum(A[i, k] * x[k], axis=k), "Y"))
        'Y[i] = sum over k of A[i, k] * x[k]  (i < 4, k < 8)'
    """
    for key, name in (names or {}).items():
        if not isinstance(key, Tensor) or not isinstance(name, str):
            raise ArgumentError(
                f'the names= of te.formula are {{Tensor: "name"}}, and {key!r}: {name!r} is among them'
            )
    given = _defined(
        tensor if isinstance(tensor, Sequence) and not isinstance(tensor, (str, Tensor)) else [tensor]
    )
    if len(given) != 1:
        raise ArgumentError(
            f"te.formula writes one definition, and {len(given)} Tensors are given; te.definitions writes several"
        )
    (tensor,) = given
    notation = Plain(ascii)
    own = definition_of(tensor)
    inputs = tensor.inputs if own is None else own.inputs
    read = [t for t in inputs if t not in (names or {}) and not isinstance(t, State)]
    listed = {
        **distinct_names([*read, *({} if tensor in (names or {}) else [tensor])], as_word),
        **(names or {}),
    }
    return _equation(tensor, notation, _written(listed, notation), ranges)


def definitions(tensors: Tensor | Iterable[Tensor], ascii: bool = False) -> str:
    """The formulas of everything that ``tensors`` need, one a line, inputs first."""
    shown, left = _listed(tensors, needed=True)
    notation = Plain(ascii)
    inputs = _undefined(shown)
    names = _written(distinct_names(dict.fromkeys([*inputs, *shown]), as_word), notation)
    lines = [_equation(t, notation, names, ranges=True) for t in shown]
    return "\n".join([*lines, f"{notation.ellipsis} {left} more"] if left else lines)


def html(tensors: Tensor | Iterable[Tensor]) -> str:
    """The formulas of ``tensors`` as an HTML table: name, type and definition."""
    shown, left = _listed(tensors, needed=False)
    notation = Html()
    names = _written(distinct_names(shown), notation)
    rows = "".join(
        f'<tr><td style="text-align:left"><code>{_equation(t, notation, names, ranges=True)}</code></td>'
        f"<td>{t.dtype}{_html.escape(shape_text(t.shape))}</td></tr>"
        for t in shown
    )
    more = f"<tr><td>… {left} more</td><td></td></tr>" if left else ""
    return f'<table class="jaxte">{rows}{more}</table>'


def latex(x: Tensor | Expr | Iterable[Tensor]) -> str:
    """LaTeX (for math mode) of an expression, of the definition of a tensor, or of several, aligned.

    Example:
        >>> te.latex(te.compute((4,), lambda i: te.sum(x[i, k], axis=k), "Y"))
        'Y_{i} = \\sum_{k=0}^{7} x_{i,\\,k}'
    """
    if isinstance(x, Expr):
        return Writer(Latex()).text(x)
    shown, left = _listed(x, needed=False)
    notation = Latex()
    names = _written(distinct_names(shown), notation)
    sides = [_latex_sides(t, notation, names) for t in shown]
    if isinstance(x, Tensor):
        return " = ".join(sides[0])
    lines = [" &= ".join(s) for s in sides] + ([r"\vdots"] if left else [])
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def _latex_sides(tensor: Tensor, notation: Latex, names: Mapping[Tensor, str]) -> list[str]:
    """The sides of the defining equation; inputs have only one."""
    own = definition_of(tensor)
    if own is None:
        of = Writer(notation, names)
        extents = r" \times ".join(of.text(e) if isinstance(e, Expr) else str(e) for e in tensor.shape)
        return [f"{of.tensor(tensor)} \\in \\mathrm{{{tensor.dtype}}}^{{{extents or '1'}}}"]
    of = writer_for(own, notation, names)
    return [notation.element(of.tensor(tensor), [of.axis(a) for a in own.axes]), of.text(own.body)]


def _listed(tensors: Tensor | Iterable[Tensor], needed: bool) -> tuple[list[Tensor], int]:
    """The tensors to show (with the computed ones that they need), and how many are left out."""
    given = _defined(tensors)
    if needed:
        computed = [t for tensor in topological_order(given) if tensor.inputs for t in _together(tensor)]
        given = list(dict.fromkeys(computed)) or given
    return given[-ROWS:], max(len(given) - ROWS, 0)


def _defined(tensors: Any) -> list[Tensor]:
    """``tensors`` as a list."""
    listed = (
        list(tensors)
        if isinstance(tensors, Iterable) and not isinstance(tensors, (Tensor, Expr))
        else [tensors]
    )
    for tensor in listed:
        if not isinstance(tensor, Tensor):
            raise ArgumentError(
                f"{described(tensor)} has no definition to write; give Tensors, which a function returns when it is called with te.placeholder"
                + ("; te.define makes a function of a text" if isinstance(tensor, str) else "")
            )
    return listed


def _undefined(shown: Iterable[Tensor]) -> list[Tensor]:
    """What ``shown`` are computed from that has no definition; states are those of tensors that have one."""
    return [t for t in topological_order(shown) if definition_of(t) is None and not isinstance(t, State)]


def _together(tensor: Tensor) -> list[Tensor]:
    """``tensor``, behind what it is computed of together with itself if it is one of a recurrence."""
    if not isinstance(tensor, Recurrent):
        return [tensor]
    tensors: dict[Tensor, Tensor] = dict(zip(tensor.group.definitions, tensor.group.tensors, strict=True))
    copies = {d for d in tensor.group.definitions if copied_by(d) is not None and tensors[d] is not tensor}
    within = [own for t in tensor.group.inside if t not in copies for own in _together(t)]
    return list(dict.fromkeys(tensors.get(own, own) for own in within))


def _written(names: Mapping[Tensor, str] | None, notation: Notation) -> dict[Tensor, str]:
    found = {tensor: notation.name(label) for tensor, label in (names or {}).items()}
    for tensor in [t for t in found if isinstance(t, Recurrent)]:
        found[tensor.group.states[tensor.position]] = found[tensor]
    return found


def displayed(tensors: Tensor | Iterable[Tensor]) -> str:
    """What a notebook shows: all definitions that ``tensors`` need, aligned, wide ones over several lines.

    A definition is not repeated for each tensor that needs it, and inputs stand in front.
    """
    shown, left = _listed(tensors, needed=True)
    notation = Latex()
    inputs = _undefined(shown)
    names = _written(distinct_names(dict.fromkeys([*inputs, *shown])), notation)
    lines = []
    for tensor in shown:
        left_side, *right = _latex_sides(tensor, notation, names)
        first, *rest = broken(right[0]) if right else [""]
        lines.append(f"{left_side} &= {first}" if right else f"& {left_side}")
        lines += [rf"& \qquad {line}" for line in rest]
    lines += [r"& \vdots"] if left else []
    return r"$\displaystyle \begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}$"


def _displayed_expression(expr: Expr) -> str:
    """An axis with its range, any other expression as it is."""
    of = Writer(Latex())
    if isinstance(expr, OpenAxis):
        return rf"$0 \leq {of.axis(expr)}$"
    if isinstance(expr, Axis):
        return rf"${of.text(expr.lo)} \leq {of.axis(expr)} \lt {of.text(expr.hi)}$"
    return rf"$\displaystyle {of.text(expr)}$"


# Notebooks ask objects for these; tensors and expressions are defined below this layer, so they are attached here.
# There is no HTML, which notebooks would show in place of LaTeX.
setattr(Tensor, "_repr_latex_", displayed)  # noqa: B010
setattr(Expr, "_repr_latex_", _displayed_expression)  # noqa: B010


# The colours of the page that the code stands on, a site of mkdocs or JupyterLab, of which each has a light and a dark scheme; elsewhere
# colours of middle lightness, which read on white and on black.
_COLOURS = {"keyword": "#8250df", "string": "#2f8f4e", "number": "#b35900", "comment": "#7a828e"}
_STYLES = {
    kind: f"color:var(--md-code-hl-{kind}-color, var(--jp-mirror-editor-{kind}-color, {colour}))"
    for kind, colour in _COLOURS.items()
}
_COPY = "navigator.clipboard.writeText(this.parentNode.querySelector('code').innerText)"


class Code(str):
    """The text of a module; a notebook shows it highlighted."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        button = f'<button style="position:absolute; top:0; right:0" onclick="{_COPY}">copy</button>'
        return f'<div class="jaxte" style="position:relative">{button}<pre style="overflow-x:auto"><code>{highlighted(self)}</code></pre></div>'


def highlighted(text: str) -> str:
    """``text``, a Python module, as HTML."""
    lines = text.splitlines(keepends=True)
    pieces: list[str] = []
    at = (1, 0)
    for found in tokenize.generate_tokens(io.StringIO(text).readline):
        if found.type in (token.INDENT, token.DEDENT, token.ENDMARKER):
            continue
        pieces.append(_html.escape(_between(lines, at, found.start)))
        kind = _kind(found)
        shown = _html.escape(found.string)
        pieces.append(f'<span style="{_STYLES[kind]}">{shown}</span>' if kind else shown)
        at = found.end
    return "".join(pieces)


def _kind(found: tokenize.TokenInfo) -> str | None:
    if found.type == token.NAME:
        return "keyword" if keyword.iskeyword(found.string) else None
    return {token.STRING: "string", token.NUMBER: "number", token.COMMENT: "comment"}.get(found.type)


def _between(lines: list[str], start: tuple[int, int], stop: tuple[int, int]) -> str:
    """The characters between two places, which are spaces."""
    if start[0] > len(lines):
        return ""
    if start[0] == stop[0]:
        return lines[start[0] - 1][start[1] : stop[1]]
    first = lines[start[0] - 1][start[1] :]
    return first + "".join(lines[start[0] : stop[0] - 1]) + lines[stop[0] - 1][: stop[1]]
