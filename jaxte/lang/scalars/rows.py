"""What a row of ``jaxte.lang.scalars.table`` is: the written forms, the meaning and the derivative of an operation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxte.lang import operators
from jaxte.lang.expr import Expr
from jaxte.lang.operators import Op


def _ops(result: str, arity: int, names: str) -> dict[str, Op]:
    return {name: Op(name, result, arity) for name in names.split()}


OPS: dict[str, Op] = {
    **{op.name: op for op in vars(operators).values() if isinstance(op, Op)},
    **_ops("inexact", 1, "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt reciprocal"),
    **_ops("inexact", 1, "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"),
    **_ops("inexact", 1, "erf erfc erfinv lgamma digamma sigmoid log_sigmoid softplus gelu silu relu6"),
    **_ops("inexact", 2, "atan2 hypot logaddexp polygamma"),
    **_ops("inexact", 1, "i0 i0e i1 i1e ndtri log_ndtr expi exp1"),
    **_ops("inexact", 2, "gammainc gammaincc igamma_grad_a"),
    **_ops("inexact", 3, "betainc"),
    **_ops("promote", 1, "relu square sign floor ceil trunc round conj stop_gradient"),
    **_ops("bool", 1, "isnan isinf isfinite"),
    **_ops("real", 1, "real imag"),
    # the operation of a cast has its dtype as the result; one row stands for all of them
    **_ops("promote", 1, "cast"),
}
"""The operations by name: those of ``jaxte.lang.operators``, and the functions."""

Partial = Callable[..., Expr | None]
Vjp = Callable[..., tuple[Expr | None, ...]]

# How strongly written forms bind, in Python's order; a call binds more than every operator.
ANYTHING, OR, AND, COMPARE, BITOR, BITXOR, BITAND, SHIFT, SUM, PRODUCT, SIGN, POWER, CALL = (0, *range(4, 16))


@dataclass(frozen=True, slots=True)
class Form:
    """A written form: a ``str.format`` template over the operands and how it binds.

    ``precedence`` is how strongly the result binds (``CALL``: never needs parentheses); ``slots`` has, for each
    operand, the least precedence that needs no parentheses there (empty: none needs any).
    """

    text: str
    precedence: int = CALL
    slots: tuple[int, ...] = ()

    def write(
        self, *operands: tuple[str, int], brackets: tuple[str, str] = ("(", ")"), dtype: str = ""
    ) -> tuple[str, int]:
        """The text over ``operands``, each given with its precedence, and the precedence of the whole.

        ``dtype`` is the text for the dtype of a cast.

        >>> Form("{0} * {1}", PRODUCT, (PRODUCT, SIGN)).write(("a + b", SUM), ("c", CALL))
        ('(a + b) * c', 12)
        """
        slots = self.slots or (ANYTHING,) * len(operands)
        texts = [
            text if strength >= slot else brackets[0] + text + brackets[1]
            for (text, strength), slot in zip(operands, slots, strict=True)
        ]
        return self.text.format(*texts, dtype=dtype), self.precedence


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar operation.

    Attributes:
        op: its name, arity and the rule for the dtype of its result.
        code: its form in emitted code. Operands of "inexact" operations are to be given in the result's dtype.
        math: its form in LaTeX.
        partials: for each operand ``partial(y, *args)``, the derivative of the value ``y`` with respect to that
            operand, for real and for holomorphic functions. A partial that is None, or returns None, is zero;
            ``partials`` is None where all are.
        vjp: ``vjp(g, y, *args)``, the adjoints of the operands for the adjoint ``g`` of ``y``. It is given where
            the product ``g * partial`` would be wrong (functions that are only real-linear) or would let a
            branch that is not taken contribute ``0 * inf`` (choices).
        numpy: the same function on NumPy arrays, for the interpreter.
        doc: what it is, and its derivative.
        finite: what is finite wherever the operands are, overflow aside: "all" (the value and its derivatives), the
            "value" alone, or "nothing".
        cheap: whether it takes about an instruction, so that it is computed again rather than kept.
        exact: whether its result is never rounded, so that it is the same in every loop that computes it.
    """

    op: Op
    code: Form
    math: Form
    partials: tuple[Partial | None, ...] | None
    vjp: Vjp | None
    numpy: Callable[..., Any]
    doc: str
    finite: str = "value"
    cheap: bool = False
    exact: bool = False

    @property
    def jnp(self) -> str:
        return self.code.text

    @property
    def latex(self) -> str:
        return self.math.text

    @property
    def precedence(self) -> int:
        return self.code.precedence


def function(
    name: str,
    doc: str,
    *partials: Partial | None,
    jnp: str | Form = "",
    latex: str | Form = "",
    numpy: Callable[..., Any] | None = None,
    vjp: Vjp | None = None,
) -> Function:
    """A row for the function ``name``.

    ``jnp`` is the path of the JAX function, or a form; the NumPy (or SciPy) function of the same name is
    taken for the interpreter unless ``numpy`` gives another. ``latex`` is the function's name or a template.
    """
    op = OPS[name]
    operands = ", ".join(f"{{{i}}}" for i in range(op.arity))
    if not isinstance(latex, Form):
        latex = latex or rf"\operatorname{{{{{op.name.replace('_', ' ')}}}}}"
        latex = Form(latex if "{0}" in latex else rf"{latex}\left({operands}\right)")
    if not isinstance(jnp, Form):
        path = jnp or f"jnp.{name}"
        jnp, numpy = Form(f"{path}({operands})"), numpy or _same_in_numpy(path)
    assert numpy is not None
    return Function(op, jnp, latex, partials or None, vjp, numpy, doc)


def _same_in_numpy(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    if module == "jax.scipy.special":
        # imported when it is first called, since the import takes long
        return lambda *args: getattr(importlib.import_module("scipy.special"), name)(*args)
    return getattr(np, name)


def infix(
    op: Op,
    sign: str,
    strength: int,
    doc: str,
    *partials: Partial | None,
    latex: str | Form = "",
    numpy: Callable[..., Any] | None = None,
    vjp: Vjp | None = None,
) -> Function:
    """A row for a binary operator that groups to the left (``**``: right); ``latex`` is its sign or a form."""
    slots = (strength + (strength == COMPARE), strength + 1)  # a < b < c is a chain, not (a < b) < c
    if strength == POWER:  # groups to the right, and a sign may follow it
        slots = (POWER + 1, SIGN)
    if not isinstance(latex, Form):
        latex = Form(f"{{0}} {latex or sign} {{1}}", strength, slots)
    code = Form(f"{{0}} {sign} {{1}}", strength, slots)
    return Function(op, code, latex, partials or None, vjp, numpy or getattr(np, op.name), doc)


def prefix(op: Op, sign: str, latex: str, doc: str, *partials: Partial) -> Function:
    """A row for a sign before its operand."""
    code, maths = Form(f"{sign}{{0}}", SIGN, (SIGN,)), Form(f"{latex}{{0}}", SIGN, (SIGN,))
    return Function(op, code, maths, partials or None, None, getattr(np, op.name), doc)
