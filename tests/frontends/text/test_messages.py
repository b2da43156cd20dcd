"""Misspelled patterns and formulas: what the message says, and what stands over the carets."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import jaxte as te

x = te.placeholder((6,), name="x")
A = te.placeholder((4, 6), name="A")
X = te.placeholder((2, 10, 3), name="X")
W = te.placeholder((3, 3, 4), name="W")
B = te.placeholder((2, 9, 3), name="B")


def marked(message: str) -> str:
    """What the carets of a message stand under."""
    *_, line, carets = message.splitlines()
    assert set(carets.strip()) == {"^"}, message
    return line[carets.index("^") : carets.rindex("^") + 1]


FORMULAS = [
    ("Y[i] = max(A[i, 0], x[i])", "max", r"max is a reduction, .* max\[k\]\(...\); of two values it is maximum\(a, b\)"),
    ("Y[i] = rleu(x[i])", "rleu", r"did you mean relu\?"),
    ("Y[i] = xyz(x[i])", "xyz", "xyz is no function of formulas; those are exp, log"),
    ("Y[i] = smu[k](A[i, k])", "smu", r"smu is no reduction; did you mean sum\?"),
    ("Y[i] = x[i", "[", "never closed"),
    ("Y[i] = sum_k A[i, k]", "A", r"is expected; a reduction is written sum\[k\]"),
    ("Y[i] = exp(x[i] ^ 2)", "x[i] ^ 2", r"bitwise_xor takes integers, not float32; .*a power is written \*\*"),
    ("Y[i] = x[i] if i > 0 && i < 2 else 0", None, "conditions are joined by and, or, not"),
    ("Y[i] = x[i] > 0 ? x[i] : 0", None, "a choice is written a if c else b"),
    ("Y[i] = if x[i] > 0 then x[i] else 0", "if", "a choice is written a if c else b"),
    ("Y[i] = Y[i - 1] + x[i]", "Y[i - 1]", r"te\.recurrence defines a tensor that reads itself"),
    ("Y[i] = x[i] x[i]", "x", "an operator, or the end of the formula, is expected"),
    ("Y[i] = x[i] for i in range(3)", "for", "an operator, or the end of the formula, is expected"),
    ("Y[i] = x[i] if i > 2", None, "expected 'else'"),
    ("Y[i] = __import__('os')", "__import__", "__import__ is not called with a text"),
    ("Y[i] = __import__(os)", "__import__", "__import__ is no function"),
    ("Y[i] = __builtins__", "__builtins__", "no name of a formula"),
    ("Y[i] = x.__class__", "x.__class__", "this is no part of formulas, which have numbers, axes"),
    ("Y[i] = te.exp(x[i])", "te.exp", r"functions are written by their names alone: exp"),
    ("Y[i] = te.open(x[i])", "te.open", "only functions of the language are called"),
    ("Y[i] = (lambda: 3)()", "lambda: 3", "only functions of the language are called"),
    ("Y[i] = [x[i]]", "[x[i]]", "this is no part of formulas"),
    ("Y[i] = x[i:2]", "i:2", "one index for each axis, not with slices"),
    ("Y[i] = sum(x[k] for k in range(3))", "sum", r"sum is a reduction, which names its axes in brackets: sum\[k\]"),
    ("Y[i] = exp(x[k] for k in range(3))", None, r"a sum is written sum\[k\]\(X\[k\]\)"),
    ("Y[i] = A @ x", "A @ x", r"sum\[k\]\(A\[i, k\] \* B\[k, j\]\)"),
    ("Y[i] = A[i]", "A[i]", r"A has the shape \(4, 6\), and 1 index is given; give one for each axis"),
    ("Y[i] = x[i, j]", "j", r"j is no axis of this formula: put it on the left side, or reduce over it with sum\[j\]"),
    ("Y[row] = x[rwo]", "rwo", r"rwo is no axis of this formula; did you mean row\?"),
    ("Y[i, i] = x[i]", "i", "i stands twice on the left"),
    ("Y[2 * i] = x[i]", "2 * i", "the left side has axes only"),
    ("Y[i] := x[i]", ":=", "a definition is written with =; a formula is"),
    ("Y[i] == x[i]", "Y[i] == x[i]", "== compares; a formula is"),
    ("Y[i] += x[i]", "Y[i]", r"a tensor is defined once, with =; a sum is written"),
    ("Y[i] = x[i]; Z[i] = x[i]", "Z[i] = x[i]", "each formula has a line of its own"),
    ("x[i]", "x[i]", "this is no formula; a formula is NAME"),
    ("i j, j k -> i k", "->", "-> belongs to te.einsum"),
    ("Y[i] = Y[i - 1] + x[i]", "Y[i - 1]", "Y is what this formula defines"),
    ("Z[i] = Y[i]\nY[i] = x[i]", "Y[i]", "Y is defined further down"),
    ("Y[i] = x[i]\nY[i] = 2 * x[i]", "Y", "Y is defined twice"),
    ("Y[i] = x[i - 1]", "i - 1", "at i = 0, where every axis begins"),
    ("Y[i] = x[i % 3]", "i % 3", r"the range of i is open: .*write its range behind the formula"),
    ("Y[i] = sum[k](x[i + k])", "i + k", r"the range of k is open: .* beside i, .*k=8"),
    ("Y[i] = x[i] + A[i, 0]", "i", r"i has 4 values in `A\[i, 0\]` .* and 6 values in `x\[i\]`"),
    ("Y[i] = exp(x[i], x[i])", "exp(x[i], x[i])", "too many positional arguments"),
    ("Y[i] = sum over k x[k]", "over", "the expression that is reduced is missing; write sum over k of"),
    ("Y[i] = sum[k](x[k], axis=k)", "axis=k", "where= and ties= beside its value, not axis="),
    ("Y[i] = sum[2](x[i])", "2", "an axis is expected here, with bounds if it has them"),
    ("Y[i] = sum[k, k](x[k])", "k", "k stands twice among the axes"),
    ("Y[i] = x[i]  (j < 3)", "j < 3", "j is no axis of this formula"),
    ("Y[i] = x[i]  (1 <= i < 3)", "1", "i is an axis of Y, which begins at 0"),
    ("Y[i] = x[i]  (0 <= i)", "0 <= i", "the range of an axis is written k < 3"),
    ("x: flot32(6)\nY[i] = x[i]", "flot32", r"flot32 is no dtype; did you mean float32\?"),
    ("x: float32\nY[i] = x[i]", "float32", r"written x: float32\(8, 34\)"),
    ("Y[i] = 2(x[i])", None, "called"),
    ("Y[i] = ½ * x[i]", "½", "this character is no part of formulas"),
    ("Y[i] = 2x[i]", None, r"an operator is expected between a number and a name; a product is written with \*"),
    ("Y[i] = x[-i]", "-i", r"is outside of x \(6,\) from i = 1 on; .*in reverse they are 5 - i"),
    ("Y[i] = sum[k] A[i, k]", "A", r"what is reduced stands in parentheses, sum\[k\]"),
    (r"Y_{i} = \sum_k A_{ik}", None, "formulas are not in LaTeX"),
    ("Y(i) = x[i]", "Y", r"the left side of a formula is a name with its axes, as in Y\[i, j\]"),
    ("sum[k](Y[k]) = x[k]", "sum", "the left side of a formula is a name with its axes"),
    ("Y[i] = max[k](A[i, k], ties='first')", "'", "a rule for ties is written ties=first"),
    ("Y = x[i]", "i", "i is no axis of this formula: put it on the left side"),
    ("Y[i] = np.exp(x[i])", "np.exp", r"functions are written by their names alone: exp"),
    ("Y[i] = sum(k)(A[i, k])", "sum(k)", r"or sum\[k\]"),
    ("Y[i] = sum[k](A[i, k], wher=k < 2)", "wher=k < 2", "where= and ties= beside its value, not wher="),
    ("return x[i]", "return x[i]", "without a return"),
    ("Y = A + A", "A", r"A has the shape \(4, 6\), and no index is given; a formula is of one element, as in A\[i, j\]"),
    ("Y[i] = x[i] x[i]", "x", r"a product is written with \*"),
    ("Y[i] = |x[i]|", "|", r"an absolute value is written abs\(...\)"),
    ("let y = x[0]", "y", "without a word before it"),
    ("Y[i] <- x[i]", "Y[i] <- x[i]", "written with =, not <-"),
    ("Y[i] = sum_k(A[i, k])", "sum_k", r"a reduction is written sum\[k\]"),
    ("Y[i] = A.T[i, 0]", "A.T[i, 0]", r"with the indices exchanged, A\[j, i\]"),
    ("Y[i] = x[i] / x.shape[0]", "x.shape[0]", "a size is a name, which is given as a keyword of te.define: n=8"),
    ("Y[i] = x[i] / len(x)", "len", "a size is a name, which is given as a keyword"),
    ("Y[I[i]] = x[i]", "I[i]", r"Y\[j\] = sum\[i\]\(x\[i\], where=I\[i\] == j\)"),
    ("Y[i] = quux(x[i])", "quux", "quux is no function of formulas; those are exp"),
    ("Y[i] = x[i / 2]", "x[i / 2]", "an index is an integer: divide by //"),
    ("Y[i] = sum[j](sqdist(A[i, j], A[i, j]))", "sqdist", r"a squared distance is sum\[c\]"),
    ("Y[i] = argkmin[j](A[i, j])", "argkmin", r"the places of the k least of many are te\.ops\.top_k"),
    ("Y[i] = x[clamp(i - 1, 0, 5)]", "clamp", "did you mean clip"),
    ("Y[i] = exp(x[i]))", ")", "this bracket closes nothing"),
    ("Y[i] = x[i]²", "²", r"this character is no part of formulas; a power is written \*\*"),
    ("Y[i] = maximun[j](A[i, j])", "maximun", r"did you mean max\[k\]\(...\)\?"),
    ("Y[i] = __import__('os').system('ls')", "__import__", "formulas .* are parsed and never evaluated"),
    ("Y[i] = x[i % 0]", "i % 0", "an index is divided by 0, by %; divide by a positive constant"),
    ("this is not a formula", "this is not a formula", r"this is no formula; a formula is NAME\[axes\] = expression"),
    ("Y[i] = " + "-" * 5000 + "x[i]", "Y", "this formula is too long, or too deep"),
    ("Y[i] = " + " + ".join(["x[i]"] * 600), "Y", "this formula is too long, or too deep"),
    ("Y[i] = " + "(" * 5000 + "x[i]", "(", "parentheses stand in each other too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "message"), FORMULAS)
def test_formulas(text: str, place: str | None, message: str) -> None:
    with pytest.raises(te.JaxteError) as found:
        function = te.define(text)
        known = {"x": x, "A": A}
        function(*[known[name] for name in function._signature.parameters])
    said = str(found.value)
    assert re.search(f"(?s){message}", said), said
    assert said.startswith("te.define: ")
    assert place is None or marked(said) == place, said


PATTERNS = [
    ("b (t+k) c, k c o -> b t q", [X, W], {}, "q", "q stands in no operand; to repeat along it, give its size"),
    ("b time c -> b tmie", [X], {}, "tmie", r"did you mean time\?"),
    ("b t+k c, k c o -> b t o", [X, W], {}, "k c o", r"has 3 operands, and 2 are given; arithmetic of indices stands in parentheses"),
    ("b (t+k c, k c o -> b t o", [X, W], {}, "(", "this parenthesis is not closed"),
    ("b (t+k) c, k c -> b t", [X, W], {}, "k c", r"2 axes for the operand 1, which has the shape \(3, 3, 4\)"),
    ("b t c -> b b c", [X], {}, "b", "b stands twice in the result; a diagonal is read"),
    ("b (t+k) c -> b t c", [X], {}, "t+k", "the range of k is open: .*give its size as a keyword, k=..."),
    ("b t c, b t d -> c d", [X, B], {}, "t", "t has 9 values in .* and 10 values in"),
    ("i (h w) -> i h w", [A], {}, "(h w)", "the sizes of h and w do not follow from their product, 6; give w="),
    ("i (h w) -> i h w", [A], {"w": 4}, "(h w)", "an axis of 6 elements is no multiple of w=4"),
    ("i (h w) -> i h w", [A], {"w": 4, "h": 2}, "(h w)", "h=2 .* w=4 are not the 6 elements"),
    ("i (h 4) -> i h", [A], {}, "(h 4)", "an axis of 6 elements is no multiple of 4"),
    ("i (h w+1) -> i h", [A], {}, None, "."),
    ("i j", [A], {}, None, "the axes of the result are missing; write them behind ->"),
    ("", [A], {}, None, "the axes of the result are missing"),
    ("i j -> j i, i", [A], {}, ",", "the result has axes only, side by side"),
    ("i * j -> i j", [A], {}, "j", r"arithmetic of indices stands in parentheses, as in \(t\+k\)"),
    ("i % j -> i j", [A], {}, "%", r"arithmetic of indices stands in parentheses, as in \(2\*t\+k\)"),
    ("i j => i j", [A], {}, "=>", "the result stands behind ->"),
    ("0.5 i j -> i j", [A], {}, "0.5", r"a factor is written with \*, as in 0.5 \* i j"),
    ("(i j)**k -> i", [A], {}, "k", r"an exponent is a number"),
    ("(t+k)**2 -> t", [x], {"k": 2}, "k", r"has parentheses of its own, \(\(t\+k\)\)\*\*2"),
    ("i 9 -> i", [A], {}, "9", "there is no position 9 on an axis of 6"),
    ("i (-1) -> i", [A], {}, "-1", r"positions do not count from the end, which is called end"),
    ("i (-t-1) -> i t", [A], {}, "-t-1", r"in reverse they are 5 - t"),
    ("[v] i, b -> b i", [A, x], {}, "[", r"positions that are data to formulas, te.define"),
    ("i j -> (i+j)", [A], {}, "i+j", r"put arithmetic into the operands"),
    ("i [j] -> i", [A], {}, "[", r"brackets belong to reductions, max\[k\]"),
    ("rleu(i j) -> i j", [A], {}, "rleu", r"did you mean relu\?"),
    ("smu[j](i j) -> i", [A], {}, "smu", r"did you mean sum\?"),
    ("sum[2](i j) -> i", [A], {}, "2", "the name of an axis is expected here"),
    ("i j -> i j", [A], {"q": 3}, "i j -> i j", "q=3 is given, but there is no such axis"),
    ("i j -> i j", [A], {"i": 3}, "i", "i is 4 here, and i=3 is given"),
    ("i j k -> i", [A], {}, "i j k", r"3 axes for the operand 0, which has the shape \(4, 6\)"),
    ("... i j -> i", [X], {}, "...", "the result has no ..., though an operand has axes there"),
    ("... i ... -> i", [X], {}, "...", "... stands once in an operand"),
    ("i (j.x) -> i", [A], {}, "j.x", "this is no part of formulas"),
    ("i (__import__) -> i", [A], {}, "__import__", "the name of an axis is expected"),
    ("i (j @ i) -> i", [A], {}, None, "."),
    ("i (k) -> i k)", [A], {}, ")", "the result has axes only"),
    ("i j, j -> i", [A], {}, "j", "has 2 operands, and 1 is given"),
    ("i@j -> i", [A], {}, "@", "the name of an axis is expected here"),
    ("exp(i j -> i", [A], {}, "->", r"'\)' is expected here"),
    ("i (t-1) -> i t", [A], {}, "t-1", "at t = 0, where every axis begins"),
    ("i (-t) -> i t", [A], {}, "-t", "in reverse they are 5 - t"),
    ("i (2k+1) -> i k", [A], {}, None, "a product is written with"),
    ("i j, j k -> i k", [A, A], {}, "j", "j has 4 values in .* and 6 values in"),
    ("i j > i", [A], {}, ">", "arithmetic of indices stands in parentheses"),
    ("(i//0) -> i", [x], {}, "i//0", "an index is divided by 0, by //"),
    ("2**31 * i -> i", [x], {}, "2**31", r"2\*\*31 does not fit into an integer of 32 bits: write 2.0\*\*31"),
    ("(n-1-i) -> i", [x], {"n": 6}, "n-1-i", r"the last position along an axis is `end`, as in \(end-i\)"),
    (" + ".join(["i"] * 600) + " -> i", [x] * 600, {}, "i", "this formula is too long, or too deep"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "operands", "sizes", "place", "message"), PATTERNS)
def test_patterns(
    pattern: str, operands: list[Any], sizes: dict[str, int], place: str | None, message: str
) -> None:
    with pytest.raises(te.DefinitionError) as found:
        te.einsum(pattern, *operands, **sizes)
    said = str(found.value)
    assert re.search(f"(?s){message}", said), said
    assert place is None or marked(said) == place, said


def test_arguments() -> None:
    for options, message in (
        ({"reduce": "smu"}, r"reduce is str 'smu'; did you mean sum\?"),
        ({"pad": "valid"}, "pad is str 'valid'; give 'zero', 'edge'"),
        ({"pad": "circular"}, r"pad is str 'circular'; did you mean 'wrap'\?"),
        ({"reduse": "max"}, r"reduse is str 'max'; did you mean reduce\?"),
        ({"reduce": np.prod}, r"reduce is .*; did you mean prod\?"),
        ({"reduce": print}, r"reduce is .*print>?; give sum, .* or what te.comm_reducer returns"),
        ({"i": 2.5}, "i is float 2.5; keywords are the sizes of axes"),
        ({"i": -2}, "i is int -2; keywords are the sizes of axes, which are integers from 0 on"),
    ):
        with pytest.raises(te.ArgumentError, match=message):
            te.einsum("i j -> i", A, **options)  # type: ignore[arg-type]
    with pytest.raises(
        te.ArgumentError, match=r"the operand 0 is list \[1.0, 2.0\]; give an array, as jnp.asarray"
    ):
        te.einsum("i ->", [1.0, 2.0])
    with pytest.raises(te.ArgumentError, match=r"the operand 1 is str 'max'; a reduction is reduce='max'"):
        te.einsum("i (h h2) -> i h", A, "max", h2=2)
    with pytest.raises(
        te.ArgumentError, match=r"kk= is given, but the text has no kk; its names are Y, i, x"
    ):
        te.define("Y[i] = x[i]", kk=3)
    with pytest.raises(
        te.ShapeError, match="an axis of one element has no other to show; pad='edge' repeats it"
    ):
        te.einsum("(i+k), k -> i", np.ones(1, "float32"), np.ones(3, "float32"), pad="reflect")
    product = te.define("Y[i] = q[i] * factor")
    ones = np.ones(3, "float32")
    for arguments, message in (
        (
            {"Q": ones, "factor": 2.0},
            r"Y\(q, factor\): got an unexpected keyword argument 'Q'; did you mean q\?",
        ),
        ({"q": ones, "fctor": 2.0}, r"got an unexpected keyword argument 'fctor'; did you mean factor\?"),
        ({"q": ones, "b": 2.0}, r"got an unexpected keyword argument 'b'; did you mean factor=\?"),
        ({"q": "a", "factor": 2.0}, "q is str 'a'; give an array"),
        ({"q": 2.0, "factor": 2.0}, "q is the number 2.0, which has no axes"),
    ):
        with pytest.raises(te.JaxteError, match=message):
            product(**arguments)
    with pytest.raises(te.ArgumentError, match=r"x is a? ?numpy.ndarray.*keywords are sizes"):
        te.define("Y[i] = x[i]", x=np.ones(3))
    for name in "xY":
        with pytest.raises(
            te.ArgumentError, match=rf"{name}=5 gives a size, and {name}\[...\] in the text is a tensor"
        ):
            te.define("Y[i] = x[i]", **{name: 5})
    with pytest.raises(te.DefinitionError, match=r"te.define of a text without a formula; a formula is NAME"):
        te.define("  # nothing\n")
    with pytest.raises(te.ArgumentError, match=r"the text of te.define is"):
        te.define(3)  # type: ignore[arg-type]


def test_there_are_a_hundred() -> None:
    assert len(FORMULAS) + len(PATTERNS) >= 100
