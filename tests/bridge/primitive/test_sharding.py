"""Arrays that eight devices divide among themselves: the values of one device, and the collectives that are needed.

The devices are those of another process; it compiles all cases at once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import jaxte as te
from jaxte.bridge.primitive.placement import alignment
from tests.transformations.functions import ROWS
from tests.xla_flags import OLDER_EMITTERS

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def runs() -> dict[str, dict]:
    env = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count=8 {OLDER_EMITTERS}",
    }
    command = [sys.executable, "-m", "tests.sharded_runs"]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # JAX 0.12 prints where an array was put, too


@pytest.mark.parametrize("mesh", ["Auto", "Explicit"])
@pytest.mark.parametrize("name", ["dense", "pool", "depthwise"])
def test_batches_are_divided_and_weight_gradients_are_one_sum(runs, mesh: str, name: str) -> None:
    forward, jvp = runs[f"{mesh} {name} forward"], runs[f"{mesh} {name} jvp"]
    gradients = runs[f"{mesh} {name} gradients"]
    assert max(r["error"] for r in (forward, jvp, gradients)) < 1e-5
    assert forward["collectives"] == jvp["collectives"] == {}
    assert forward["divided"] == jvp["divided"] == [True]
    weights = name != "pool"
    assert gradients["collectives"] == ({"all-reduce": 1} if weights else {})
    assert gradients["divided"] == ([True, False] if weights else [True])


@pytest.mark.parametrize("mesh", ["Auto", "Explicit"])
@pytest.mark.parametrize("name", ["stencil", "ring"])
@pytest.mark.parametrize("what", ["forward", "gradients", "jvp"])
def test_a_stencil_exchanges_edges_and_nothing_else(runs, mesh: str, name: str, what: str) -> None:
    found = runs[f"{mesh} {name} {what}"]
    assert found["error"] < 1e-5
    assert set(found["collectives"]) == {"collective-permute"}
    assert found["divided"] == [True]


@pytest.mark.parametrize("mesh", ["Auto", "Explicit"])
def test_shifts_of_accelerators_send_a_row_to_each_neighbour(runs, mesh: str) -> None:
    forward, gradients = runs[f"{mesh} shifts forward"], runs[f"{mesh} shifts gradients"]
    assert max(forward["error"], gradients["error"]) < 1e-5
    assert forward["collectives"] == {"collective-permute": 2}
    assert gradients["collectives"] == {"collective-permute": 4}


@pytest.mark.parametrize("mesh", ["Auto", "Explicit"])
def test_a_size_that_the_mesh_does_not_divide(runs, mesh: str) -> None:
    """An argument is JAX's error, which names axis, size and mesh; a result is not divided."""
    found = runs[f"{mesh} indivisible"]
    assert "axis 0 is partitioned 8 times" in found["message"] and "size is 10" in found["message"]
    assert found["result"] == [2 * i + 2 for i in range(14)]
    assert "'d'" not in found["spec"]


def test_an_output_runs_along_the_dimensions_that_its_indices_follow() -> None:
    X, W = te.placeholder((8, 12, 4), name="X"), te.placeholder((3, 4, 6), name="W")
    k, c = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 4), "c")
    Y = te.compute((8, 5, 6), lambda b, t, o: te.sum(X[b, 2 * t + k, c] * W[k, c, o], axis=[k, c]), "Y")
    Z = te.compute((24, 2), lambda i, j: Y[i // 3, j, 5 - (i % 3)], "Z")
    F = te.compute((8, 2, 3), lambda b, t, o: Y[b, t + 1, 2 * o], "F")
    flat = te.compute((2, 3), lambda i, j: X[3 * i + j, 0, 0], "flat")
    assert alignment([Y], [X, W]) == [(((X, 0),), ((X, 1),), ((W, 2),))]
    assert alignment([Z, F, flat], [X, W]) == [
        (((X, 0), (W, 2)), ((X, 1),)),
        (((X, 0),), ((X, 1),), ((W, 2),)),
        (((X, 0),), ()),
    ]


def test_second_derivatives_are_divided_as_the_first_where_more_is_saved() -> None:
    """The gradient of a network saves tensors for its tangent; what it returns beside them keeps its division."""
    mesh = jax.make_mesh((1,), ("d",), devices=jax.devices()[:1])
    row = next(row for row in ROWS if row.name == "network")
    x, *weights = row.arguments()
    x = jax.device_put(x, NamedSharding(mesh, PartitionSpec(None, "d")))
    loss = lambda x: jnp.sum(row.fn(x, *weights)["logits"] ** 2)  # noqa: E731
    with jax.set_mesh(mesh):
        found = jax.eval_shape(jax.jit(lambda x: jax.jvp(jax.grad(loss), (x,), (x,))), x)
    assert [r.sharding.spec for r in found] == [PartitionSpec(None, "d")] * 2


def test_a_loop_that_begins_with_numbers_stands_within_shard_map() -> None:
    fn = te.function(lambda x: te.recurrence(x.shape, lambda h, t: te.tanh(x[t] + 0.5 * h[t - 1]), init=0.3))
    divided = PartitionSpec("d")
    mapped = jax.shard_map(
        jax.vmap(fn), mesh=jax.sharding.Mesh(jax.devices()[:1], ("d",)), in_specs=divided, out_specs=divided
    )
    x = jnp.arange(12.0).reshape(3, 4) / 12
    for order in (lambda f: f, lambda f: jax.grad(lambda x: jnp.sum(f(x) ** 2))):
        assert jnp.allclose(jax.jit(order(mapped))(x), order(jax.vmap(fn))(x), rtol=1e-6)
