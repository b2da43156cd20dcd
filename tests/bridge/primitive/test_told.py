"""What costs many times what it has to is said: by a warning, in te.explain, and by an error before 100 GB are asked for."""

from __future__ import annotations

import _thread
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.bridge.compiled.compile import Graph
from jaxte.bridge.price.amounts import seconds
from jaxte.bridge.price.programs import Beside, amounts_of, beside_transpose
from jaxte.bridge.primitive import program as programs
from jaxte.bridge.primitive.primitive import linearized
from jaxte.bridge.primitive.told import told
from jaxte.lower.code.choice import Choice, Verdict
from jaxte.lower.code.vocabulary import Program
from jaxte.lower.cost.paces import CPU_PACES
from jaxte.lower.cost.platforms import platform_of
from jaxte.lower.program.plan import lower
from jaxte.lower.program.remedies import IN_TILES
from tests.single_operations import run_by_xla

F32 = np.dtype("float32")
CPU = platform_of("cpu")


def close_pairs(n: int) -> tuple[list[te.Tensor], te.Tensor]:
    """A sum over pairs that are equal by data: a comparison of each with each."""
    a, b, x = (
        te.placeholder((n,), "int32", "a"),
        te.placeholder((n,), "int32", "b"),
        te.placeholder((n,), name="x"),
    )
    j = te.reduce_axis((0, n), "j")
    near = lambda i: te.abs(a[i] - b[j]) < 2  # noqa: E731
    return [a, b, x], te.compute((n,), lambda i: te.sum(x[j], axis=j, where=near(i)), "near")


def band(n: int) -> tuple[list[te.Tensor], te.Tensor]:
    """Columns near the diagonal by a condition that no form takes apart: a mask over n x n."""
    x = te.placeholder((n, n), name="x")
    j = te.reduce_axis((0, n), "j")
    inside = lambda i: te.abs((i * 7) % n - j) < 2  # noqa: E731
    return [x], te.compute((n,), lambda i: te.sum(te.exp(x[i, j]), axis=j, where=inside(i)), "band")


def test_a_dense_form_is_warned_of_once() -> None:
    inputs, y = band(1200)
    program = lower("forward", inputs, [y])
    (choice,) = program.choices
    assert choice.verdict is not None and choice.verdict.is_dense
    with pytest.warns(
        te.PerformanceWarning, match=r"band .* is dense over 1,200 x 1,200, \d+ times the points"
    ):
        told("f", program, CPU)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told("f", program, CPU)


@pytest.mark.parametrize(("n", "prices"), [(1201, Beside(1e-3, 2e-3)), (1202, Beside(2e-3, 1e-3))])
def test_a_backward_pass_is_told_of_where_jax_is_ahead(n: int, prices: Beside) -> None:
    inputs, y = band(n)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        told("f", lower("forward", inputs, [y]), CPU, beside=lambda: prices)
    assert len(found) == (not prices.is_ahead)
    assert all(
        "take 2 ms by estimate, with JAX's transpose of the same forward pass 1 ms" in str(w.message)
        for w in found
    )


def test_rows_added_up_by_products_on_a_tpu_are_not_told_of() -> None:
    """There one-hot products are weighed against a scatter, and no prices say what plain JAX takes; what has no other form is."""
    table, at = np.ones((1000, 64), "float32"), np.arange(1024, dtype="int32") % 1000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = te.function(lambda t, at: te.compute((1024, 64), lambda i, j: t[at[i], j], "y"), platform="tpu")
        jax.vjp(lambda t: f(t, at), table)[1](np.ones((1024, 64), "float32"))
    assert "one-hot product" in str(te.explain(f, table, at))

    inputs, y = band(1203)
    with pytest.warns(te.PerformanceWarning, match="is dense over 1,203 x 1,203"):
        te.function(inputs, y, platform="tpu")(np.ones((1203, 1203), "float32"))


def stencils() -> tuple[te.Tensor, te.Tensor]:
    """What is given, and three stencils one after the other."""
    u = te.placeholder((256, 256), name="u")
    w = u
    for _ in range(3):
        at = lambda i, j, w=w: w[(i + 1) % 256, j] + w[(i - 1) % 256, j] + w[i, (j + 1) % 256] - 3 * w[i, j]  # noqa: E731
        w = te.compute((256, 256), at, "w")
    return u, w


