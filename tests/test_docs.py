"""The Python in README.md and docs/ runs, and prints what the pages say that it prints.

The ``python`` blocks of a page run in order in one namespace. A ``text`` block right after one is what it prints.
``python tests/test_docs.py`` writes the pages anew with what is printed now.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.lang import functions

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n^```text\n(?P<output>.*?)^```$)?", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """Code, what the page says it prints (None where it says nothing), and where that stands."""

    code: str
    output: str | None
    line: int
    span: tuple[int, int]


def blocks(text: str) -> list[Block]:
    return [
        Block(m["code"], m["output"], text[: m.start()].count("\n") + 2, m.span("output"))
        for m in _BLOCK.finditer(text)
    ]


def printed(block: Block, page: Path, scope: dict[str, Any]) -> str:
    """What the block prints; tracebacks show lines of the page."""
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, scope)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().rstrip().splitlines())


# What releases of JAX and processors may change: XLA's counts, and the last digits of floats.
_COUNTS = re.compile(r"^ *XLA, .*$", re.MULTILINE)
_FLOAT = re.compile(r"-?\d+\.\d*(?:e[-+]\d+)?")


def words(output: str) -> str:
    """What is printed but for numbers, and for the spaces that align them and fill them up."""
    return re.sub(r" +(?=[\],])", "", re.sub(r"(?<=\S) +", " ", _FLOAT.sub("#", _COUNTS.sub("XLA", output))))


def numbers(output: str) -> list[float]:
    return [float(number) for number in _FLOAT.findall(_COUNTS.sub("XLA", output))]


WITH_CODE = [page for page in PAGES if blocks(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_runs_and_prints_what_the_page_says(page: Path) -> None:
    scope: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        found = printed(block, page, scope)
        if block.output is not None:
            where = f"{page.name}:{block.line}; python tests/test_docs.py writes it anew"
            assert words(found) == words(block.output), where
            np.testing.assert_allclose(
                numbers(found), numbers(block.output), rtol=1e-4, atol=1e-5, err_msg=where
            )


def test_every_block_is_seen() -> None:
    """A fence that the pattern does not match would be passed over in silence."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(blocks(text)) == text.count("```python"), page.name
        assert text.count("```text") == sum(b.output is not None for b in blocks(text)), page.name


def test_links_lead_to_files() -> None:
    for page in PAGES:
        # code has brackets before parentheses, too
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"`[^`\n]*`", "", text)
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


_PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*(?:\.(?:py|json)|/))`|python (?:-m )?((?:\w+/)*\w+\.py)")
_FOLDERS = ("jaxte", "tests", "benchmarks", "examples", "docs")


def test_the_page_of_operators_says_what_their_docstrings_say() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "write_ops.py"))
    assert script["page"]() == (ROOT / "docs" / "ops.md").read_text(encoding="utf-8"), (
        "python docs/write_ops.py"
    )


def test_the_site_has_every_page() -> None:
    """And nothing in its navigation that is not there, which `make docs` says only where the site is built."""
    listed = re.findall(r"([\w/.-]+\.(?:md|ipynb))$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    docs = ROOT / "docs"
    there = {p.relative_to(docs).as_posix() for p in [*docs.rglob("*.md"), *docs.glob("notebooks/*.ipynb")]}
    assert set(listed) == {page for page in there if not page.startswith("design/")} | {"design/README.md"}


def test_the_page_of_docstrings_has_every_name() -> None:
    """But scalar functions, which are a table in docs/api.md, second names, and modules."""
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: jaxte\.(\w+)$", page, re.MULTILINE)
    others = {"Jacobian", "DiffBuildingBlock", "draw", "facts", "testing", "ops"}
    assert sorted(named) == sorted({n for n in te.__all__ if not hasattr(functions, n)} - others | {"draw"})


def test_the_reference_can_be_built() -> None:
    """Docstrings name parameters one by one, else the strict build refuses them."""
    together = re.compile(r"^ +\w+(?:, \w+)+: ", re.MULTILINE)
    public = {f"te.{n}": getattr(te, n) for n in te.__all__}
    public |= {f"te.ops.{n}": getattr(te.ops, n) for n in te.ops.__all__}
    public |= {f"te.draw.{n}": getattr(te.draw, n) for n in ("graph", "reads", "spy")}
    for name, value in public.items():
        arguments = re.search(r"Args:\n(.*?)(?:\n\n|\Z)", value.__doc__ or "", re.DOTALL)
        found = together.findall(arguments[1]) if arguments else []
        assert not found, f"{name}: a line for each of {found[0].strip()}"


def test_cells_of_numbers_stay_on_one_line() -> None:
    hook = runpy.run_path(str(ROOT / "docs" / "tables.py"))["on_page_content"]
    for cell in (
        "2.2 / 1.8 s",
        "0.398 ms",
        "<strong>10 / 2.3</strong>",
        "1,391.3 a round",
        "1.2 to 1.4",
        "3e-07",
    ):
        assert hook(f"<td>{cell}</td>") == f'<td class="numbers">{cell}</td>'
    for cell in ("1 scatter, 2 gather", "shifted slices", "4.8 / 2.6, 1.4 / 1.0 MB"):
        assert hook(f"<td>{cell}</td>") == f"<td>{cell}</td>"


def test_pages_are_short() -> None:
    lengths = {page: len(page.read_text(encoding="utf-8").splitlines()) for page in PAGES}
    assert {name: length for name, length in lengths.items() if length > 300} == {}


def test_files_that_pages_name_exist() -> None:
    """A page may leave out the first folders of a path."""
    found = [path.relative_to(ROOT) for folder in _FOLDERS for path in (ROOT / folder).rglob("*.*")]
    files = {f"/{path.as_posix()}" for path in found}
    known = {file[at:] for file in files for at, c in enumerate(file) if c == "/"}
    known |= {folder[: at + 1] for folder in known for at, c in enumerate(folder) if c == "/"}
    for page in [ROOT / "CONTRIBUTING.md", *PAGES]:
        for m in _PATH.finditer(page.read_text(encoding="utf-8")):
            assert f"/{m[1] or m[2]}" in known, f"{page.name}: {m[1] or m[2]} is nowhere"


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\w+", page))
    assert not [name for name in te.__all__ if name not in named]
    listed = {n for span in re.findall(r"`([a-zA-Z_]\w*)`", page) for n in [span]}
    assert not [
        name
        for name in listed
        if not hasattr(te, name) and name not in vars(te.DomainTransformation)["__annotations__"]
    ]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("reductions", "recurrence `h[i] = a[i] * h[i - 1] + b[i]`"),
        ("reductions", "One reduction axis may stand in several reductions and in several tensors."),
        ("language", "`X[n - 1 - te.abs(n - 1 - te.abs(i + k))]`"),
        ("language", "A builder returns one tensor or a pytree of tensors"),
    ],
)
def test_what_works_is_said_and_runs(page: str, said: str) -> None:
    """A reducer of pairs, one axis in several bodies and several outputs in a block that is run; nested reflections below."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert said in text
    section = text[text.index(said) :].split("\n## ")[0]
    assert "```python" in section


def test_nested_reflection_is_what_its_page_says() -> None:
    n = 5
    x = te.placeholder((n,), name="X")
    k = te.reduce_axis((-3, 4), "k")
    y = te.compute((n,), lambda i: te.sum(x[n - 1 - te.abs(n - 1 - te.abs(i + k))] * (k + 4), axis=k), "y")
    own, weights = np.arange(1.0, n + 1).astype("float32") ** 2, np.arange(1, 8)
    padded = np.pad(own, 3, mode="reflect")
    (found,) = te.evaluate([y], {x: own})
    np.testing.assert_allclose(found, np.convolve(padded, weights[::-1], "valid"), rtol=1e-6)


def write_anew(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    scope: dict[str, Any] = {"__name__": "__main__"}
    outputs = [(block, printed(block, page, scope)) for block in blocks(text)]
    for block, output in reversed(outputs):
        if block.output is not None:
            text = text[: block.span[0]] + output + text[block.span[1] :]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for path in PAGES:
        write_anew(path)
