"""What a step of a loop consists of: nothing that asks whether it is the first, nothing computed twice, and no more handed on than what is read."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jaxte as te
from npbench.applications import cavity_flow, channel_flow, nbody
from npbench.kernels import fdtd_2d
from tests.loops.agreement import assert_nodes_agree

N = 24  # so large that an array is worth a call


@pytest.fixture(scope="module")
def cavity() -> str:
    u, v, p = (np.ones((N, N), "float32") for _ in range(3))
    return str(te.source(te.loops(cavity_flow), 3, 5, u, v, 0.01, 0.1, 0.1, p, 1.0, 0.1))


def test_edges_that_are_written_behind_the_inside_are_handed_on_with_it(cavity: str) -> None:
    """The first iteration reads what the loop begins with, and no step chooses between the two."""
    forward = cavity.split("def backward")[0].split("def forward_with_residuals")[1]
    inner = forward.split("_step(before_1")[1].split("return (")[0]
    assert "dynamic_update_slice" in inner
    assert not re.search(r"\bn - 1\b|\bq == 0|\bq - 1\b", inner)
    step = forward[forward.index("def u_last_step") : forward.index("lax.scan")]
    assert step.count("n - 1 >= 0") == 1  # what the sweeps of a time step begin with


def test_an_adjoint_of_many_choices_is_computed_once_in_a_step(cavity: str) -> None:
    backward = cavity.split("def backward")[1]
    inner = backward[: backward.index("reverse=True")].rsplit("_step(", 1)[1]
    assert inner.count("_apart(") == 1


def test_what_a_loop_adds_in_one_step_is_made_before_it(cavity: str) -> None:
    """What flows into the last sweep of a time step alone is one array; and what all sweeps pass on to their source is added up in them."""
    backward = cavity.split("def backward")[1]
    inner, after = backward.split("reverse=True", 1)[0].rsplit("_step(", 1)[1].split("return (")
    assert (
        inner.count("== 4") == inner.count("jnp.where(q == 4, dp_at") == 4
    )  # of the field, and of the three edges of it
    assert not re.search(r"\bd[uv]_", inner)
    assert "), None" in after


def relaxed(u, b):
    """A field that sweeps move, and that moves what they begin with in the next step."""
    p = np.zeros(len(u))
    for _t in range(3):
        for _q in range(24):
            y = p.copy()
            p[1:-1] = 0.5 * (y[:-2] + y[2:]) - b[1:-1] * np.sin(u[1:-1])
        u[1:-1] = u[1:-1] + 0.1 * u[1:-1] * (p[2:] - p[:-2])
    return u, p


@pytest.mark.usefixtures("x64")
def test_one_step_adds_to_a_field_of_any_size() -> None:
    own, size = te.loops(relaxed), export.symbolic_shape("m", constraints=["m >= 3"])[0]

    def plain(u, b):
        p = jnp.zeros(u.shape, u.dtype)
        for _t in range(3):
            for _q in range(24):
                p = p.at[1:-1].set(0.5 * (p[:-2] + p[2:]) - b[1:-1] * jnp.sin(u[1:-1]))
            u = u.at[1:-1].add(0.1 * u[1:-1] * (p[2:] - p[:-2]))
        return u, p

    def gradient(f):
        return jax.jit(jax.grad(lambda u, b: sum((own**2).sum() for own in f(u, b)), (0, 1)))

    shape = jax.ShapeDtypeStruct((size,), "float64")
    called = export.export(gradient(own))(shape, shape).call
    for n in (5, 9):
        args = [np.random.default_rng(k).normal(size=n) for k in range(2)]
        for found, expected in zip(called(*args), gradient(plain)(*args), strict=True):
            np.testing.assert_allclose(found, expected, 1e-10, 1e-12)
    source = str(te.source(own, *(np.ones(64) for _ in range(2)))).split("def backward")[1]
    assert source.count("q == 23") == 1


def test_an_outer_loop_hands_on_one_position_of_an_inner_one(cavity: str) -> None:
    """Of the adjoints of all sweeps, the first of a time step is read by the one before."""
    loops = re.findall(r"lax\.scan\(\w+, \(.*", cavity.split("def backward")[1])
    assert loops and not any(f"jnp.zeros((5, {N}, {N})" in own for own in loops)


def test_a_force_at_both_ends_of_a_step_is_computed_once() -> None:
    mass, pos, vel = np.ones(5, "float32"), np.ones((5, 3), "float32"), np.ones((5, 3), "float32")
    source = str(te.source(te.loops(nbody), mass, pos, vel, 6, 0.1, 1.0, 0.3))
    step = source.split("_step(before, t)")[1].split("return (")[0]
    assert step.count("rsqrt(") == 3  # of each coordinate


def test_a_loop_stacks_the_row_that_is_read_of_its_array() -> None:
    """The gradient of one number in each step, which a row of a field is set to."""
    fields = (np.ones((9, 8), "float32") for _ in range(3))
    backward = str(te.source(te.loops(fdtd_2d), 5, *fields, np.ones(5, "float32"))).split("def backward")[1]
    row, stacked = re.search(r"\n +(\w+) = \w+\[0\]\n +return \(.*\), (\w+)\n", backward).groups()
    assert row == stacked


def test_an_addition_right_behind_a_write_is_part_of_it() -> None:
    """So the whole array is written in place, and the adjoint is one recurrence of one array."""
    u, p = (np.ones((8, 8), "float32") for _ in range(2))
    source = str(te.source(te.loops(channel_flow), 6, u, p, 0.01, 0.3, 1.0))
    forward, backward = source.split("def backward")
    step = forward[forward.index("def u_last_step") : forward.index("lax.scan")]
    assert "dynamic_update_slice" in step and "n - 1" not in step
    assert "jnp.where(" not in forward.rsplit("lax.scan(", 1)[1]  # the result is what is handed on
    (loop,) = re.findall(r"lax\.scan\(.*", backward)
    assert (
        "(du_last_step, (du_init[0], jnp.zeros((8, 8), jnp.float32))," in loop
    )  # it adds up the gradient of p


def test_a_choice_by_the_first_step_stands_within_others() -> None:
    """What is there before the loop is handed to its first step, though a row is set by data in each; and what is read beside an element, too."""
    fields = (np.ones((9, 8), "float32") for _ in range(3))
    source = str(te.source(te.loops(fdtd_2d), 5, *fields, np.ones(5, "float32")))
    for half in source.split("def backward"):
        step = half.split("_step(")[1].split("lax.scan")[0]
        assert step.count("jnp.where(") == 1 and "t - 1" not in step and "t == " not in step


def scaled(a, x):
    for i in range(a.shape[0]):
        x[i] = a[i] * 2.0
        x[i] *= a[i]
        x[i] += 1.0
    return x


def replaced(a, x):
    """The addition reads what was written one statement before, at another element."""
    for i in range(1, a.shape[0]):
        x[i] = a[i] * 2.0
        x[i] += x[i - 1]
    return x


def guarded(a, x):
    for i in range(a.shape[0]):
        x[i] = a[i]
        if a[i] > 0.0:
            x[i] += a[i] * a[i]
    return x


def bordered(steps, x):
    for _t in range(steps):
        x[1:-1] = 0.5 * (x[:-2] + x[2:]) + 0.1 * x[1:-1] ** 2
        x[0] = x[1]
        x[-1] = -0.5 * x[-2]
    return x


def kicked(steps, x, v):
    f = np.zeros(x.shape)
    for _t in range(steps):
        v += 0.5 * f
        x += v
        for i in range(x.shape[0]):
            f[i] = 0.0
            for j in range(x.shape[0]):
                f[i] += np.sin(x[j] - x[i])
        v += 0.5 * f
    return x, v


def swept(steps, sweeps, x, b):
    for _t in range(steps):
        for _q in range(sweeps):
            y = x.copy()
            x[1:-1] = 0.5 * (y[:-2] + y[2:]) - 0.1 * b[1:-1]
            x[0] = x[1]
            x[-1] = 0.0
        b[1:-1] = b[1:-1] + 0.2 * x[1:-1] * x[2:]
        b[0] = 0.5
        b[-1] = b[-2]
    return x, b


ONE = (np.linspace(-1.0, 2.0, 6), np.linspace(0.5, 1.0, 6))
PROGRAMS = {
    "scaled": (scaled, ONE),
    "replaced": (replaced, ONE),
    "guarded": (guarded, ONE),
    "bordered": (bordered, (4, ONE[0])),
    "kicked": (kicked, (3, *ONE)),
    "swept": (swept, (3, 2, *ONE)),
    "swept_often": (swept, (2, 3, *ONE)),
    "swept_once": (swept, (2, 1, *ONE)),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_numpy_and_with_differences(name: str) -> None:
    fn, args = PROGRAMS[name]
    assert_nodes_agree(fn, [a.copy() if isinstance(a, np.ndarray) else a for a in args])


def rings(data, radius, count):
    res = np.zeros(count)
    for i in range(count):
        for k in range(len(data)):
            if i / count <= radius[k] and radius[k] < (i + 1) / count:
                res[i] += data[k]
    return res


def test_sums_of_what_a_test_chooses_hold_no_array_of_all_tests() -> None:
    """Forward in blocks of rings, backward ring by ring: 16 and 8 MB of masks for 640 kB that are read and made."""
    data, radius = (np.random.default_rng(n).uniform(size=40_000).astype("float32") for n in range(2))
    fn = te.loops(rings)

    def plain(data):
        inside = (jnp.arange(100)[:, None] / 100 <= radius) & (radius < (jnp.arange(1, 101) / 100)[:, None])
        return (jnp.where(inside, data, 0.0).sum(1) ** 2).sum()

    own = jax.jit(jax.grad(lambda data: (fn(data, radius, 100) ** 2).sum()))
    np.testing.assert_allclose(own(data), jax.grad(plain)(data), rtol=2e-5)
    held = own.lower(data).compile().memory_analysis().temp_size_in_bytes
    assert held < 2.5e6
    source = str(te.source(fn, data, radius, 100))
    forward, backward = source.split("def backward")
    assert "lax.map(" in forward and "unroll=4" in backward
