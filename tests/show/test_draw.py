"""Pictures: which elements are read, and the graph of tensors."""

from xml.etree import ElementTree

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import jaxte as te

X = te.placeholder((4, 5), name='X"')
p, q = te.reduce_axis((0, 2), "p"), te.reduce_axis((0, 2), "q")
Y = te.compute((3, 4), lambda i, j: te.sum(X[i + p, j + q], axis=[p, q]), "Y")
Z = te.compute((3, 2), lambda i, j: te.exp(Y[i, 2 * j]), "Z")


def test_elements_that_one_element_reads() -> None:
    ax = te.draw.reads(Z, X, (1, 1))
    shown = np.asarray(ax.images[0].get_array())
    assert np.argwhere(shown).tolist() == [[1, 2], [1, 3], [2, 2], [2, 3]]
    plt.close(ax.figure)
    with pytest.raises(te.ArgumentError, match="has no element at"):
        te.draw.reads(Z, X, (3, 0))


def test_the_graph_as_text() -> None:
    lines = te.draw.graph(Z).splitlines()
    assert lines[0] == "graph TD"
    assert [line.strip() for line in lines[1:]] == [
        't0(["X#34; (4, 5)"])', 't1["Y (3, 4)"]', 't2["Z (3, 2)"]', "t0 --> t1", "t1 --> t2"
    ]  # fmt: skip


def test_the_graph_as_a_picture() -> None:
    """Every box stands below what it reads, beside the others of its row, and a line passes the rows between."""
    A, B = te.placeholder((4,), name="A<"), te.placeholder((4,), name="B")
    C = te.compute((4,), lambda i: A[i] + B[i], "C")
    D = te.compute((4,), lambda i: C[i] * A[i], "D")
    drawn = ElementTree.fromstring(te.draw.graph([D]).svg())
    space = "{http://www.w3.org/2000/svg}"
    labels = [text.text for text in drawn.iter(f"{space}text")]
    spans = {
        label: (float(box.attrib["x"]), float(box.attrib["width"]), float(box.attrib["y"]))
        for label, box in zip(labels, drawn.iter(f"{space}rect"), strict=True)
    }
    (a, wide, row), (b, _, same), (_, _, below), (_, _, last) = (
        spans[f"{n} (4,)"] for n in ("A<", "B", "C", "D")
    )
    assert row == same < below < last and a + wide <= b
    assert (
        len(list(drawn.iter(f"{space}path"))) == 5 + 4
    )  # A to D in two parts; a head for each of four lines
    assert set(te.draw.graph([D])._repr_mimebundle_()) == {"image/svg+xml", "text/plain"}


def test_a_graph_needs_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(te.draw, "plt", None)
    assert te.draw.graph(Z).startswith("graph TD")
    with pytest.raises(te.JaxteError, match=r"pip install 'jaxte\[draw\]'"):
        te.draw.reads(Z, X, (1, 1))
