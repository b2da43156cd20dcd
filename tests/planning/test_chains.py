"""Steps of a loop in a builder that are alike, as one recurrence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.structure import topological_order
from tests.agreement import interpreted

ROW = "steps in a loop"
Step = Callable[[te.Tensor, te.Tensor, int, te.Axis], te.Expr]


def chain(steps: int, size: int, step: Step) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    x, w = te.placeholder((size,), name="x"), te.placeholder((steps,), name="w")
    h: te.Tensor = x
    for s in range(steps):
        h = te.compute((size,), lambda i, h=h, s=s: step(h, w, s, i), f"h{s + 1}")
    return h, x, w


def arrays(steps: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=size).astype("float32"), rng.uniform(0.5, 1.0, steps).astype("float32")


STEPS: dict[str, Step] = {
    "neighbours": lambda h, w, s, i: te.tanh(h[te.maximum(i - 1, 0)] * 0.5 + h[i]) * w[s],
    "table": lambda h, w, s, i: te.sin(h[i]) + (0.1 + s * s) * w[s],
    "line": lambda h, w, s, i: te.exp(-h[i] * h[i]) + te.cast(i + s, "float32") * w[s],
    "bound": lambda h, w, s, i: te.select(h[i] < s, te.tanh(h[i]) * w[s], h[4 - i]),
    "place": lambda h, w, s, i: te.tanh(h[(i + s) % 5]) * w[15 - s],
}


@pytest.mark.parametrize("name", STEPS)
def test_equal_steps_are_one_scan_and_are_right(name: str) -> None:
    y, x, w = chain(16, 5, STEPS[name])
    text = te.source(y)
    assert text.count("lax.scan") == 1
    assert "h7" not in text
    head = te.placeholder((5,), name="H")
    given_x, given_w = arrays(16, 5)
    feeds: dict[te.Tensor, Any] = {x: given_x, w: given_w, head: np.ones(5, "float32")}
    rolled = te.evaluate([y, *te.differentiate(y, [x, w], head)], feeds)
    plain = te.differentiate(y, None, head).adjoints
    for own, tensor in zip(rolled, (y, plain[x], plain[w]), strict=True):
        np.testing.assert_allclose(own, interpreted(tensor, feeds), rtol=1e-4, atol=1e-5)


def test_adjoints_between_are_derived_when_they_are_asked_for() -> None:
    y, x, _ = chain(16, 5, STEPS["neighbours"])
    result = te.differentiate(y, [x], te.placeholder((5,), name="H"))
    between = next(t for t in result.adjoints if t.name == "h8")
    assert result.adjoints[between].shape == (5,)
    assert len(result) == 1


def test_what_reads_a_step_between_reads_the_loop() -> None:
    def seen(x: Any) -> Any:
        kept, h = [], x
        for s in range(16):
            h = te.compute((4,), lambda i, h=h: te.tanh(h[i]) * 0.9 + h[(i + 1) % 4], f"h{s}")
            kept.append(h)
        return te.compute((4,), lambda i: kept[3][i] * kept[9][3 - i] + h[i], "y")

    rolled, plain = te.function(seen), te.function(seen, without=ROW)
    x = jnp.linspace(-1.0, 1.0, 4)
    assert te.source(rolled, x).count("lax.scan") >= 1
    assert "lax.scan" not in te.source(plain, x)
    np.testing.assert_allclose(rolled(x), plain(x), rtol=1e-5, atol=4e-6)  # sums of terms of up to 5
    np.testing.assert_allclose(jax.jacrev(rolled)(x), jax.jacrev(plain)(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jax.jacfwd(rolled)(x), jax.jacrev(plain)(x), rtol=1e-4, atol=1e-5)


def leapfrog(x: Any, w: Any) -> Any:
    u, v = x, te.compute(x.shape, lambda i: 0.0 * x[i], "v")
    for s in range(14):
        v = te.compute(x.shape, lambda i, u=u, v=v, s=s: v[i] + w[s] * te.sin(u[(i + 1) % 6] - u[i]), f"v{s}")
        u = te.compute(x.shape, lambda i, u=u, v=v: u[i] + 0.3 * v[i], f"u{s}")
    return te.compute(x.shape, lambda i: u[i] + v[i], "y")


def second_order(x: Any, w: Any) -> Any:
    old, u = x, te.compute(x.shape, lambda i: 0.5 * x[i], "u")
    for s in range(14):
        old, u = (
            u,
            te.compute(x.shape, lambda i, u=u, old=old, s=s: te.sin(u[i]) * w[s] - 0.2 * old[i], f"u{s}"),
        )
    return u


def local_sums(x: Any, w: Any) -> Any:
    j, h = te.reduce_axis((0, 6), "j"), x
    for s in range(14):
        m = te.compute((), lambda h=h: te.sum(h[j] * h[j], axis=j), f"m{s}")
        h = te.compute(x.shape, lambda i, h=h, m=m, s=s: te.tanh(h[i] / (1.0 + m[()])) + w[s], f"h{s}")
    return h


def simultaneous(x: Any, w: Any) -> Any:
    p = q = x
    for s in range(14):
        p, q = (
            te.compute(x.shape, lambda i, p=p, q=q, s=s: te.tanh(p[(i + 1) % 6] + q[i]) * w[s], f"p{s}"),
            te.compute(x.shape, lambda i, p=p, q=q: te.cos(q[i]) + p[5 - i], f"q{s}"),
        )
    return te.compute(x.shape, lambda i: p[i] * q[i], "y")


@pytest.mark.parametrize("builder", [leapfrog, second_order, local_sums, simultaneous])
def test_several_tensors_of_a_step(builder: Any) -> None:
    f = te.function(builder)
    given_x, given_w = arrays(14, 6)
    assert te.source(f, given_x, given_w).count("lax.scan") >= 1
    x, w, head = (
        te.placeholder((6,), name="x"),
        te.placeholder((14,), name="w"),
        te.placeholder((6,), name="H"),
    )
    y = builder(x, w)
    feeds = {x: given_x, w: given_w, head: np.ones(6, "float32")}
    plain = te.differentiate(y, None, head).adjoints
    np.testing.assert_allclose(f(given_x, given_w), interpreted(y, feeds), rtol=1e-4, atol=1e-5)

    def loss(*args: Any) -> Any:
        return jnp.sum(f(*args))

    for own, tensor in zip(jax.grad(loss, (0, 1))(given_x, given_w), (x, w), strict=True):
        np.testing.assert_allclose(own, interpreted(plain[tensor], feeds), rtol=1e-3, atol=1e-5)
    one = jax.jacfwd(jax.grad(loss))(given_x, given_w)
    np.testing.assert_allclose(one, jax.jacrev(jax.grad(loss))(given_x, given_w), rtol=1e-3, atol=1e-4)


def test_a_lattice_is_a_loop_over_its_largest_step() -> None:
    x = te.placeholder((49,), name="x")
    value: te.Tensor = x
    for s in range(48):
        value = te.compute((48 - s,), lambda i, v=value: te.maximum(0.5 * (v[i] + v[i + 1]), x[i]), f"v{s}")
    found = te.differentiate(value, [x], te.placeholder((1,), name="H"))
    assert te.source([value, *found]).count("lax.scan") == 2
    feeds = {x: np.random.default_rng(1).normal(size=49).astype("float32")}
    given_y, given_dx = te.evaluate([value, *te.differentiate(value, [x])], feeds)
    np.testing.assert_allclose(given_y, interpreted(value, feeds), rtol=1e-5)
    wanted = interpreted(te.differentiate(value, None).adjoints[x], feeds)
    np.testing.assert_allclose(given_dx, wanted, rtol=1e-4, atol=1e-6)


def test_few_steps_and_large_ones_are_left() -> None:
    y, _, _ = chain(8, 5, STEPS["neighbours"])
    assert "lax.scan" not in te.source(y)
    y, _, _ = chain(16, 4096, STEPS["neighbours"])
    assert "lax.scan" not in te.source(y)
    y, _, _ = chain(16, 4096, STEPS["table"])  # XLA would compute the sines of all steps before again
    assert te.source(y).count("lax.scan") == 1


def test_a_gradient_that_is_given_stays() -> None:
    def builder(x: Any) -> Any:
        h = x
        for s in range(16):
            with te.region() as r:
                y = te.compute(x.shape, lambda i, h=h: te.tanh(h[i]), f"h{s}")

            @te.gradient(r, y, h)
            def by_hand(dy: Any) -> Any:
                return te.compute(x.shape, lambda i: 0.5 * dy[i])

            h = y
        return h

    f = te.function(builder)
    x = jnp.linspace(-1.0, 1.0, 4)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(f(x)))(x), np.full(4, 0.5**16), rtol=1e-5)


@pytest.mark.parametrize(("backend", "loops"), [("cpu", True), ("gpu", False), ("tpu", False)])
def test_what_is_differentiated_by_itself_is_planned_for_the_platform_of_jax(
    backend: str, loops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an accelerator a trip of a loop takes longer than a kernel, in the gradients that te.differentiate gives as in those of te.function."""
    x = te.placeholder((6,), name="x")
    h: te.Tensor = x
    for step in range(16):
        h = te.compute((6,), lambda i, h=h: te.tanh(h[te.maximum(i - 1, 0)] + h[i]), f"h{step}")
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    (dx,) = te.differentiate(h, [x], head=te.placeholder((6,), name="H"))
    assert any(isinstance(t, Recurrent) for t in topological_order([dx])) is loops


