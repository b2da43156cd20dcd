"""Formulas as plain text, HTML and LaTeX."""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser

import pytest

from jaxte.lang.errors import ArgumentError
from jaxte.lang.expr import Axis, Expr, call, cast
from jaxte.lang.functions import TABLE, const
from jaxte.lang.operators import EQUAL, SELECT
from jaxte.lang.text import text
from jaxte.show.printing import Code, definitions, formula, highlighted, html, latex
from jaxte.show.tex import broken, width
from jaxte.tensors.bodies.open_ranges import axis
from jaxte.tensors.compute import compute
from jaxte.tensors.custom_reductions import comm_reducer
from jaxte.tensors.inputs import placeholder, var
from jaxte.tensors.reductions import argmax, prod, reduce_axis
from jaxte.tensors.reductions import max as te_max
from jaxte.tensors.reductions import sum as te_sum
from jaxte.tensors.tensor import Compute
from tests.lowered import sources

X = placeholder((8, 34, 16), name="X")
W = placeholder((3, 16, 32), name="W")
A = placeholder((8, 8), name="A")
x = placeholder((8,), name="x")
EXP = TABLE["exp"].op


def convolution() -> Compute:
    k, c = reduce_axis((0, 3), "k"), reduce_axis((0, 16), "c")
    return compute((8, 32, 32), lambda b, t, o: te_sum(X[b, t + k, c] * W[k, c, o], axis=[k, c]), "Y")


def prefix_sum() -> Compute:
    j = reduce_axis((0, 8), "j")
    return compute((8,), lambda i: te_sum(x[j], axis=j, where=j <= i), "S")


def window() -> Compute:
    p = reduce_axis((0, 8), "p")
    return compute((10,), lambda y: te_sum(x[p], axis=p, where=(y - p >= 0) & (y - p < 3)), "D")


