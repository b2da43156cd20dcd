"""Pictures: which elements are read, and the graph of tensors."""

import shutil

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


def test_the_graph_as_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    made = te.draw.graph([Z])
    assert made.dot.splitlines()[2:] == [
        '    t0 [label="X\\" (4, 5)", shape=oval];',
        '    t1 [label="Y (3, 4)", shape=box];',
        '    t2 [label="Z (3, 2)", shape=box];',
        "    t0 -> t1;",
        "    t1 -> t2;",
        "}",
    ]
    if shutil.which("dot"):
        drawn = made._repr_mimebundle_()["image/svg+xml"]
        assert drawn.startswith("<svg") and drawn.count('class="node"') == 3
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert made._repr_mimebundle_() == {"text/vnd.mermaid": str(made), "text/plain": str(made)}


def test_a_graph_needs_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(te.draw, "plt", None)
    assert te.draw.graph(Z).startswith("graph TD")
    with pytest.raises(te.JaxteError, match=r"pip install 'jaxte\[draw\]'"):
        te.draw.reads(Z, X, (1, 1))
