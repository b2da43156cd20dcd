"""What JAX does with functions: the columns of the grid, each a function of a function and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.test_util import check_grads

Fn = Callable[..., Any]
Args = tuple[Any, ...]


def is_float(a: Any) -> bool:
    return jnp.issubdtype(a.dtype, jnp.inexact)


def floats(args: Args) -> tuple[int, ...]:
    return tuple(n for n, a in enumerate(args) if is_float(a))


def loss(f: Fn) -> Fn:
    """A real number of all float results."""

    def total(*args: Any) -> Any:
        parts = [
            jnp.sum(jnp.real(y * y) * (1 + n)) for n, y in enumerate(jax.tree.leaves(f(*args))) if is_float(y)
        ]
        return sum(parts[1:], parts[0])

    return total


def of_floats(f: Fn, args: Args) -> tuple[Fn, Args]:
    """``f`` of its float arguments alone, and their values."""
    at = floats(args)

    def fixed(*values: Any) -> Any:
        filled = list(args)
        for n, value in zip(at, values, strict=True):
            filled[n] = value
        return f(*filled)

    return fixed, tuple(args[n] for n in at)


def float_results(f: Fn) -> Fn:
    return lambda *args: [y for y in jax.tree.leaves(f(*args)) if is_float(y)]


def moved(args: Args) -> Args:
    return tuple((jnp.cos(3 * a) / 2).astype(a.dtype) for a in args)


def stacked(args: Args, axis: int = 0) -> Args:
    """A batch of three for each argument; integers as they are."""
    return tuple(
        jnp.stack([a, a / 2, -a], axis) if is_float(a) else jnp.stack([a, a[::-1], a], axis) for a in args
    )


def first_alone(f: Fn, args: Args) -> tuple[Fn, Any]:
    return lambda a: f(a, *args[1:]), args[0]


def _grad(f: Fn, args: Args) -> Any:
    return jax.grad(loss(f), floats(args))(*args)


def _jvp(f: Fn, args: Args) -> Any:
    f, args = of_floats(float_results(f), args)
    return jax.jvp(f, args, moved(args))


def _vjp(f: Fn, args: Args) -> Any:
    f, args = of_floats(float_results(f), args)
    out, pull = jax.vjp(f, *args)
    return out, pull(out)


def _linearize(f: Fn, args: Args) -> Any:
    f, args = of_floats(float_results(f), args)
    return jax.linearize(f, *args)[1](*moved(args))


def _linear_transpose(f: Fn, args: Args) -> Any:
    f, args = of_floats(float_results(f), args)
    return jax.linear_transpose(jax.linearize(f, *args)[1], *args)(f(*args))


def _jacobian(of: Fn, f: Fn, args: Args) -> Any:
    f, args = of_floats(float_results(f), args)
    return of(f, tuple(range(len(args))))(*args)


def _hessian(outer: Fn, inner: Fn, f: Fn, args: Args) -> Any:
    f, a = first_alone(loss(f), args)
    return outer(inner(f))(a)


def _third(f: Fn, args: Args) -> Any:
    f, a = first_alone(loss(f), args)
    twice = lambda a: jnp.sum(jax.jvp(jax.grad(f), (a,), moved((a,)))[1] * a)  # noqa: E731
    return jax.grad(twice)(a)


def _hvp(f: Fn, args: Args) -> Any:
    f, a = first_alone(loss(f), args)
    return jax.jvp(jax.grad(f), (a,), moved((a,)))


def _vmap_axes(f: Fn, args: Args) -> Any:
    """The first argument mapped along its last axis, the others not; results along their second."""
    f, a = first_alone(float_results(f), args)
    return jax.vmap(f, -1, 1)(stacked((a,), -1)[0])


def _vmap_mixed(f: Fn, args: Args) -> Any:
    axes = [(0, 1, None)[n % 3] if a.ndim else None for n, a in enumerate(args)]
    batched = [a if d is None else stacked((a,), d)[0] for a, d in zip(args, axes, strict=True)]
    return jax.vmap(f, tuple(axes))(*batched)


def _nested(f: Fn, args: Args) -> Any:
    return jax.vmap(jax.vmap(f), 1)(*stacked(stacked(args), 1))


def _per_example(f: Fn, args: Args) -> Any:
    return jax.vmap(jax.grad(loss(f), floats(args)))(*stacked(args))


def _grad_of_vmap(f: Fn, args: Args) -> Any:
    f, args = of_floats(f, args)
    mapped = jax.vmap(f, (0, *(None,) * (len(args) - 1)))
    return jax.grad(loss(mapped), tuple(range(len(args))))(stacked(args)[0], *args[1:])


def _scan(f: Fn, args: Args) -> Any:
    f, args = of_floats(loss(f), args)

    def total(*args: Any) -> Any:
        step = lambda c, s: (c + f(*[a * s.astype(a.dtype) for a in args]), c)  # noqa: E731
        return jax.lax.scan(step, jnp.zeros_like(f(*args)), jnp.array([1.0, 0.5, 0.25]))[0]

    return jax.grad(total, tuple(range(len(args))))(*args)


def _fori(f: Fn, args: Args) -> Any:
    f, args = of_floats(loss(f), args)
    total = lambda *args: jax.lax.fori_loop(  # noqa: E731
        0, 3, lambda n, c: c + f(*args) / (1 + n), jnp.zeros_like(f(*args))
    )
    return jax.grad(total)(*args)


def _while(f: Fn, args: Args) -> Any:
    f, args = of_floats(loss(f), args)

    def total(*args: Any) -> Any:
        start = 0, jnp.zeros_like(f(*args))
        return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + f(*args)), start)[1]

    return jax.jvp(total, args, moved(args))


def _cond(f: Fn, args: Args) -> Any:
    f, args = of_floats(loss(f), args)
    total = lambda *args: jax.lax.cond(jnp.real(args[0]).sum() > -100, f, lambda *args: 2 * f(*args), *args)  # noqa: E731
    return jax.grad(total)(*args), jax.jvp(total, args, moved(args))


def _switch(f: Fn, args: Args) -> Any:
    f, args = of_floats(loss(f), args)
    branches = [f, lambda *args: 2 * f(*args), lambda *args: jnp.zeros_like(f(*args))]
    return jax.grad(lambda *args: jax.lax.switch(jnp.int32(1), branches, *args))(*args)


def _custom_vjp(f: Fn, args: Args) -> Any:
    f, args = of_floats(loss(f), args)
    doubled = jax.custom_vjp(f)
    doubled.defvjp(
        lambda *args: (f(*args), args),
        lambda res, ct: tuple(2 * ct * g for g in jax.grad(f, tuple(range(len(res))))(*res)),
    )
    return jax.grad(doubled)(*args)


def _custom_jvp(f: Fn, args: Args) -> Any:
    f, args = of_floats(loss(f), args)
    doubled = jax.custom_jvp(f)
    doubled.defjvp(lambda args, dots: (f(*args), 2 * jax.jvp(f, args, dots)[1]))
    return jax.grad(doubled)(*args), jax.jvp(doubled, args, moved(args))


def _checkpoint(f: Fn, args: Args) -> Any:
    f, args = of_floats(loss(f), args)
    return jax.grad(jax.checkpoint(f), tuple(range(len(args))))(*args)


def _policies(f: Fn, args: Args) -> Any:
    """What is named is saved; everything dots; everything."""
    f, args = of_floats(float_results(f), args)
    named = loss(lambda *args: [checkpoint_name(y, "y") for y in f(*args)])
    policies = jax.checkpoint_policies
    every = policies.save_only_these_names("y"), policies.dots_saveable, policies.everything_saveable
    return [jax.grad(jax.checkpoint(named, policy=policy))(*args) for policy in every]


def _mesh() -> Any:
    return jax.make_mesh((1,), ("d",), axis_types=(AxisType.Auto,), devices=jax.devices()[:1])


def _shard_map(f: Fn, args: Args) -> Any:
    f, a = first_alone(loss(f), args)
    inside = lambda a: jax.lax.psum(f(a), "d")  # noqa: E731
    return jax.jit(jax.grad(jax.shard_map(inside, mesh=_mesh(), in_specs=P("d"), out_specs=P())))(a)


def _named_sharding(f: Fn, args: Args) -> Any:
    placed = [jax.device_put(a, NamedSharding(_mesh(), P())) for a in args]
    return jax.jit(jax.grad(loss(f), floats(args)))(*placed)


def _explicit(run: Fn, f: Fn, args: Args) -> Any:
    """``run`` on the default mesh of ``jax.make_mesh``: two devices, if there are, divide the first argument."""
    devices = jax.devices()[:2]
    mesh = jax.make_mesh((len(devices),), ("d",), devices=devices)
    assert mesh.axis_types == (AxisType.Explicit,)
    with jax.set_mesh(mesh):
        specs = [_divided(args[0], mesh), *(P() for _ in args[1:])]
        placed = [jax.device_put(a, NamedSharding(mesh, spec)) for a, spec in zip(args, specs, strict=True)]
        return jax.jit(lambda *args: run(f, args))(*placed)


def _divided(a: Any, mesh: Any) -> P:
    """The first axis that the mesh divides among its devices."""
    for n, extent in enumerate(a.shape):
        if extent % mesh.size == 0:
            return P(*[None] * n, "d")
    return P()


def _pmap(f: Fn, args: Args) -> Any:
    g = jax.pmap(jax.grad(loss(f), floats(args)), devices=jax.devices()[:1])
    return g(*(a[None] for a in args))


def _export(f: Fn, args: Args) -> Any:
    g = jax.jit(jax.grad(loss(f), floats(args)))
    exported = jax.export.export(g)(*args)
    return jax.export.deserialize(exported.serialize()).call(*args)


def _export_symbolic(f: Fn, args: Args) -> Any:
    """The size of the first axis is known when the program is called."""
    f, a = first_alone(loss(f), args)
    (b,) = jax.export.symbolic_shape("b")
    exported = jax.export.export(jax.jit(jax.grad(f)))(jax.ShapeDtypeStruct((b, *a.shape[1:]), a.dtype))
    again = jax.export.deserialize(exported.serialize())
    return again.call(a), again.call(jnp.concatenate([a, a / 2]))


def _aot(f: Fn, args: Args) -> Any:
    return jax.jit(jax.grad(loss(f), floats(args))).lower(*args).compile()(*args)


def _donated(f: Fn, args: Args) -> Any:
    step = jax.jit(lambda a, *rest: a - jax.grad(loss(f))(a, *rest) / 8, donate_argnums=0)
    return step(jnp.array(args[0]), *args[1:])


def _eval_shape(f: Fn, args: Args) -> Any:
    shapes = jax.eval_shape(jax.grad(loss(f), floats(args)), *args), jax.eval_shape(f, *args)
    return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)


def _float0(f: Fn, args: Args) -> Any:
    """Tangents and cotangents of integers."""
    f = float_results(f)
    out, pull = jax.vjp(f, *args)
    dots = [
        m if is_float(a) else np.zeros(a.shape, jax.dtypes.float0)
        for a, m in zip(args, moved(args), strict=True)
    ]
    return [c for c in pull(out) if c.dtype != jax.dtypes.float0], jax.jvp(f, args, tuple(dots))


def _unused_inputs(f: Fn, args: Args) -> Any:
    """The gradient of each argument by itself."""
    return [jax.grad(loss(f), n)(*args) for n in floats(args)]


def _unused_results(f: Fn, args: Args) -> Any:
    last = lambda *args: float_results(f)(*args)[-1:]  # noqa: E731
    return jax.grad(loss(last))(*args), jax.jit(lambda *args: jax.vmap(last)(*args))(*stacked(args))


def _weak(f: Fn, args: Args) -> Any:
    weak = [jnp.broadcast_to(jnp.asarray(0.5), a.shape) if is_float(a) else a for a in args]
    scaled = [w * a if is_float(a) else a for w, a in zip(weak, args, strict=True)]
    return jax.grad(loss(f), floats(args))(*scaled)


def _disable_jit(f: Fn, args: Args) -> Any:
    with jax.disable_jit():
        return jax.grad(loss(f), floats(args))(*args), _jvp(f, args)


def _debug_nans(f: Fn, args: Args) -> Any:
    with jax.debug_nans(True):
        return jax.grad(loss(f), floats(args))(*args)


def _x64_switched(f: Fn, args: Args) -> Any:
    before = jax.grad(loss(f))(*args)
    with jax.enable_x64(True):
        wide = tuple(a.astype("float64") if is_float(a) else a for a in args)
        inside = (
            jax.grad(loss(f))(*wide),
            jax.jvp(
                loss(f),
                wide[:1] + wide[1:],
                tuple(np.zeros(a.shape, jax.dtypes.float0) if not is_float(a) else a for a in wide),
            ),
        )
    return before, inside, jax.grad(loss(f))(*args)


def _all_of_it(f: Fn, args: Args) -> Any:
    """For a dtype: value, gradient, tangent, batch."""
    g, values = of_floats(loss(f), args)
    return f(*args), jax.grad(g, tuple(range(len(values))))(*values), _jvp(f, args), _per_example(f, args)


def _complex(f: Fn, args: Args) -> Any:
    return f(*args), jax.grad(loss(f))(*args), _jvp(f, args), _vjp(f, args), _per_example(f, args)


def _check_grads(f: Fn, args: Args) -> Any:
    """Against finite differences: every order to the third, by forward and by reverse mode."""
    f, args = of_floats(float_results(f), args)
    check_grads(f, args, order=3, modes=("fwd", "rev"))
    return ()


@dataclass(frozen=True)
class Column:
    """A transformation.

    Attributes:
        dtype: of the float arguments.
        jit: whether the whole is compiled at once, which is quicker than piece by piece.
        needs: an attribute of the row without which there is nothing to do.
        reference: what plain JAX does in its place where it cannot do the same.
    """

    name: str
    run: Callable[[Fn, Args], Any]
    dtype: str = "float32"
    jit: bool = True
    needs: str = ""
    reference: Callable[[Fn, Args], Any] | None = None


def _explicitly(what: str, run: Callable[[Fn, Args], Any]) -> Column:
    """Beside plain JAX on one device: on such a mesh it refuses to pad, to slice and to take windows of what does not divide evenly."""
    return Column(f"explicit mesh, {what}", partial(_explicit, run), jit=False, reference=run)


COLUMNS = (
    Column("call", lambda f, args: f(*args), jit=False),
    Column("jit", lambda f, args: f(*args)),
    Column("grad", _grad),
    Column("grad, eagerly", _grad, jit=False),
    Column("value_and_grad", lambda f, args: jax.value_and_grad(loss(f), floats(args))(*args)),
    Column("vjp", _vjp),
    Column("jvp", _jvp),
    Column("linearize", _linearize),
    Column("linear_transpose", _linear_transpose),
    Column("jacfwd", partial(_jacobian, jax.jacfwd)),
    Column("jacrev", partial(_jacobian, jax.jacrev)),
    Column("jacfwd of jacrev", partial(_hessian, jax.jacfwd, jax.jacrev)),
    Column("jacrev of jacfwd", partial(_hessian, jax.jacrev, jax.jacfwd)),
    Column("jacfwd of jacfwd", partial(_hessian, jax.jacfwd, jax.jacfwd)),
    Column("jacrev of jacrev", partial(_hessian, jax.jacrev, jax.jacrev)),
    Column("jvp of grad", _hvp),
    Column("third derivative", _third),
    Column("vmap", lambda f, args: jax.vmap(f)(*stacked(args))),
    Column("vmap, last axis to second", _vmap_axes),
    Column("vmap, axes mixed", _vmap_mixed),
    Column("vmap of vmap", _nested),
    Column("vmap of grad", _per_example),
    Column("grad of vmap", _grad_of_vmap),
    Column("vmap of jvp", lambda f, args: jax.vmap(partial(_jvp_of, f))(*stacked(args))),
    Column("checkpoint", _checkpoint),
    Column("checkpoint, policies", _policies),
    Column("scan", _scan),
    Column("fori_loop", _fori),
    Column("while_loop", _while),
    Column("cond", _cond),
    Column("switch", _switch),
    Column("in custom_vjp", _custom_vjp),
    Column("in custom_jvp", _custom_jvp),
    Column("shard_map", _shard_map, jit=False),
    Column("NamedSharding", _named_sharding, jit=False),
    _explicitly("call and grad", lambda f, args: (f(*args), _grad(f, args))),
    _explicitly("jvp", _jvp),
    _explicitly("vmap of grad", _per_example),
    _explicitly("Hessian", partial(_hessian, jax.jacfwd, jax.jacrev)),
    Column("pmap", _pmap, jit=False),
    Column("export", _export, jit=False),
    Column("export, symbolic size", _export_symbolic, jit=False, needs="batch"),
    Column("lower().compile()", _aot, jit=False),
    Column("donated", _donated, jit=False),
    Column("eval_shape", _eval_shape, jit=False),
    Column("float0", _float0),
    Column("inputs not needed", _unused_inputs),
    Column("results not used", _unused_results),
    Column("weak types", _weak),
    Column("disable_jit", _disable_jit, jit=False),
    Column("debug_nans", _debug_nans, jit=False),
    Column("x64 switched", _x64_switched, jit=False),
    Column("bfloat16", _all_of_it, "bfloat16"),
    Column("float16", _all_of_it, "float16"),
    Column("float64", _all_of_it, "float64", jit=False),
    Column("complex64", _complex, "complex64", needs="complex"),
    Column("check_grads", _check_grads, "float64", jit=False, needs="smooth"),
)


def _jvp_of(f: Fn, *args: Any) -> Any:
    return _jvp(f, args)