def test_a_step_that_is_named_is_left() -> None:
    y, x, w = chain(16, 5, STEPS["neighbours"])
    for own in (te.function((x, w), y, save=["h8"]), te.function((x, w), y, forms={"h8": "elementwise"})):
        assert "lax.scan" not in te.source(own)


def test_the_row_is_explained() -> None:
    y, _, _ = chain(16, 5, STEPS["neighbours"])
    assert ROW in str(te.explain(y))


def test_whole_numbers_and_extents_that_are_on_no_line_are_no_loop() -> None:
    """Rows of weights in an order of their own, and tensors that shrink by one and by two elements in turn."""
    order = np.random.default_rng(1).permutation(16)
    y, x, w = chain(16, 5, lambda h, w, s, i: te.tanh(h[i]) * w[int(order[s])])
    given_x, given_w = arrays(16, 5)
    wanted = given_x
    for row in order:
        wanted = np.tanh(wanted) * given_w[row]
    np.testing.assert_allclose(te.evaluate(y, {x: given_x, w: given_w}), wanted, rtol=1e-5)
    first = h = te.placeholder((40,), name="x")
    size, wanted = 40, np.random.default_rng(2).normal(size=40).astype("float32")
    feeds = {first: wanted}
    for s in range(16):
        size -= 1 + s % 2
        h = te.compute((size,), lambda i, h=h: te.tanh(h[i] + h[i + 1]) * 0.9, f"h{s}")
        wanted = (np.tanh(wanted[:-1] + wanted[1:]) * np.float32(0.9))[:size]
    np.testing.assert_allclose(te.evaluate(h, feeds), wanted, rtol=1e-5)
    assert "lax.scan" not in te.source(y) + te.source(h)


