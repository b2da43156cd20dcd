"""Lines of emitted code that are equal but for names are traced once; the text that is shown, and the operations, stay as they are."""

from __future__ import annotations

import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.bridge.primitive import module as modules
from jaxte.bridge.primitive.module import traced_once, with_calls
from tests.loop_steps import mixing

MODULE = '''"""A module."""

import jax
import jax.numpy as jnp


def _apart(x):
    return x


def forward(x0, x1):
    """What it is."""
    n = x0.shape[0]
    with jax.named_scope("a"):
        axis = _apart(x0[1:]) + jnp.sum(x1, axis=0)
        a = axis * x0[1:] + 2.0
    with jax.named_scope("b"):
        b = axis * a + 2.0
        c = jnp.einsum("ij,x0->i", b, b)

        def f(x):
            y = x * x + 2.0
            return y

        d = f(b) * x0 + 2.0
        e = b * n + 2.0
    with jax.ensure_compile_time_eval():
        g = axis * a + 2.0
    with jax.named_scope("h"):
        h = b * g + 2.0
    return h
'''


def test_two_alike_are_left():
    assert with_calls(MODULE, "<here>") == (MODULE, {})


def test_of_three_alike_one_is_traced():
    last = "    return h\n"
    more = '    with jax.named_scope("k"):\n        k = h * b + 2.0\n        m = k * k + 2.0\n'
    longer = MODULE.replace(last, more + last).replace("h = b * g + 2.0", "h = b * a + 2.0")
    text, functions = with_calls(longer, "<here>")
    calls = [line.strip() for line in text.split("\n") if "_line_" in line]
    assert calls == ["b = _line_0(axis, a)", "h = _line_0(b, a)", "k = _line_0(h, b)"]
    (code,) = functions.values()
    line = eval(code, {})
    assert line.__code__.co_firstlineno == 1 + longer.split("\n").index("        b = axis * a + 2.0")
    assert line(3.0, 2.0) == 8.0
    assert len(text.split("\n")) == len(longer.split("\n"))


def test_keywords_and_letters_in_quotes_are_no_arrays():
    line = '        {} = jnp.einsum("ij,ij->i", {}, {}) + jnp.sum(ij, axis=0)\n'
    text = 'import jax.numpy as jnp\ndef f(ij, axis):\n    with jax.named_scope("a"):\n'
    text += "".join(line.format(f"t{n}", "ij", "axis") for n in range(3))
    made, functions = with_calls(text, "<here>")
    assert made.count("_line_0(ij, axis)") == 3
    ij = np.arange(4.0).reshape(2, 2)
    got = eval(functions["_line_0"], {"jnp": jnp})(ij, ij)
    np.testing.assert_allclose(got, (ij * ij).sum(1) + ij.sum(0))


def test_what_is_known_when_traced_stays_known():
    def line(a, b):
        return b[np.asarray(a)]

    seen = traced_once(line)
    made = jax.make_jaxpr(lambda x: seen(np.array([1, 0]), x))(jnp.ones(2))
    assert "gather" in str(made) and len(made.jaxpr.invars) == 1


def fields(rng):
    return [jnp.asarray(rng.normal(size=(40, 30)), "float32") for _ in range(2)]


def test_the_operations_are_those_of_the_text(rng, monkeypatch):
    u, k = fields(rng)
    calls = []
    monkeypatch.setattr(modules, "traced_once", lambda f: calls.append(f) or traced_once(f))
    lowered = jax.jit(te.grad(mixing(9), (0, 1))).lower(u, k).as_text()
    assert calls
    monkeypatch.setattr(modules, "with_calls", lambda text, filename: (text, {}))
    assert jax.jit(te.grad(mixing(9), (0, 1))).lower(u, k).as_text() == lowered


def test_jax_traces_the_lines_of_one_step(rng, monkeypatch):
    """Rolls that are asked of ``jax.numpy`` while the code of more steps runs are no more."""
    own, asked = jnp.roll, []
    monkeypatch.setattr(jnp, "roll", lambda *a, **k: asked.append(1) or own(*a, **k))

    def count(number):
        asked.clear()
        jax.jit(te.grad(mixing(number), (0, 1))).lower(*fields(rng))
        return len(asked) - 2 * number  # those of the function itself

    assert count(24) == count(16)


def test_a_fault_is_shown_where_the_line_is():
    text = 'import jax.numpy as jnp\ndef f(x):\n    with jax.named_scope("a"):\n'
    text += "".join(f"        y{n} = jnp.reshape(x, (3,))\n" for n in range(3)) + "    return y0\n"
    module = modules.load("import jax\n" + text, "shown", {})
    with pytest.raises(TypeError) as caught:
        jax.make_jaxpr(module["f"])(jnp.ones(2))
    shown = traceback.extract_tb(caught.value.__traceback__)
    assert any("jnp.reshape(x, (3,))" in (frame.line or "") for frame in shown)
