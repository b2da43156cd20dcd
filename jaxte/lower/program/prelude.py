"""The functions that emitted modules begin with: what keeps arrays apart, adds many, computes steps again, rolls and shifts."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from jaxte.lang.dtypes import is_float
from jaxte.lang.limits import LARGE_RESULT
from jaxte.lower.arrays.elementwise import Kept
from jaxte.lower.arrays.node import Node, nodes_below
from jaxte.lower.code.lines import APART, FIRST, KEPT, REPLAYED
from jaxte.lower.printing.data import FUNCTION, KERNEL, PALLAS, TRITON
from jaxte.lower.printing.loops import ADDED
from jaxte.lower.printing.views import ROLLED, SHIFTED
from jaxte.lower.recurrences.replays import descent, left, restarts

_IMPORTS = ("import functools", "import jax", "import jax.numpy as jnp", "from jax import lax")
_METADATA = "from jax.experimental.xla_metadata import set_xla_metadata"
_USES = {"import functools": "functools."}
_FIRST = """
_same = jax.jit(lambda x: x)


def _first(x):
    \"\"\"``x``, which XLA computes before what reads it, and once: it fuses nothing across this call.\"\"\"
    with set_xla_metadata(inlineable="false"):
        return _same(x)
"""
_APART = """
def _apart(x):
    \"\"\"``x`` as by ``_first``, for any reader: XLA may write over an array while it reads it both itself and through a call.\"\"\"
    return _first({own})
"""
_COPIED = """
def _apart(x):
    \"\"\"``x`` as by ``_first``, for any reader: XLA may write over an array while it reads it both itself and through a call.

    A short line is copied by the call: those that do nothing wait for nothing, and XLA hands them to other threads.
    \"\"\"
    if not all(isinstance(n, int) for n in x.shape) or x.size > {short}:
        return _first({own})
    with set_xla_metadata(inlineable="false"):
        return _copied(x)


_copied = jax.jit(lambda x: {own})
"""
_AT_ONCE = 8  # calls that wait for nothing which XLA's CPU begins with by itself; from nine on, all go to other threads: leapfrog of 4,000 elements
_ROUNDED = "lax.reduce_precision(x, jnp.finfo(x.dtype).nexp, jnp.finfo(x.dtype).nmant)"
_OWN = f"""
def _own(x):
    \"\"\"``x`` as an array of its own: rounded to the bits that it has, between the least and the greatest of its integers.\"\"\"
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return lax.complex(_own(x.real), _own(x.imag))
    if jnp.issubdtype(x.dtype, jnp.floating):
        return {_ROUNDED}
    if jnp.issubdtype(x.dtype, jnp.integer):
        ends = jnp.iinfo(x.dtype)
        return lax.clamp(jnp.array(ends.min, x.dtype), x, jnp.array(ends.max, x.dtype))
    return _own(x.astype(jnp.uint8)).astype(x.dtype)
"""
BINOMIAL = (
    *(inspect.getsource(own) for own in (restarts, descent, left)),
    """
def _kept(step, start, steps, slots):
    \"\"\"What ``step`` carries on from ``start`` over ``steps``, and what it is handed at those that ``slots`` hold, and at one more.\"\"\"
    into = jnp.array(restarts(steps, slots)[0], jnp.int32)

    def one(carried, t):
        states, kept = carried
        kept = _put(kept, states, into[t])
        return (step(states, t)[0], kept), None

    kept = jax.tree.map(lambda s: jnp.zeros((slots + 1, *s.shape), s.dtype), start)
    return lax.scan(one, (start, kept), jnp.arange(steps, dtype=jnp.int32))[0]
""",
    """
