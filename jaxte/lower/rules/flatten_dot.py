"""Products with a vector that has several dimensions: ``sum over n, t of x[n, t, a] * r[n, t]`` with ``n`` and ``t`` as one dimension.

    jnp.einsum("nta,nt->a", x, r)    is    jnp.einsum("na,n->a", x.reshape(-1, 256), r.reshape(-1))

where the dimensions of the vector stand side by side in the other operand. XLA on the CPU copies all of ``x`` for the first, with the
summed dimensions last, and takes two to five times as long. Products of matrices take as long either way.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import ONE, Axis, Expr
from jaxte.lang.identity import among, identical, place_of
from jaxte.lower.arrays.steps import Reshape
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.sets.intervals import times


def with_flat_vector(body: Body, values: Sequence[Value], out: Sequence[Axis]) -> Sequence[Value]:
    """The two operands of a product of sum ``out`` with all dimensions of one of them as a single one, where that takes no copy."""
    if len(values) != 2 or any(v.literal for v in values):
        return values
    for vector, other in (values, values[::-1]):
        run = vector.dims
        if len(run) < 2 or any(among(d, out) for d in run) or _place(run, other.dims) is None:
            continue
        extent: Expr | None = ONE
        for dim in run:
            extent = times(extent, dim.hi) if extent is not None else None
        if extent is not None:
            flat = Axis(run[0].name, 0, extent)
            return [_flattened(body, value, run, flat) for value in values]
    return values


def _place(run: Sequence[Axis], dims: Sequence[Axis]) -> int | None:
    """Where ``run`` stands among ``dims``, without others between."""
    at = place_of(run[0], dims) if among(run[0], dims) else len(dims)
    return at if identical(tuple(dims[at : at + len(run)]), tuple(run)) else None


def _flattened(body: Body, value: Value, run: Sequence[Axis], flat: Axis) -> Value:
    at = _place(run, value.dims)
    assert at is not None
    dims = (*value.dims[:at], flat, *value.dims[at + len(run) :])
    return body.with_steps(value, [Reshape(tuple(d.hi for d in dims))], dims)
