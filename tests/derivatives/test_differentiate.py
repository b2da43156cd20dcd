"""The contracts of ``differentiate``: results, heads, summands, ``fdiff`` and overrides, and the order of derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.graphs import among
from jaxte.tensors.structure import topological_order


def x(*shape: int, name: str = "X") -> te.Placeholder:
    return te.placeholder(shape, name=name)


def chain() -> tuple[te.Tensor, ...]:
    a, w, k = x(3, 4, name="A"), x(5, 4, name="W"), te.reduce_axis((0, 4), "k")
    y = te.compute((3, 5), lambda i, j: te.sum(a[i, k] * w[j, k], axis=k), "Y")
    z = te.compute((3, 5), lambda i, j: te.tanh(y[i, j]) * y[i, j], "Z")
    return a, w, y, z


def values(tensors, feeds):
    order = topological_order(tensors)
    return te.interpret(list(tensors), {t: v for t, v in feeds.items() if among(t, order)})


def test_result_is_a_sequence_of_the_requested_adjoints() -> None:
    a, w, _y, z = chain()
    result = te.differentiate(z, [w, a], x(3, 5, name="H"))
    dw, da = result
    assert len(result) == 2
    assert result[0] is dw and result[-1] is da and list(result[:1]) == [dw]
    assert (dw.shape, da.shape) == (w.shape, a.shape)
    assert list(result) == result.result == [result.adjoints[w], result.adjoints[a]]
    assert te.gradient(z, a, x(3, 5, name="H"))[0].shape == a.shape


def test_results_draw_themselves() -> None:
    a, w, _, z = chain()
    result = te.differentiate(z, [a, w], x(3, 5, name="H"))
    assert repr(result).splitlines() == [repr(t) for t in result]
    assert result._repr_latex_().startswith(r"$\displaystyle \begin{aligned} ")


def test_adjoints_and_summands_of_intermediates() -> None:
    a, _, y, z = chain()
    total = te.compute((3, 5), lambda i, j: z[i, j] + y[i, j] * 3, "total")
    head = x(3, 5, name="H")
    result = te.differentiate(total, [a], head)
    assert set(result.adjoint_summands[y]) == {z, total}
    assert result.adjoints[total] is head
    feeds = {a: np.ones((3, 4), "f"), head: np.full((3, 5), 2.0, "f")}
    feeds |= {t: np.ones((5, 4), "f") for t in topological_order([total]) if t.name == "W"}
    parts = [values([p], feeds)[0] for p in result.adjoint_summands[y].values()]
    (whole,) = values([result.adjoints[y]], feeds)
    np.testing.assert_allclose(whole, sum(parts), rtol=1e-6)


def test_without_inputs_every_adjoint_is_there_and_iteration_explains() -> None:
    a, w, y, z = chain()
    result = te.differentiate(z, head=x(3, 5, name="H"))
    assert len(result) == 0
    assert {a, w, y, z} <= set(result.adjoints)
    with pytest.raises(te.DifferentiationError, match=r"without inputs.*\.adjoints"):
        list(result)
    with pytest.raises(te.DifferentiationError, match=r"inputs=\[...\]"):
        result[0]


def test_without_head_the_jacobian() -> None:
    a, w, y, _ = chain()
    (full,) = te.differentiate(y, [a])
    assert full.shape == y.shape + a.shape
    weights = np.arange(20, dtype="f").reshape(5, 4)
    (got,) = values([full], {w: weights})
    expected = np.einsum("ip,jk->ijpk", np.eye(3), weights)
    np.testing.assert_allclose(got, expected)


def test_head_with_a_prefix() -> None:
    a, _, _y, z = chain()
    head = x(2, 7, 3, 5, name="H")
    (da,) = te.differentiate(z, [a], head)
    assert da.shape == (2, 7, 3, 4)
    rng = np.random.default_rng(0)
    feeds = {t: rng.standard_normal(t.shape).astype("f") for t in topological_order([da]) if not t.inputs}
    (got,) = values([da], feeds)
    single = x(3, 5, name="h")
    (plain,) = te.differentiate(z, [a], single)
    one = {t: v for t, v in feeds.items() if t is not head} | {single: feeds[head][1, 4]}
    np.testing.assert_allclose(got[1, 4], values([plain], one)[0], rtol=1e-5, atol=1e-6)


def test_unused_inputs_get_zeros_of_the_right_shape() -> None:
    a, _, _, z = chain()
    other = x(2, 3, name="other")
    result = te.differentiate(z, [other, a], x(6, 3, 5, name="H"))
    assert result[0].shape == (6, 2, 3)
    assert not np.any(te.interpret(result[0], {}))


def test_fdiff_replaces_every_pair() -> None:
    a, w, y, z = chain()
    seen = []

    def naive(output, input, head):
        seen.append((output, input))
        return te.ops.tensordot(head, te.jacobian(output, input), output.ndim)

    head = x(3, 5, name="H")
    naive_result = te.differentiate(z, [a, w], head, fdiff=naive)
    result = te.differentiate(z, [a, w], head)
    assert set(seen) == {(z, y), (y, a), (y, w)}
    rng = np.random.default_rng(1)
    feeds = {t: rng.standard_normal(t.shape).astype("f") for t in (a, w, head)}
    for got, expected in zip(values(naive_result, feeds), values(result, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_fdiff_with_a_wrong_shape_is_named() -> None:
    a, _, y, _ = chain()
    with pytest.raises(te.ShapeError, match=r"fdiff\(Y, A, head\).*\(3, 4\)"):
        te.differentiate(y, [a], x(3, 5, name="H"), fdiff=lambda out, inp, head: head)


def test_override_blocks_the_gradient_into_a_tensor_further_away() -> None:
    a, w, _y, z = chain()
    head = x(3, 5, name="H")

    def only_w(out, inputs, head):
        (weights,) = inputs
        return [te.compute(weights.shape, lambda j, k: head[0, j] * 2, "dW")]

    da, dw = te.differentiate(z, [a, w], head, override={z: ([w], only_w)})
    assert repr(da) == "dA[i0, i1] = 0.0"
    (got,) = values([dw], {head: np.ones((3, 5), "f")})
    np.testing.assert_allclose(got, 2)


def test_override_of_one_tensor_leaves_the_others() -> None:
    a, _, y, z = chain()
    head = x(3, 5, name="H")
    passed = te.differentiate(
        z,
        [a],
        head,
        override={z: ([y], lambda out, inputs, head: [te.diff_building_block(out, inputs[0], head)])},
    )
    plain = te.differentiate(z, [a], head)
    rng = np.random.default_rng(2)
    feeds = {
        t: rng.standard_normal(t.shape).astype("f") for t in topological_order([plain[0]]) if not t.inputs
    }
    np.testing.assert_allclose(*(values(r, feeds)[0] for r in (passed, plain)), rtol=1e-6)


def test_bad_overrides() -> None:
    a, _, y, z = chain()
    head = x(3, 5, name="H")

    def of(given):
        return lambda: te.differentiate(z, [a], head, override=given)

    with pytest.raises(te.DifferentiationError, match="returned 0 adjoints for 1 dependencies"):
        of({z: ([y], lambda out, inputs, head: [])})()
    with pytest.raises(te.ShapeError, match=r"override of Z.*for Y.*\(3, 4\).*\(3, 5\)"):
        of({z: ([y], lambda out, inputs, head: [x(3, 4)])})()
    with pytest.raises(te.DtypeError, match="override of Z"):
        of({z: ([y], lambda out, inputs, head: [te.placeholder((3, 5), "int32")])})()
    with pytest.raises(te.DifferentiationError, match="cycle"):
        of({y: ([z], lambda out, inputs, head: [head])})()
    with pytest.raises(te.DifferentiationError, match="cycle"):
        of({z: ([z], lambda out, inputs, head: [head])})()
    with pytest.raises(te.DifferentiationError, match=r"\(dependencies, fn\)"):
        of({z: [y]})()
    with pytest.raises(te.DifferentiationError, match="no Tensor"):
        of({z: (["Y"], lambda out, inputs, head: [head])})()


@pytest.mark.parametrize(
    ("head", "error", "message"),
    [
        (te.placeholder((5, 3), name="H"), te.ShapeError, r"head H.*\(5, 3\).*\(3, 5\)"),
        (te.placeholder((5,), name="H"), te.ShapeError, r"head H"),
        (te.placeholder((3, 5), "float16", name="H"), te.DtypeError, "cast"),
        (np.ones((3, 5)), te.DifferentiationError, "te.placeholder"),
    ],
)
def test_bad_heads(head, error, message) -> None:
    a, _, y, _ = chain()
    with pytest.raises(error, match=message):
        te.differentiate(y, [a], head)


def test_what_has_no_derivative() -> None:
    a = te.placeholder((3,), "int32", "I")
    y = te.compute((3,), lambda i: a[i] * 2, "Y")
    with pytest.raises(te.DtypeError, match="Y has dtype int32"):
        te.differentiate(y, [a])
    z = te.compute((3,), lambda i: te.cast(a[i], "float32") * 2, "Z")
    (da,) = te.differentiate(z, [a], x(3, name="H"))
    assert not np.any(te.interpret(da, {}))
    missing = te.jacobian(te.compute((3,), lambda i: z[i] * 2, "W"), x(2, name="B"))
    assert missing.shape == (3, 2) and not np.any(te.interpret(missing, {}))
    with pytest.raises(te.DifferentiationError, match="W does not read I itself"):
        te.jacobian(te.compute((3,), lambda i: z[i] * 2, "W"), a, optimize=False)
    with pytest.raises(te.DifferentiationError, match=r"te\.grad"):
        te.differentiate(lambda v: v, [a])


def test_the_guard_travels_with_the_adjoint() -> None:
    """No NaN where the value has none, also when the guarded part is a tensor of its own."""
    a = x(4)
    root = te.compute((4,), lambda i: te.sqrt(a[i]), "root")
    inverse = te.compute((4,), lambda i: 1 / root[i], "inverse")
    y = te.compute((4,), lambda i: te.select(a[i] > 0, inverse[i], 0.0), "Y")
    head = x(4, name="H")
    (da,) = te.differentiate(y, [a], head)
    feeds = {a: np.float32([0, 1, 4, 0]), head: np.ones(4, "f")}
    (got,) = values([da], feeds)
    np.testing.assert_allclose(got, [0, -0.5, -0.0625, 0])
    np.testing.assert_allclose(np.asarray(te.evaluate(da, feeds)), [0, -0.5, -0.0625, 0])


def test_the_guard_travels_through_several_tensors() -> None:
    a = x(4)
    shifted = te.compute((4,), lambda i: a[i] - 1, "shifted")
    log = te.compute((4,), lambda i: te.log(shifted[i]), "log")
    doubled = te.compute((4,), lambda i: log[i] * 2, "doubled")
    both = te.compute((4,), lambda i: doubled[i] + 1, "both")
    y = te.compute((4,), lambda i: te.where(a[i] > 1, both[i], 0.0), "Y")
    head = x(4, name="H")
    (da,) = te.differentiate(y, [a], head)
    feeds = {a: np.float32([1, 2, 5, 0]), head: np.ones(4, "f")}
    np.testing.assert_allclose(values([da], feeds)[0], [0, 2, 0.5, 0])
    np.testing.assert_allclose(np.asarray(te.evaluate(da, feeds)), [0, 2, 0.5, 0])


def test_a_guard_behind_a_sum_travels_too() -> None:
    a, k = x(4), te.reduce_axis((0, 3), "k")
    root = te.compute((4,), lambda i: te.sqrt(a[i]), "root")
    y = te.compute((2,), lambda n: te.sum(te.select(a[n + k] > 0, root[n + k], 0.0), k), "Y")
    head = x(2, name="H")
    (da,) = te.differentiate(y, [a], head)
    feeds = {a: np.float32([0, 1, 4, 0]), head: np.ones(2, "f")}
    np.testing.assert_allclose(values([da], feeds)[0], [0, 1, 0.5, 0])
    np.testing.assert_allclose(np.asarray(te.evaluate(da, feeds)), [0, 1, 0.5, 0])


def test_nan_among_the_elements_of_a_maximum() -> None:
    """As ``jax.grad`` of ``jnp.max``: every element receives NaN."""
    a, k = x(3), te.reduce_axis((0, 3), "k")
    (da,) = te.differentiate(te.compute((), lambda: te.max(a[k], k), "Y"), [a], x(name="H"))
    feeds = {t: np.float32(1) for t in topological_order([da]) if t.name == "H"} | {
        a: np.float32([1, np.nan, 2])
    }
    assert np.all(np.isnan(te.interpret(da, feeds)))


@pytest.mark.parametrize(
    ("ties", "expected"),
    [("even", [0.5, 0, 0.5]), ("first", [1, 0, 0]), ("last", [0, 0, 1]), ("all", [1, 0, 1])],
)
def test_rules_for_ties(ties: str, expected: list[float]) -> None:
    a, k, head = x(3), te.reduce_axis((0, 3), "k"), x(name="H")
    y = te.compute((), lambda: te.max(a[k], k, ties=ties), "Y")
    (da,) = te.differentiate(y, [a], head)
    feeds = {a: np.float32([2, 1, 2]), head: np.float32(1)}
    np.testing.assert_allclose(te.interpret(da, feeds), expected)
    np.testing.assert_allclose(np.asarray(te.evaluate(da, feeds)), expected)


def test_symbolic_sizes_are_differentiated_once() -> None:
    n = te.var("n")
    a, w, k = te.placeholder((n,), name="A"), x(3, name="W"), te.reduce_axis((0, 3), "k")
    y = te.compute((n - 2,), lambda t: te.sum(a[t + k] * w[k], axis=k), "Y")
    head = te.placeholder((n - 2,), name="H")
    da, dw = te.differentiate(y, [a, w], head)
    for size in (3, 8):
        rng = np.random.default_rng(size)
        feeds = {a: rng.standard_normal(size), w: rng.standard_normal(3), head: rng.standard_normal(size - 2)}
        feeds = {t: v.astype("f") for t, v in feeds.items()}
        got_a, got_w = values([da, dw], feeds)
        np.testing.assert_allclose(got_a, np.convolve(feeds[head], feeds[w]), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got_w, np.correlate(feeds[a], feeds[head], "valid"), rtol=1e-5, atol=1e-6)
        for tensor, expected in ((da, got_a), (dw, got_w)):
            used = {t: v for t, v in feeds.items() if among(t, topological_order([tensor]))}
            np.testing.assert_allclose(np.asarray(te.evaluate(tensor, used)), expected, rtol=1e-5, atol=1e-6)


def test_long_chains_need_no_recursion() -> None:
    a = x(3)
    y: te.Tensor = a
    for _ in range(2000):
        previous = y
        y = te.compute((3,), lambda i, t=previous: te.sin(t[i]), "T")
    da = te.differentiate(y, None, x(3, name="H")).adjoints[a]
    assert len(topological_order([da])) >= 4000
    (of_a_loop,) = te.differentiate(y, [a], x(3, name="H"))
    assert len(topological_order([of_a_loop])) < 20
