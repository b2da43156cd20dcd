"""What NumPy runs in place of XLA is known by what it computes, was compared with XLA, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src import compiler
from jax.extend.core import ClosedJaxpr

import jaxte as te
from harness.case import CORPUS, IDIOMATIC, load, names
from harness.inputs import draw
from harness.sides import function, heads, with_gradients
from tests import numpy_programs
from tests.conftest import IS_QUICK
from tests.numpy_evaluation import evaluated
from tests.numpy_operations import RULES
from tests.numpy_programs import add_to_record, agrees, main, recorded
from tests.program_keys import key
from tests.single_operations import IS_KNOWN, run_by_xla

pytestmark = pytest.mark.skipif(not (IS_QUICK and IS_KNOWN), reason="everything is compiled")
X = np.linspace(-1, 2, 131, dtype="float32")


def program(fn: Callable[..., Any], *args: Any) -> ClosedJaxpr:
    return jax.jit(fn).trace(*args).jaxpr


def rolled(x: Any) -> Any:
    return jnp.sum(jnp.roll(jnp.tanh(x) * x[::-1], 1)[2:])


def own(by: int, scale: float = 1.0) -> Any:
    return te.function(
        lambda x: te.compute((120,), lambda i: scale * x[i + by] * te.where(i < 60, x[i], 2.0), "y")
    )


def test_a_key_is_that_of_what_is_computed() -> None:
    def another(y: Any) -> Any:
        return rolled(y)

    assert key(program(rolled, X)) == key(program(another, X))
    others = [
        program(rolled, X[1:]),
        program(rolled, X.astype("float16")),
        program(lambda x: jnp.sum(jnp.roll(jnp.tanh(x) * x[::-1], 1)[1:]), X),
        program(lambda x: jnp.sum(jnp.roll(jnp.sinh(x) * x[::-1], 1)[2:]), X),
        program(lambda x: rolled(x) * 2, X),
        program(lambda x: rolled(x) * 3, X),
        program(lambda x: lax.fori_loop(0, 3, lambda n, c: c + 1, rolled(x)), X),
        program(lambda x: lax.fori_loop(0, 3, lambda n, c: c + 2, rolled(x)), X),
        *(program(own(by, scale), X) for by, scale in ((0, 1.0), (1, 1.0), (1, 2.0))),
    ]
    assert len({key(p) for p in (program(rolled, X), *others)}) == 1 + len(others)
    assert key(program(own(1), X)) == key(program(own(1), X))


def looped(x: Any, n: Any) -> Any:
    down, rows = lax.scan(lambda c, r: (c * 0.9 + r, c - r), x[0], x, reverse=True)
    halved = lax.while_loop(lambda c: jnp.sum(c) > 1, lambda c: c / 2 - n, jnp.abs(x))
    return down, rows, halved, [lax.switch(n + m, [jnp.sin, jnp.cos, jnp.exp], x) for m in (-1, 0, 1)]


def test_loops_and_branches_as_xla_runs_them() -> None:
    args = X.reshape(-1, 1)[:40], np.int32(1)
    traced = jax.jit(looped).trace(*args)
    with run_by_xla():
        expected = jax.tree.leaves(jax.jit(looped)(*args))
    for found, theirs in zip(evaluated(traced.jaxpr, args), expected, strict=True):
        np.testing.assert_allclose(found, theirs, rtol=1e-5, atol=1e-6)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What XLA gets, while nothing is recorded."""
    monkeypatch.setattr(numpy_programs, "recorded", dict)
    monkeypatch.setattr(numpy_programs, "new", {})
    monkeypatch.delenv("JAXTE_VALUES", raising=False)
    made: list[str] = []
    original = compiler.compile_or_get_cached

    def counted(backend: Any, module: Any, *args: Any, **options: Any) -> Any:
        made.append(str(module.operation.attributes["sym_name"]).strip('"'))
        return original(backend, module, *args, **options)

    monkeypatch.setattr(compiler, "compile_or_get_cached", counted)
    return made


def recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    asked = tmp_path / "values.txt"
    monkeypatch.setenv("JAXTE_VALUES", str(asked))
    return asked


