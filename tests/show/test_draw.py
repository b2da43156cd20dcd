"""Pictures: which elements are read, and the graph of tensors."""

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
