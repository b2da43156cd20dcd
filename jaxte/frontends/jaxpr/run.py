"""Runs a jaxpr by its plan: regions by their code, everything else as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import Literal
from jax.extend.core.primitives import convert_element_type_p
from jax.extend.linear_util import wrap_init

from jaxte.bridge.jaxprs import GROUPS, REMATS, scan_counts
from jaxte.frontends.jaxpr.equations.stands import as_it_stands, as_they_stand
from jaxte.frontends.jaxpr.loops.kept import KEPT_SCAN, Kept
from jaxte.frontends.jaxpr.loops.kept_rules import with_states
from jaxte.frontends.jaxpr.plan.items import Inner, Known, Plan, Ref, Region
from jaxte.frontends.jaxpr.plan.plan import bodies_of
from jaxte.frontends.jaxpr.run_loop import run_loop
from jaxte.frontends.jaxpr.taken import Raising, taken_by


def evaluate(plan: Plan, closed: Any, args: Sequence[Any]) -> list[Any]:
    """The results of ``closed`` on ``args``."""
    returned = closed.jaxpr.outvars
    closed = closed if plan.instead is None else plan.instead.closed
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env |= dict(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for run, wanted in _runs(plan, jaxpr):
        item = run[0]
        if isinstance(item, Region):
            given = [env[_var(jaxpr, r)] if isinstance(r, Ref) else r for r in item.inputs]
            made = item.code.run(
                *(jax.lax.stop_gradient(x) if n in item.still else x for n, x in enumerate(given))
            )
            listed = [made] if len(item.outputs) == 1 else made
            env |= {_var(jaxpr, r): value for r, value in zip(item.outputs, listed, strict=True)}
        elif isinstance(item, Known):
            outputs = jaxpr.eqns[item.index].outvars
            made = zip(outputs, item.values, strict=True)
            # nothing reads what has no value: the positions of a sort of which the values are read
            env |= {v: jax.numpy.asarray(value) for v, value in made if value is not None}
        elif isinstance(item, Inner):
            eqn = jaxpr.eqns[item.index]
            operands = [read(a) for a in eqn.invars]
            if item.loop is not None:
                results = run_loop(item.loop, eqn, operands)
            elif item.raising is not None:
                results = as_it_stands(_with_rule_raised(eqn, item.raising), operands)
            else:
                results = _CONSTRUCTS[eqn.primitive.name](eqn, item.plans, operands)
            env |= dict(zip(eqn.outvars, results, strict=True))
        else:
            env |= as_they_stand([jaxpr.eqns[n] for n in run], read, wanted)
    return [_weak(read(a), r.aval) for a, r in zip(jaxpr.outvars, returned, strict=True)]


def _runs(plan: Plan, jaxpr: Any) -> list[tuple[list[Any], set[Any]]]:
    """The items of a plan, equations that stay and follow each other together; each run with the variables that are read after it."""
    runs: list[list[Any]] = []
    for item in plan.items:
        if runs and isinstance(item, int) and isinstance(runs[-1][0], int):
            runs[-1].append(item)
        else:
            runs.append([item])
    later = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    found: list[tuple[list[Any], set[Any]]] = []
    for run in reversed(runs):
        own = {v for item in run for v in _read_by(item, jaxpr)}
        found.append(
            (run, {v for n in run if isinstance(n, int) for v in jaxpr.eqns[n].outvars if v in later})
        )
        later |= own
    return found[::-1]


def _read_by(item: Any, jaxpr: Any) -> list[Any]:
    """The variables that an item of a plan reads."""
    if isinstance(item, Region):
        return [_var(jaxpr, r) for r in item.inputs if isinstance(r, Ref)]
    if isinstance(item, Known):
        return []
    eqn = jaxpr.eqns[item if isinstance(item, int) else item.index]
    return [a for a in eqn.invars if not isinstance(a, Literal)]


def _var(jaxpr: Any, ref: Ref) -> Any:
    if ref.kind == "out":
        return jaxpr.eqns[ref.number].outvars[ref.result]
    return (jaxpr.invars if ref.kind == "in" else jaxpr.constvars)[ref.number]


def _weak(value: Any, aval: Any) -> Any:
    """``value`` as a weakly typed array where the function returned one."""
    if not getattr(aval, "weak_type", False) or getattr(jax.typeof(value), "weak_type", True):
        return value
    return convert_element_type_p.bind(value, new_dtype=aval.dtype, weak_type=True, sharding=None)


def _scan(eqn: Any, plans: Sequence[Plan], operands: Sequence[Any]) -> list[Any]:
    p = eqn.params
    (body,) = bodies_of(eqn)
    consts, carried = scan_counts(p)
    fixed, init, xs = operands[:consts], operands[consts : consts + carried], operands[consts + carried :]

    def step(carry: Any, x: Any) -> Any:
        results = evaluate(plans[0], body, [*fixed, *carry, *x])
        return tuple(results[:carried]), tuple(results[carried:])

    length = None if xs else p["length"]  # a symbol of jax.export is taken from an array only
    carry, ys = jax.lax.scan(step, tuple(init), tuple(xs), length, p["reverse"], p["unroll"])
    return [*carry, *ys]


def _kept_scan(eqn: Any, plans: Sequence[Plan], operands: Sequence[Any]) -> list[Any]:
    (body,) = bodies_of(eqn)
    own = Kept.of(
        {**eqn.params, "jaxpr": jax.make_jaxpr(lambda *xs: evaluate(plans[0], body, xs))(*body.in_avals)}
    )
    return with_states(own, operands)


def _cond(eqn: Any, plans: Sequence[Plan], operands: Sequence[Any]) -> list[Any]:
    branches = [
        lambda *xs, plan=plan, body=body: evaluate(plan, body, xs)
        for plan, body in zip(plans, bodies_of(eqn), strict=True)
    ]
    index, *rest = operands
    return list(jax.lax.switch(index, branches, *rest))


def _remat(eqn: Any, plans: Sequence[Plan], operands: Sequence[Any]) -> list[Any]:
    (body,) = bodies_of(eqn)
    again = jax.checkpoint(
        lambda *xs: evaluate(plans[0], body, xs),
        prevent_cse=eqn.params["prevent_cse"],
        policy=eqn.params["policy"],
    )
    return list(again(*operands))


def _shard_map(eqn: Any, plans: Sequence[Plan], operands: Sequence[Any]) -> list[Any]:
    (body,) = bodies_of(eqn)
    p = eqn.params
    divided = jax.shard_map(
        lambda *xs: evaluate(plans[0], body, xs),
        mesh=p["mesh"],
        in_specs=tuple(p["in_specs"]),
        out_specs=list(p["out_specs"]),
        axis_names=p["newly_manual_axes"],
        check_vma=p["check_vma"],
    )
    return list(divided(*operands))


def _with_rule_raised(eqn: Any, raising: Raising) -> Any:
    """A call with a rule of ``jax.custom_vjp``, whose backward pass raises what it differentiates."""
    backward = eqn.params["bwd"]

    def raised(*args: Any) -> Any:
        with taken_by(raising):
            return backward.call_wrapped(*args)

    wrapped = wrap_init(raised, debug_info=backward.debug_info)
    return eqn.replace(params={**eqn.params, "bwd": wrapped})


def _call(eqn: Any, plans: Sequence[Plan], operands: Sequence[Any]) -> list[Any]:
    (body,) = bodies_of(eqn)

    def called(*xs: Any) -> list[Any]:
        return evaluate(plans[0], body, xs)

    called.__name__ = str(eqn.params.get("name", "called")).strip("<>") or "called"
    return list(jax.jit(called)(*operands))


_CONSTRUCTS = {
    "scan": _scan,
    KEPT_SCAN: _kept_scan,
    "cond": _cond,
    "shard_map": _shard_map,
    **dict.fromkeys(REMATS, _remat),
    **dict.fromkeys(GROUPS, _call),
}