def test_a_step_that_is_another_one_parts_the_loop() -> None:
    x = te.placeholder((5,), name="x")
    h: te.Tensor = x
    for s in range(40):
        step = te.sin if s != 20 else te.cos
        h = te.compute((5,), lambda i, h=h, step=step: step(h[i]) + 0.1 * h[4 - i], f"h{s}")
    assert te.source(h).count("lax.scan") == 2
    feeds = {x: arrays(1, 5)[0]}
    np.testing.assert_allclose(te.evaluate(h, feeds), interpreted(h, feeds), rtol=1e-4, atol=1e-6)


def test_weights_of_each_step_are_left() -> None:
    x = te.placeholder((4,), name="x")
    ws = [te.placeholder((4,), name=f"w{s}") for s in range(16)]
    h: te.Tensor = x
    for s, w in enumerate(ws):
        h = te.compute((4,), lambda i, h=h, w=w: te.tanh(h[i] * w[i]), f"h{s}")
    assert "lax.scan" not in te.source(h)


def test_what_the_first_step_begins_with_is_not_made_of_it() -> None:
    x, j = te.placeholder((4,), name="x"), te.reduce_axis((0, 4), "j")
    g: te.Tensor = x
    h: te.Tensor | None = None
    for s in range(16):
        m = te.compute((), lambda g=g: te.sum(te.sin(g[j]), axis=j), f"m{s}")
        before = h if h is not None else te.compute((4,), lambda i, m=m: x[i] * m[()], "begins")
        h = te.compute((4,), lambda i, b=before, m=m: te.tanh(b[i]) + m[()], f"h{s}")
        g = te.compute((4,), lambda i, g=g, h=h: te.cos(g[i]) * h[3 - i], f"g{s}")
    y = te.compute((4,), lambda i: g[i] + h[i], "y")
    feeds = {x: arrays(1, 4)[0]}
    np.testing.assert_allclose(te.evaluate(y, feeds), interpreted(y, feeds), rtol=1e-2)