def _replayed(step, back, start, kept, end, steps, slots, ahead):
    \"\"\"What ``back`` carries on from ``start`` over ``steps``, the last first, and returns beside that; ``step`` computes again what it is handed.\"\"\"
    taken, first, offset, into = (jnp.array([*own, slots], jnp.int32) for own in restarts(steps, slots)[1:])

    def one(carried, t):
        so_far, kept, behind = carried

        def again(q, carried):
            states, kept = carried
            kept = _put(kept, states, into[offset[t] + q - first[t]])
            return step(states, q)[0], kept

        states = jax.tree.map(lambda a: a[taken[t]], kept)
        states, kept = lax.fori_loop(first[t], t, again, (states, kept))
        so_far, row = back(so_far, t, states, *behind)
        return (so_far, kept, [states, *behind[:-1]]), row

    carried = start, kept, [end] * (1 + ahead)
    (so_far, *_), rows = lax.scan(one, carried, jnp.arange(steps, dtype=jnp.int32), reverse=True)
    return so_far, rows
""",
    """
def _put(kept, states, slot):
    return jax.tree.map(lambda a, s: lax.dynamic_update_index_in_dim(a, s, slot, 0), kept, states)
""",
)
_ADDED = """
def _added(parts, most):
    \"\"\"The sum of ``parts``, ``most`` of them at a time: XLA computes nothing in vectors in a loop of many more.\"\"\"
    total, parts = 0, [*parts]
    for n in range(0, len(parts), most):
        total = sum(parts[n : n + most], _first(total) if n else 0)
    return total
"""
_ROLLED = """
def _rolled(x, shift, axis):
    \"\"\"``jnp.roll`` as a choice between two pads, which XLA computes in what reads them: slices side by side would be an array.\"\"\"
    n, zero = x.shape[axis], jnp.zeros((), x.dtype)
    shift %= n
    ends = [(shift, -shift, 0), (shift - n, n - shift, 0)]
    before, around = (lax.pad(x, zero, [own if d == axis else (0, 0, 0) for d in range(x.ndim)]) for own in ends)
    return jnp.where(lax.broadcasted_iota(jnp.int32, x.shape, axis) < shift, around, before)
"""
_SHIFTED = """
def _shifted(x, *places):
    \"\"\"``x`` moved by so many places along its dimensions, with zeros where nothing comes from.\"\"\"
    return lax.pad(x, jnp.zeros((), x.dtype), [(n, -n, 0) for n in places])
"""


def prelude(sources: Sequence[Node], text: str) -> tuple[list[str], list[str]]:
    """The imports, and the functions, that ``text`` reads.

    Args:
        sources: what it assigns.
        text: the functions and what stands behind them.
    """
    imports = [line for line in _IMPORTS if line not in _USES or _USES[line] in text]
    apart, added = f"{APART}(" in text, f"{ADDED}(" in text
    kept_apart: list[str] = []
    if apart or added or f"{FIRST}(" in text:
        imports.append(_METADATA)
        kept_apart = [_FIRST, *(_apart_texts(sources) if apart else ()), *((_ADDED,) if added else ())]
    again = f"{KEPT}(" in text or f"{REPLAYED}(" in text
    imports += ["from math import comb"] if again else []
    kernel = f"{KERNEL}(" in text
    if kernel:
        imports += [PALLAS, TRITON] if "triton." in text else [PALLAS]
    moved = [own for name, own in ((SHIFTED, _SHIFTED), (ROLLED, _ROLLED)) if f"{name}(" in text]
    used = [*((FUNCTION,) if kernel else ()), *moved, *(BINOMIAL if again else ()), *kept_apart]
    return imports, [own.lstrip() for own in used]


def _apart_texts(sources: Sequence[Node]) -> tuple[str, ...]:
    """The functions by which arrays are kept apart: those of real numbers are rounded to the bits that they have."""
    kept = {n for n in nodes_below(*sources) if isinstance(n, Kept) and n.how == "apart"}
    text = _COPIED if len(kept) > _AT_ONCE else _APART
    if all(is_float(node.dtype) for node in kept):
        return (text.format(own=_ROUNDED, short=LARGE_RESULT // 2),)
    return text.format(own="_own(x)", short=LARGE_RESULT // 2), _OWN
