"""The notation of formulas as plain text and as HTML."""

from __future__ import annotations

import html as _html
from collections.abc import Iterable, Sequence

from jaxte.lang.expr import Axis, Call, Const, Expr, Reduce, Scalar
from jaxte.lang.scalars.rows import AND, CALL, COMPARE, OR, PRODUCT, SIGN, Form
from jaxte.lang.scalars.table import TABLE
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.linear import Linear
from jaxte.show.notation import (
    CHOICE,
    LONGEST,
    LONGEST_READ,
    SUMMATION,
    Bound,
    Notation,
    Piece,
    Range,
    Writer,
    as_word,
)

_WORDS = {
    "logical_and": Form("{0} and {1}", AND, (AND, AND)),
    "logical_or": Form("{0} or {1}", OR, (OR, OR)),
    "logical_not": Form("not {0}", AND, (COMPARE,)),
    "select": Form("{1} if {0} else {2}", CHOICE, (OR, OR, CHOICE)),
}


class Plain(Notation):
    """One line of text; ``ascii`` keeps the names in it to ASCII, without quotes and backslashes."""

    longest = LONGEST_READ

    def __init__(self, ascii: bool = False) -> None:
        self._ascii = ascii
        if ascii:
            self.longest = LONGEST
        self.ellipsis = "..." if ascii else "…"

    def name(self, label: str) -> str:
        return "".join(self._character(c) for c in label) or "_"

    def axis(self, label: str) -> str:
        return as_word(label)

    def _character(self, character: str) -> str:
        if not character.isprintable():
            return " "
        return "_" if self._ascii and (not character.isascii() or character in "\"\\`'") else character

    def form(self, name: str) -> Form:
        """How the operation ``name`` is written."""
        if name in _WORDS:
            return _WORDS[name]
        code = TABLE[name].code
        if code.slots:
            return code
        operands = ", ".join(f"{{{n}}}" for n in range(TABLE[name].op.arity))
        return Form(f"{name}({operands})")

    def number(self, value: Scalar) -> Piece:
        written = number_text(value)
        return written, SIGN if written.startswith("-") else CALL

    def element(self, tensor: str, indices: Sequence[str]) -> str:
        return f"{tensor}[{', '.join(indices)}]"

    def operation(self, node: Call, args: Sequence[Piece]) -> Piece:
        if node.op.name == "cast":
            return f"{node.dtype}({args[0][0]})", CALL
        return self.form(node.op.name).write(*args)

    def reduction(
        self,
        node: Reduce,
        exprs: Sequence[Piece],
        ranges: Sequence[Range],
        guards: Sequence[Expr],
        of: Writer,
    ) -> Piece:
        label, shown, part = reduction_parts(node, exprs)
        axes = ", ".join(self.range(r, of) for r in ranges)
        condition = " and ".join(_at_least(of(g), COMPARE) for g in guards)
        where = f" where {condition}" if condition else ""
        return f"{self.name(label)} over {axes}{where} of {shown}{part}", SUMMATION

    def range(self, range: Range, of: Writer) -> str:
        """An axis between the bounds that depend on other axes."""
        lower = _bound_text(range.lower, of, is_lower=True)
        upper = _bound_text(range.upper, of, is_lower=False)
        return self.markup(f"{lower}{of.axis(range.axis)}{upper}")

    def markup(self, text: str) -> str:
        """``text`` with its signs as the notation has them."""
        return text


class Html(Plain):
    """The plain form as HTML."""

    longest = LONGEST

    def name(self, label: str) -> str:
        return f"<i>{_html.escape(super().name(label))}</i>"

    def form(self, name: str) -> Form:
        form = super().form(name)
        signs = {"{0} * {1}": "{0} &sdot; {1}", "{0} - {1}": "{0} &minus; {1}", "{0} != {1}": "{0} &ne; {1}"}
        return Form(signs.get(form.text) or self.markup(_html.escape(form.text)), form.precedence, form.slots)

    def markup(self, text: str) -> str:
        for sign, entity in (
            (" &lt;= ", " &le; "),
            (" &gt;= ", " &ge; "),
            (" <= ", " &le; "),
            (" < ", " &lt; "),
        ):
            text = text.replace(sign, entity)
        return text


def number_text(value: Scalar) -> str:
    """A number; floats that are integers without their point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    return str(value)


def reduction_parts(node: Reduce, exprs: Sequence[Piece]) -> tuple[str, str, str]:
    """The word for a reduction, what it is of, and which of its results is meant."""
    if node.reducer.name in ("argmax", "argmin"):
        return (node.reducer.name, node.reducer.name[3:])[node.position], _at_least(exprs[1], PRODUCT), ""
    if node.reducer.arity == 1:
        return node.reducer.label, _at_least(exprs[0], PRODUCT), ""
    return node.reducer.label, f"({', '.join(e[0] for e in exprs)})", f"[{node.position}]"


def _at_least(piece: Piece, strength: int) -> str:
    return piece[0] if piece[1] >= strength else f"({piece[0]})"


def _bound_text(bound: Bound | None, of: Writer, is_lower: bool) -> str:
    """``value <= `` or `` <= value``; with ``<`` where that spares a ``+ 1`` or ``- 1``."""
    if bound is None:
        return ""
    form = linear(bound.value)
    strict = form.constant == (1 if is_lower else -1) and not form.is_constant
    sign = "<" if strict else "<="
    value = of.text(from_linear(Linear(form.terms)) if strict else bound.value)
    return f"{value} {sign} " if is_lower else f" {sign} {value}"


def axis_ranges(axes: Iterable[Axis], of: Writer) -> str:
    """The constant ranges of axes, as ``i < 4, 2 <= k < 5``."""
    written = []
    for axis in axes:
        lower = "" if axis.lo is Const(0) else f"{of.text(axis.lo)} <= "
        written.append(f"{lower}{of.axis(axis)} < {of.text(axis.hi)}")
    return ", ".join(written)