def test_stencils_after_stencils_are_ahead_of_their_transposes() -> None:
    u, w = stencils()
    back = linearized(Graph("f", (u,), (w,), (0,)).program, (0,))
    found = back.saving, back.backward((0,), (0,))
    assert found[1] is not None
    prices = beside_transpose((found[0], found[0].inputs, ((0,), (0,))), (found[1], found[1].inputs), "cpu")
    assert prices is not None and prices.is_ahead
    assert (
        beside_transpose((found[0], found[0].inputs, ((0,), (0,))), (found[1], found[1].inputs), "gpu")
        is None
    )


def dilated(n: int) -> tuple[list[te.Tensor], te.Tensor]:
    """A long erosion, which plain JAX computes from all windows."""
    x, w = te.placeholder((8, n), name="x"), te.placeholder((100,), name="w")
    k = te.reduce_axis((0, 100), "k")
    return [x, w], te.compute((8, n - 99), lambda b, t: te.min(x[b, t + k] - w[k], axis=k), "eroded")


def test_a_forward_pass_is_set_beside_whole_arrays() -> None:
    """A mask over everything takes no less than plain JAX's, slices one after the other take far less than all windows do."""
    prices = {}
    for build in (band, dilated):
        inputs, y = build(1203)
        program = Graph("f", tuple(inputs), (y,), ()).program
        prices[build] = program.beside_jax(lower("forward", inputs, [y]))
    masked, windows = prices[band], prices[dilated]
    assert masked is not None and not masked.is_ahead
    assert "from whole arrays, as plain JAX does, " in str(masked)
    assert windows is not None and windows.is_ahead and windows.plain > 2 * windows.own


def test_prices_are_asked_once_for_all_that_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    (inputs, y), (others, z) = band(1204), band(1205)
    asked = list[str]()
    monkeypatch.setattr(programs.Program, "beside_jax", lambda self, made, is_own: asked.append(self.name))
    with pytest.warns(te.PerformanceWarning) as found:
        assert Graph("f", (*inputs, *others), (y, z), ()).program.lowered.choices
    assert (len(found), asked) == (2, ["forward"])


def test_emitted_code_is_run_once_for_its_price_and_for_that_of_its_transpose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    u, w = stencils()
    back = linearized(Graph("f", (u,), (w,), (0,)).program, (0,))
    emitted, run = programs.Program._emitted, list[str]()

    def counted(self: programs.Program, *arrays: Any) -> list[Any]:
        run.append(self.name)
        return emitted(self, *arrays)

    monkeypatch.setattr(programs.Program, "_emitted", counted)
    backward = back.backward((0,), (0,))
    assert backward is not None and backward.beside_jax(backward.lowered) is not None
    assert run == ["forward"]  # which has no residuals


def test_the_warning_of_a_function_says_what_it_takes() -> None:
    inputs, y = band(1204)
    with pytest.warns(te.PerformanceWarning, match=r"it takes .* ms by estimate, from whole arrays"):
        te.function(inputs, y)(np.ones((1204, 1204), "float32"))