def test_what_is_recorded_is_not_compiled(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked, kept = recording(monkeypatch, tmp_path), tmp_path / "numpy_programs.txt"
    jitted = {
        name: jax.jit(jax.value_and_grad(f)) for name, f in (("plain", rolled), ("own", _summed(own(2))))
    }
    first = {name: f(X) for name, f in jitted.items()}
    assert len(compiled) == len(jitted)
    add_to_record(has_passed=True)
    monkeypatch.setattr(numpy_programs, "FILE", kept)
    kept.write_text("0", encoding="utf-8")
    main(str(asked))
    monkeypatch.delenv("JAXTE_VALUES")
    monkeypatch.setattr(numpy_programs, "recorded", lambda: recorded.__wrapped__())
    compiled.clear()
    for f, name in ((rolled, "plain"), (_summed(own(2)), "own")):
        for found, before in zip(jax.jit(jax.value_and_grad(f))(X), first[name], strict=True):
            assert isinstance(found, jax.Array) and found.dtype == before.dtype
            np.testing.assert_allclose(found, before, rtol=1e-5, atol=1e-6)
    assert not compiled
    jax.jit(lambda x: rolled(x) * 4)(X)
    assert len(compiled) == 1


def test_what_was_known_stays_where_a_test_asks_for_it(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept, program = tmp_path / "numpy_programs.txt", jax.jit(rolled).trace(X).jaxpr
    monkeypatch.setattr(numpy_programs, "FILE", kept)
    monkeypatch.setattr(numpy_programs, "recorded", lambda: {key(program): 7, "0ld": 9})
    for options, expected in (((), {key(program): 7}), (("--more",), {key(program): 7, "0ld": 9})):
        found = recording(monkeypatch, tmp_path)
        assert numpy_programs.calls_of(program) == 7
        add_to_record(has_passed=True)
        main(str(found), *options)
        rows = kept.read_text(encoding="utf-8").splitlines()[1:]
        assert {own: int(often) for own, often in map(str.split, rows)} == expected


def _summed(fn: Any) -> Callable[[Any], Any]:
    return lambda x: jnp.sum(fn(x) ** 2)


def test_what_differs_is_not_recorded(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And nothing of a test that fails."""
    asked = recording(monkeypatch, tmp_path)
    jax.jit(lambda x: rolled(x) * 5)(X)
    assert numpy_programs.new
    add_to_record(has_passed=False)
    assert not numpy_programs.new and not asked.exists()
    monkeypatch.setitem(RULES, "tanh", lambda x, **_: np.tanh(x) * np.float32(1.0001))
    jax.jit(lambda x: rolled(x) * 6)(X)
    assert not numpy_programs.new
    assert not agrees(np.float32([1, np.nan]), np.float32([1, 2]))
    assert not agrees(np.float32([1, 2]), np.float32([np.inf, 2]))
    assert agrees(np.float32([np.nan, 1e4]), np.float32([np.nan, 1e4 + 0.01]))
    assert agrees(np.float32([-0.0, 1]), np.float32([-0.0, 1]))
    assert not agrees(np.float32([-0.0, 1]), np.float32([0.0, 1]))
    assert not agrees(np.complex64([complex(1e-9, -0.0), 0]), np.complex64([complex(1e-9, -0.0), -0.0]))


def test_what_is_recorded_is_what_xla_computes() -> None:
    """Of functions whose program is that of JAX alone."""
    asked = []
    for name in names(CORPUS)[::20]:
        case = load(name)
        args = draw(case.inputs_at("quick"))
        both = with_gradients(function(case, IDIOMATIC), case.differentiated(args))
        given = [heads(case, IDIOMATIC, args), *args]
        traced = jax.jit(both).trace(*given)
        if key(traced.jaxpr) not in recorded():
            continue
        asked.append(name)
        flat = jax.tree.leaves(given)
        with np.errstate(all="ignore"):
            found = evaluated(traced.jaxpr, flat)
        theirs = jax.tree.leaves(traced.lower().compile()(*given))
        assert all(agrees(a, np.asarray(b)) for a, b in zip(found, theirs, strict=True)), name
    assert asked, "nothing is recorded any more: see tests/numpy_programs.py"