class Balance(HTMLParser):
    """The text of some HTML, and whether its tags match."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def balanced(source: str) -> bool:
    """Whether braces and left/right pairs of LaTeX match."""
    depth = 0
    for before, character in zip(" " + source, source, strict=False):
        if before != "\\":
            depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0, source
    return depth == 0 and source.count(r"\left(") == source.count(r"\right)")


def test_plain_form_of_a_convolution() -> None:
    Y = convolution()
    assert formula(Y, ranges=False) == "Y[b, t, o] = sum over k, c of X[b, t + k, c] * W[k, c, o]"
    assert formula(Y).endswith("W[k, c, o]  (b < 8, t < 32, o < 32, k < 3, c < 16)")


def test_conditions_on_one_axis_are_written_as_its_bounds() -> None:
    assert formula(prefix_sum(), ranges=False) == "S[i] = sum over j <= i of x[j]"
    assert formula(window(), ranges=False) == "D[y] = sum over y - 2 <= p <= y of x[p]"
    k = reduce_axis((2, 8), "k")
    below = compute((8,), lambda i: te_sum(x[k], axis=k, where=k < i))
    assert formula(below) == "T[i] = sum over k < i of x[k]  (i < 8, 2 <= k < 8)"
    above = compute((8,), lambda i: te_sum(x[k], axis=k, where=k > i))
    assert formula(above, ranges=False) == "T[i] = sum over i < k of x[k]"


def test_other_conditions_are_written_as_such() -> None:
    indices = placeholder((8,), "int32", name="I")
    i = reduce_axis((0, 8), "i")
    scatter = compute((5,), lambda a: te_sum(x[i], axis=i, where=indices[i] == a), "dX")
    assert formula(scatter, ranges=False) == "dX[a] = sum over i where I[i] == a of x[i]"
    even = compute((), lambda: te_sum(x[i], axis=i, where=i % 2 == 0))
    assert formula(even, ranges=False) == "T[] = sum over i where i % 2 == 0 of x[i]"
    strided = compute((8,), lambda a: te_sum(x[i], axis=i, where=2 * i <= a))
    assert formula(strided, ranges=False) == "T[a] = sum over i where 2 * i <= a of x[i]"


def test_guards_read_as_sentences() -> None:
    shifted = compute((9,), lambda i: call(SELECT, (i >= 1) & (i < 5), x[i - 1], 0.0), "P")
    assert formula(shifted, ranges=False) == "P[i] = x[i - 1] if i >= 1 and i < 5 else 0"
    doubled = compute((8,), lambda i: 2.0 * call(SELECT, ~((i > 3) | (i < 1)), x[i], -x[i]), "P")
    assert formula(doubled, ranges=False) == "P[i] = 2 * (x[i] if not (i > 3 or i < 1) else -x[i])"


def test_sums_within_expressions_have_parentheses() -> None:
    i = Axis("i", 0, 8)
    k = reduce_axis((0, 8), "k")
    inner = te_sum(A[i, k] + x[k], axis=k)
    Y = Compute("Y", (i,), call(SELECT, i < 3, inner, 0.0) - inner)
    assert formula(Y, ranges=False) == (
        "Y[i] = ((sum over k of (A[i, k] + x[k])) if i < 3 else 0) - (sum over k of (A[i, k] + x[k]))"
    )


def test_precedence_and_negative_numbers() -> None:
    Y = compute((8,), lambda i: (x[i] - (x[i] - 1.5)) * -2.0 / (x[i] * x[i]) ** 2, "Y")
    assert formula(Y, ranges=False) == "Y[i] = (x[i] - (x[i] - 1.5)) * -2 / (x[i] * x[i]) ** 2"
    Z = compute((8,), lambda i: call(EXP, x[i]) + cast(i, "float32"), "Z")
    assert formula(Z, ranges=False) == "Z[i] = exp(x[i]) + float32(i)"


a, b, c = (placeholder((8,), name=n) for n in "abc")
WRITTEN = {
    "(a ** b) ** c": lambda a, b, c: (a**b) ** c,
    "a ** b ** c": lambda a, b, c: a ** (b**c),
    "(-a) ** b": lambda a, b, c: (-a) ** b,
    "-a ** b": lambda a, b, c: -(a**b),
    "a ** -b": lambda a, b, c: a**-b,
    "(-2.5) ** a": lambda a, b, c: const(-2.5) ** a,
    "(a / b) ** c": lambda a, b, c: (a / b) ** c,
    "(a < b) == (b < c)": lambda a, b, c: call(EQUAL, a < b, b < c),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_powers_and_comparisons_keep_their_parentheses(written: str) -> None:
    Y = compute((8,), lambda i: WRITTEN[written](a[i], b[i], c[i]), "Y")
    elements = re.sub("([abc])", r"\1[i]", written)
    assert text(Y.body) == elements and formula(Y, ranges=False) == f"Y[i] = {elements}"
    assert sources(Y) == [written]


def test_powers_in_latex() -> None:
    i = Axis("i", 0, 8)
    x, y = a[i], b[i]
    assert latex((x**y) ** 3) == r"{\left({a_{i}}^{b_{i}}\right)}^{3}"
    assert latex(x ** (y**3)) == r"{a_{i}}^{{b_{i}}^{3}}"
    assert latex(call(EXP, x) ** 2) == r"{\left(e^{a_{i}}\right)}^{2}"
    assert latex(call(TABLE["rsqrt"].op, x) ** 2) == r"{\left(\frac{1}{\sqrt{a_{i}}}\right)}^{2}"
    assert latex(call(SELECT, x > 0, x, y) ** 2).startswith(r"{\left(\begin{cases}")
    assert latex(call(TABLE["floor"].op, x)) == r"\left\lfloor a_{i}\right\rfloor"


def test_axes_with_the_same_name_are_told_apart() -> None:
    i = reduce_axis((0, 8), "i")
    outer = Axis("i", 0, 8)
    Y = Compute("Y", (outer,), te_sum(A[outer, i], axis=i))
    assert formula(Y) == "Y[i] = sum over i' of A[i, i']  (i < 8, i' < 8)"
    assert latex(Y) == r"Y_{i} = \sum_{i'=0}^{7} A_{i,\,i'}"


def test_other_reductions() -> None:
    k = reduce_axis((0, 8), "k")
    assert (
        formula(compute((8,), lambda i: te_max(A[i, k], axis=k)), ranges=False)
        == "T[i] = max over k of A[i, k]"
    )
    assert (
        formula(compute((8,), lambda i: argmax(A[i, k], axis=k)), ranges=False)
        == "T[i] = argmax over k of A[i, k]"
    )
    pair = comm_reducer(
        lambda a, b: (a[0] + b[0], a[1] * b[1]), lambda s, t: (cast(0.0, s), cast(1.0, t)), "a<b"
    )
    _, second = compute((8,), lambda i: pair((A[i, k], x[k]), axis=k), "P")
    assert formula(second, ranges=False) == "P_1[i] = a<b over k of (A[i, k], x[k])[1]"
    assert "a&lt;b over" in html(second) or "<i>a&lt;b</i> over" in html(second)
    assert r"\operatorname*{\mathrm{a\lt b}}_{0 \leq k \leq 7}" in latex(second)


def test_definitions_list_what_is_needed_once_with_distinct_names() -> None:
    B = compute((8,), lambda i: x[i] * 2.0, "B")
    C = compute((8,), lambda i: B[i] + B[i], "B")
    assert definitions([C, B]).splitlines() == [
        "B[i] = x[i] * 2  (i < 8)",
        "B_1[i] = B[i] + B[i]  (i < 8)",
    ]
    assert definitions(x) == "x: float32(8,)"
    assert formula(C, names={B: "tmp"}, ranges=False) == "B[i] = tmp[i] + tmp[i]"


def test_symbolic_sizes() -> None:
    n = var("n")
    k = reduce_axis((0, n), "k")
    Z = placeholder((n,), name="Z")
    total = compute((), lambda: te_sum(Z[k], axis=k), "S")
    assert formula(total) == "S[] = sum over k of Z[k]  (k < n)"
    assert latex(total) == r"S = \sum_{k=0}^{n - 1} Z_{k}"


def test_latex() -> None:
    assert latex(convolution()) == (
        r"Y_{b,\,t,\,o} = \sum_{k=0}^{2} \sum_{c=0}^{15} X_{b,\,t + k,\,c} \cdot W_{k,\,c,\,o}"
    )
    assert latex(prefix_sum()) == r"S_{i} = \sum_{j=0}^{i} x_{j}"
    # y - 2 may be below 0, y above 7: those conditions stay beside the constant bounds
    assert r"\substack{p=0 \\" in latex(window()) and "^{7}" in latex(window())
    k = reduce_axis((0, 8), "k")
    assert latex(compute((8,), lambda i: te_max(A[i, k], axis=k))) == (
        r"T_{i} = \max_{0 \leq k \leq 7} A_{i,\,k}"
    )
    assert latex(compute((8,), lambda i: prod(A[i, k] + 1.0, axis=k), "P")) == (
        r"P_{i} = \prod_{k=0}^{7} \left(A_{i,\,k} + 1\right)"
    )
    guarded = latex(compute((9,), lambda i: call(SELECT, i >= 1, x[i - 1], 0.0), "P"))
    assert (
        guarded == r"P_{i} = \begin{cases}x_{i - 1} & \text{if } i \geq 1 \\ 0 & \text{otherwise}\end{cases}"
    )


def test_latex_of_expressions_and_of_several() -> None:
    i = Axis("i", 0, 8)
    assert latex(x[i] / 2.0) == r"\frac{x_{i}}{2}"
    assert latex(1e-5 * x[i]) == r"1 \cdot 10^{-5} \cdot x_{i}"
    assert latex(cast(i + 1, "float32") * x[i]) == r"\left(i + 1\right) \cdot x_{i}"
    both = latex([x, compute((8,), lambda i: x[i], "B")])
    assert both == r"\begin{aligned} x \in \mathrm{float32}^{8} \\ B_{i} &= x_{i} \end{aligned}"


def test_html() -> None:
    shown = Balance(html([prefix_sum(), compute((9,), lambda i: call(SELECT, i >= 1, x[i - 1], 0.0), "P")]))
    assert "S[i] = sum over j ≤ i of x[j]  (i < 8, j < 8)" in shown.text
    assert "P[i] = x[i − 1] if i ≥ 1 else 0  (i < 9)" in shown.text
    assert "float32(9,)" in shown.text


HOSTILE = [
    "x); import os #",
    '<script>alert("1")</script>',
    'a"""b',
    "\\end{x}$%",
    "naïve λ\n",
    "",
    "{0}",
    "a&b",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_harmless(name: str) -> None:
    T = placeholder((8,), name=name)
    Y = compute((8,), lambda i: T[i] * 2.0, name)
    line = formula(Y, ascii=True)
    assert line.isascii() and line.isprintable()
    assert ast.literal_eval(f'"""{line}."""') == f"{line}."
    assert Balance(html([Y, T])).tags <= {"table", "tr", "td", "code", "i"}
    assert balanced(latex(Y)) and "$" not in latex(Y).replace(r"\$", "")
    assert "\n" not in formula(Y)