def test_the_report_opens_with_it() -> None:
    inputs, y = band(1300)
    fn = te.function(inputs, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", te.PerformanceWarning)
        report = fn.explain(jax.ShapeDtypeStruct((1300, 1300), F32))
    text = str(report)
    assert "band: dense" in text.splitlines()[1] and "% 1300" in text.splitlines()[1]
    assert "no scatter" not in text and report.verdicts["band"].counting < 10 * 1300


def dense(where: Callable[..., te.Expr], reduced: str, extents: dict[str, int]) -> str:
    """The verdict on a reduction over 1200 x 1200 under a condition that no form takes apart."""
    n = 1200
    x = te.placeholder((n, n), name="x")
    axes = [te.reduce_axis((0, e), a) for a, e in extents.items()]
    reduce = getattr(te, reduced)
    y = te.compute(
        (n,), lambda i: reduce(te.exp(x[i, axes[0]] + len(axes)), axis=axes, where=where(i, *axes)), "y"
    )
    (choice,) = lower("forward", [x], [y]).choices
    assert choice.verdict is not None and choice.verdict.is_dense
    return str(choice.verdict)


DENSE: dict[str, tuple[Callable[..., te.Expr], str, dict[str, int], str, str]] = {
    "near": (
        *(lambda i, j: te.abs((i * 7) % 1200 - j) < 2, "sum", {"j": 1200}),
        *("where abs(i * 7 % 1200 - j) < 2", "j = i * 7 % 1200 + d"),
    ),
    "comb": (
        *(lambda i, j: (i - j) % 64 == 0, "sum", {"j": 1200}),
        *("where (i - j) % 64 == 0", "j = i % 64 + 64 * q: a reduction over q"),
    ),
    "window": (
        *(lambda i, j: ((3 * i) % 1200 <= j) & (j < (3 * i) % 1200 + 4), "max", {"j": 1200}),
        *("where 3 * i % 1200 <= j", "j = 3 * i % 1200 + d"),
    ),
    "block": (
        *(lambda i, j: j // 8 == (i * 5) % 150, "prod", {"j": 1200}),
        *("where j // 8 == i * 5 % 150", "j = 8 * (i * 5 % 150) + r: a reduction over r below 8"),
    ),
    "held": (
        *(lambda i, j: te.minimum(i, 600) == j, "max", {"j": 1200}),
        *("where minimum(i, 600) == j", "reads at minimum(i, 600) in place of j"),
    ),
    "slanted": (
        *(lambda i, j: te.abs(2 * i - 3 * j) < 6, "max", {"j": 1200}),
        *("where abs(2 * i - 3 * j) < 6", "j = (2 * i) // 3 + d"),
    ),
    "not the first": (
        *(lambda i, j: (i + j != 5) & (i <= j + 900) & (te.abs((i * 7) % 1200 - j) < 2), "max", {"j": 1200}),
        *("where abs(i * 7 % 1200 - j) < 2", "j = i * 7 % 1200 + d"),
    ),
    "two axes": (
        *(lambda i, j, k: (i + 5 * j) % 1200 == k, "sum", {"j": 1200, "k": 4}),
        *("where (i + 5 * j) % 1200 == k", "reads at (i + 5 * j) % 1200 in place of k"),
    ),
}


@pytest.mark.parametrize("name", DENSE)
def test_what_is_dense_names_the_condition_and_another_spelling(name: str) -> None:
    where, reduced, extents, cause, remedy = DENSE[name]
    told_of = dense(where, reduced, extents)
    assert told_of.startswith("dense over 1,200 x 1,200") and " flops beside " in told_of
    assert f"; {cause}; what would help: {remedy}" in told_of


def test_the_other_spelling_helps() -> None:
    x, q = te.placeholder((1200, 1200), name="x"), te.reduce_axis((0, 19), "q")
    at = lambda i: i % 64 + 64 * q  # noqa: E731
    y = te.compute((1200,), lambda i: te.sum(te.exp(x[i, at(i)]), axis=q, where=at(i) < 1200), "y")
    (choice,) = lower("forward", [x], [y]).choices
    assert choice.verdict is not None and choice.verdict.computed < 30_000


def test_names_are_those_of_the_source_and_steps_are_told_once() -> None:
    n = 16
    x = u = te.placeholder((n, n), name="u")
    for _ in range(5):
        u = te.compute((n, n), lambda i, j, u=u: u[i, j] + te.sin(u[(i + 1) % n, j]), "u")
    fn = te.function([x], u)
    report = fn.explain(jax.ShapeDtypeStruct((n, n), F32))
    (line,) = (line for line in str(report).splitlines() if "u_1 ... u_5" in line)
    assert line.endswith("  x 5")
    source = fn.source(jax.ShapeDtypeStruct((n, n), F32))
    for part in ("forward", "backward"):
        assert report.targets[part] and all(f"    {name} = " in source for name in report.targets[part])


def test_small_and_ordinary_definitions_are_not_told_of() -> None:
    inputs, y = close_pairs(50)
    x, w = te.placeholder((2, 12, 12, 4), name="x"), te.placeholder((3, 3, 4, 8), name="w")
    k, m, c = (te.reduce_axis((0, e), n) for e, n in ((3, "k"), (3, "m"), (4, "c")))
    conv = te.compute(
        (2, 10, 10, 8),
        lambda b, i, j, o: te.sum(x[b, i + k, j + m, c] * w[k, m, c, o], axis=(k, m, c)),
        "conv",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given, tensor in ((inputs, y), ([x, w], conv)):
            assert "what its definition asks for" in str(te.explain(tensor)).splitlines()[1]
            told("f", lower("forward", given, [tensor]), CPU)


def test_a_hundred_gigabytes_are_refused_by_name() -> None:
    x = te.placeholder((200_000,), name="x")
    distance = te.compute((200_000, 200_000), lambda i, j: te.exp(-((x[i] - x[j]) ** 2)), "distance")
    with pytest.raises(MemoryError, match=r"distance needs an array of 160,000,000,000 bytes"):
        lower("forward", [x], [distance])
    with pytest.raises(te.JaxteError, match="max_memory"):
        lower("forward", [x], [distance])


def test_what_is_dense_in_tiles_is_told_too() -> None:
    """Large enough to be computed block by block, in which a mask leaves out as much as it would in whole."""
    n = 1200
    x = te.placeholder((n, n), name="x")
    j, k = te.reduce_axis((0, n), "j"), te.reduce_axis((0, 4), "k")
    few, most = (
        te.compute((n,), lambda i, own=own: te.sum(te.exp(x[i, j]), axis=(j, k), where=own(i)), "y")
        for own in (lambda i: (i + 5 * j) % n == k, lambda i: (i + 5 * j) % n != k)
    )
    (choice,), (other,) = (lower("forward", [x], [y]).choices for y in (few, most))
    assert choice.form.startswith("tiles of") and other.form.startswith("tiles of")
    assert choice.verdict is not None and choice.verdict.is_dense and choice.verdict.over == (n, n, 4)
    assert other.verdict is None


def test_a_warning_points_to_the_line_of_the_user() -> None:
    """Neither into jaxte nor into JAX, whichever way the function is asked for."""
    ways: list[Callable[[Any, Any], Any]] = [
        lambda fn, x: fn(x),
        lambda fn, x: jax.jit(lambda x: fn(x) * 2)(x),
        lambda fn, x: jax.grad(lambda x: jnp.sum(fn(x)))(x),
        lambda fn, x: te.vjp(fn, x),
        lambda fn, x: te.source(fn, x),
    ]
    for n, way in enumerate(ways, 1400):
        with run_by_xla(), pytest.warns(te.PerformanceWarning, match="band .* is dense") as caught:
            inputs, y = band(n)
            way(te.function(inputs, y), jnp.ones((n, n), F32))
        assert {(w.filename, w.lineno) for w in caught} == {(__file__, way.__code__.co_firstlineno)}


def test_a_warning_points_to_the_line_of_a_script() -> None:
    """Whose frame is the outermost one."""
    fn, done = te.function(*band(1500)), _thread.allocate_lock()

    def script() -> None:
        te.source(fn, jax.ShapeDtypeStruct((1500, 1500), F32))
        done.release()

    with pytest.warns(te.PerformanceWarning, match="band .* is dense") as caught:
        done.acquire()
        _thread.start_new_thread(script, ())
        done.acquire()
    assert {w.filename for w in caught} == {__file__}


def test_what_plain_jax_holds_too_is_not_told_of() -> None:
    """All pairs of an exponential, which XLA writes before it sums them: no budget makes that faster."""
    n = 1700
    t, j = te.placeholder((n,), name="t"), te.reduce_axis((0, n), "j")
    later = te.compute((n,), lambda i: te.sum(te.exp(-1.5 * (t[i] - t[j])), axis=j, where=j < i), "later")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told("f", lower("forward", [t], [later]), CPU)
    assert "max_memory" not in str(te.explain(later))


def test_places_of_maxima_are_called_after_what_is_differentiated() -> None:
    x, s = te.placeholder((4, 192, 192), name="x"), te.placeholder((5, 5), name="s")
    k, q = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "q")
    y = te.compute(
        (4, 188, 188), lambda b, i, j: te.max(x[b, i + k, j + q] * s[q, k] + s[k, q], axis=(k, q)), "dilated"
    )
    adjoints = te.differentiate(y, [x], head=te.placeholder(y.shape, name="H"))
    with pytest.warns(
        te.PerformanceWarning, match=r"what the gradient of dilated needs \(reduce\)"
    ) as caught:
        te.source(list(adjoints))
    assert not any("places_" in str(w.message) for w in caught)


def _no_plan(budget: int) -> Program:
    raise te.LoweringError("no plan")


def test_a_budget_is_advised_where_it_was_tried_and_helps() -> None:
    x = te.placeholder((4,), name="x")
    program = lower("forward", [x], [te.compute((4,), lambda i: x[i] * 2, "y")])

    def warned(held: int, within: Callable[[int], Program] | None) -> str:
        verdict = Verdict("y_part", (100, 100), 10**4, 1, 1, held, 10**4, remedy=IN_TILES)
        own = Choice("y_part", "sum", verdict=verdict, part_of="y")
        with pytest.warns(te.PerformanceWarning, match=r"f: y \(sum\) is ") as caught:
            (choice,) = told("f", replace(program, choices=(own,)), CPU, within).choices
        assert choice.verdict is not None and str(choice.verdict) in str(caught[0].message)
        return str(caught[0].message)  # which te.explain shows too

    tried: list[int] = []

    def in_tiles(budget: int) -> Program:
        tried.append(budget)
        return replace(program, choices=(Choice("y_part", "sum", tiles=lambda: pytest.fail("not asked")),))

    assert "max_memory=2**22" in warned(2**24, in_tiles) and tried == [2**22]
    for held, within in ((2**24 + 1, None), (2**24 + 2, lambda budget: program), (2**24 + 3, _no_plan)):
        assert "what would help" not in warned(held, within)


# --- estimates of plain JAX


def attention(q, k, v):
    i, m, c = te.reduce_axis((0, 64), "i"), te.reduce_axis((0, 64), "m"), te.reduce_axis((0, 16), "c")
    scores = te.compute((64, 64), lambda i, j: te.sum(q[i, c] * k[j, c], axis=c), "scores")
    out = te.compute((64, 16), lambda i, d: te.sum(te.softmax(scores[i, m], axis=m) * v[m, d], axis=m), "out")
    return te.compute((16,), lambda d: te.sum(te.tanh(out[i, d]), axis=i))


def attention_jax(q, k, v):
    return jnp.sum(jnp.tanh(jax.nn.softmax(q @ k.T, -1) @ v), 0)


def layers(x, v, w):
    c, d = te.reduce_axis((0, 16), "c"), te.reduce_axis((0, 16), "d")
    h = te.compute((64, 16), lambda i, j: te.tanh(te.sum(x[i, c] * v[j, c], axis=c)), "h")
    return te.compute((64, 64), lambda i, j: te.exp(te.sum(h[i, d] * w[j, d], axis=d)), "y")


def layers_jax(x, v, w):
    return jnp.exp(jnp.tanh(x @ v[:16].T) @ w.T)


def smoothed(x, v, w):
    """A loop that is handed rows."""
    return te.recurrence((64, 16), lambda h, t, i: te.tanh(0.5 * h[t - 1, i] + x[t, i] * v[t, i]), init=0.0)


def smoothed_jax(x, v, w):
    def step(h, row):
        h = jnp.tanh(0.5 * h + row[0] * row[1])
        return h, h

    return jax.lax.scan(step, jnp.zeros(16), (x, v))[1]


@pytest.mark.parametrize(
    ("own", "other"), [(attention, attention_jax), (layers, layers_jax), (smoothed, smoothed_jax)]
)
def test_plain_jax_is_estimated_as_one_pass_of_what_is_differentiated(own: Any, other: Any) -> None:
    """Of the results alone, not of what is kept beside them; and a loop hands back rows where it is handed rows."""
    args = [np.ones((64, 16), "float32")] * 3
    prices = te.explain(te.function(own), *args).prices
    assert prices is not None
    count = 2 if own is smoothed else 3

    def both(*args: Any) -> Any:
        return jax.value_and_grad(lambda *a: other(*a).sum(), tuple(range(count)))(*args)

    alone = seconds(amounts_of(jax.make_jaxpr(both)(*args)), CPU_PACES)
    assert 0.7 < prices.plain / alone < 1.4
    assert str(prices) in str(te.explain(te.function(own), *args))