def test_a_loop_behind_many_steps_that_are_left_is_written_in_no_time() -> None:
    x = te.placeholder((5,), name="x")
    before: te.Tensor = x
    for s in range(
        40
    ):  # each by another function, so that they stay, and read twice: 2 ** 40 ways lead through them
        before = te.compute(
            (5,), lambda i, b=before, s=s: (te.sin, te.cos)[s % 3 == s % 2](b[i]) + b[4 - i], f"b{s}"
        )
    h = te.recurrence((9, 5), lambda h, t, i: te.tanh(h[t - 1, i]) + before[i] * before[4 - i], init=before)
    y = te.compute((5,), lambda i: h[8, i], "y")
    (dx,) = te.differentiate(y, [x], te.placeholder((5,), name="H"))
    assert te.source([y, dx]).count("lax.scan") == 2


FUNCTIONS = (te.sin, te.tanh, lambda a: te.exp(-a * a))


@settings(max_examples=6, deadline=None)
@given(
    st.integers(12, 17),
    st.integers(1, 6),
    st.integers(0, 2),
    st.integers(-2, 2),
    st.sampled_from([0.0, 0.3]),
    st.integers(1, 2),
    st.booleans(),
)
def test_random_chains(
    steps: int, size: int, function: int, shift: int, grows: float, lags: int, own: bool
) -> None:
    apply = FUNCTIONS[function]
    x, w = te.placeholder((size,), name="x"), te.placeholder((steps + 3,), name="w")
    states: list[te.Tensor] = [x, x]
    for s in range(steps):
        states.append(
            te.compute(
                (size,),
                lambda i, h=tuple(states), s=s: (
                    apply(h[-1][(i + shift) % size]) * w[s + 2]
                    + (0.4 + grows * s) * h[-lags][i]
                    + (w[i % 3] if own else 0.1)
                ),
                f"h{s}",
            )
        )
    y = states[-1] if own else te.compute((size,), lambda i: states[-1][i] * states[7][i], "y")
    head = te.placeholder((size,), name="H")
    rng = np.random.default_rng(steps + size)
    feeds = {
        x: rng.normal(size=size).astype("float32"),
        w: rng.uniform(-0.5, 0.5, steps + 3).astype("float32"),
        head: rng.normal(size=size).astype("float32"),
    }
    found = te.differentiate(y, [x, w], head)
    plain = te.differentiate(y, None, head).adjoints
    values = [np.asarray(v) for v in te.evaluate([y, *found], feeds)]
    for value, tensor in zip(values, (y, plain[x], plain[w]), strict=True):
        wanted = interpreted(tensor, feeds)
        np.testing.assert_allclose(value, wanted, rtol=2e-3, atol=1e-4 * (1 + np.abs(wanted).max()))