def test_names_of_formulas_are_those_of_tensors() -> None:
    for names in ({"Y": "Z"}, {x: 3}):
        with pytest.raises(ArgumentError, match=r"the names= of te.formula are"):
            formula(compute((8,), lambda i: 2 * x[i], "Y"), names=names)  # type: ignore[arg-type]


def test_deep_and_shared_expressions_are_cut() -> None:
    i = Axis("i", 0, 8)
    deep: Expr = x[i]
    shared: Expr = x[i]
    for level in range(2000):
        deep = deep * float(level + 2)
        shared = shared * shared
    for body in (deep, shared):
        Y = Compute("Y", (i,), body)
        for written in (formula(Y), latex(Y), html(Y)):
            assert len(written) < 10_000
        assert "…" in formula(Y) and r"\cdots" in latex(Y) and balanced(latex(Y))
        assert formula(Y, ascii=True).isascii()
    tensor = x
    for _ in range(2000):
        tensor = compute((8,), lambda i, t=tensor: t[i] * 2.0)
    assert "1960 more" in definitions(tensor)


def test_notebooks_find_the_representations() -> None:
    Y = prefix_sum()
    Z = compute((8,), lambda i: Y[i] / 2.0 + x[i], "Z")
    shown = Z._repr_latex_()  # type: ignore[attr-defined]
    assert r"S_{i} &= \sum_{j=0}^{i} x_{j} \\ Z_{i} &= " in shown and shown.count("$") == 2
    assert not hasattr(Z, "_repr_html_")  # which notebooks would show in place of LaTeX
    assert reduce_axis((0, 3), "k")._repr_latex_() == r"$0 \leq k \lt 3$"  # type: ignore[attr-defined]
    assert axis("m")._repr_latex_() == r"$0 \leq m$"  # type: ignore[attr-defined]
    assert (x[1] / 2.0)._repr_latex_() == r"$\displaystyle \frac{x_{1}}{2}$"  # type: ignore[attr-defined]


def test_wide_formulas_are_broken_where_operators_bind_least() -> None:
    term = r"\left(a_{i} + b_{i}\right) \cdot \frac{c_{i} + 1}{2}"
    assert broken(term) == [term]
    lines = broken(" + ".join([term] * 12), widest=40)
    assert len(lines) == 4 and all(line.startswith(" + ") for line in lines[1:])
    assert "".join(lines) == " + ".join([term] * 12) and all(map(balanced, lines))
    product = broken(r" \cdot ".join(["a_{i}"] * 40), widest=40)
    assert 1 < len(product) < 5 and all(width(line) <= 40 for line in product)
    assert broken(rf"\left({term * 9}\right)", widest=40) == [rf"\left({term * 9}\right)"]


def test_a_condition_stands_below_the_last_sum_that_it_is_about() -> None:
    p, q = reduce_axis((0, 8), "p"), reduce_axis((0, 8), "q")
    both = compute((8,), lambda i: te_sum(A[p, q], axis=[p, q], where=(p % 2 == i % 2) & (p + q < 8)), "S")
    assert latex(both).startswith(
        r"S_{i} = \sum_{\substack{p=0 \\ p \bmod 2 = i \bmod 2}}^{7} \sum_{q=0}^{7 - p}"
    )


def test_code_is_highlighted_to_the_letter() -> None:
    text = 'def f(x):\n    """A < B."""\n    return x[::2] + 1.5  # half\n\n\nfn = f\n'
    shown = Balance(Code(text)._repr_html_())
    assert shown.text == f"copy{text}"
    assert re.search('<span style="color:[^"]*#8250df[)]*">def</span>', highlighted(text))
