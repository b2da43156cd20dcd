"""One call of one primitive that is raised: a family of primitives, dtypes, shapes and parameters, drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any
Rng = np.random.Generator
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int32", "int8", "uint8", "int64")


@dataclass(frozen=True)
class Case:
    """A function of arrays with its arguments.

    Attributes:
        name: the primitive, with what was drawn for it.
        function: returns one array, or a list.
        args: arrays of NumPy.
    """

    name: str
    function: Callable[..., Any]
    args: tuple[np.ndarray, ...]


def case(seed: int) -> Case:
    """The families in turn, each drawn by ``seed``."""
    rng = np.random.default_rng([7, seed])
    return FAMILIES[seed % len(FAMILIES)](rng)


def shape(rng: Rng, low: int = 0, high: int = 3, most: int = 5) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(1, most + 1, int(rng.integers(low, high + 1))))


def array(rng: Rng, shape: tuple[int, ...], dtype: str, kind: str = "any") -> np.ndarray:
    """Random elements of a kind: any, positive, inside (-1, 1), or few different ones."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return rng.integers(0 if dtype == "uint8" else -4, 5, shape).astype(dtype)
    drawn = rng.normal(size=shape)
    if kind == "positive":
        drawn = np.abs(drawn) + 0.2
    elif kind == "inside":
        drawn = 0.9 * np.tanh(drawn)
    elif kind == "ties":
        drawn = rng.integers(-2, 3, shape).astype("float64")
    return np.asarray(drawn.astype(jnp.dtype(dtype)))


def chosen(rng: Rng, options: Any) -> Any:
    listed = list(options)
    return listed[int(rng.integers(len(listed)))]


ANY = [
    "abs",
    "neg",
    "sign",
    "floor",
    "ceil",
    "round",
    "exp",
    "exp2",
    "expm1",
    "square",
    "sin",
    "cos",
    "tan",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "erf",
    "erfc",
    "logistic",
    "is_finite",
]
POSITIVE = ["log", "log1p", "sqrt", "rsqrt", "cbrt", "lgamma", "digamma"]
INSIDE = ["asin", "acos", "atanh", "erf_inv"]


def unary(rng: Rng) -> Case:
    name = chosen(rng, [*ANY, *POSITIVE, *INSIDE])
    kind = "positive" if name in POSITIVE else "inside" if name in INSIDE else "any"
    function = (
        (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN))
        if name == "round"
        else getattr(lax, name)
    )
    dtype = chosen(rng, FLOATS)
    return Case(f"{name} {dtype}", function, (array(rng, shape(rng), dtype, kind),))


def unary_at_integers(rng: Rng) -> Case:
    name = chosen(rng, ["abs", "neg", "sign", "square", "bitwise_not"])
    dtype = chosen(rng, INTEGERS if name != "bitwise_not" else (*INTEGERS, "bool"))
    if (name, dtype) == ("abs", "uint8"):
        dtype = "int8"  # lax has no absolute value of unsigned integers
    return Case(f"{name} {dtype}", getattr(lax, name), (array(rng, shape(rng), dtype),))


def power(rng: Rng) -> Case:
    y, dtype = int(rng.integers(-3, 6)), chosen(rng, FLOATS)
    kind = "positive" if y < 0 else "any"
    return Case(
        f"integer_pow {y} {dtype}", lambda x: lax.integer_pow(x, y), (array(rng, shape(rng), dtype, kind),)
    )


def binary(rng: Rng) -> Case:
    name = chosen(rng, ["add", "sub", "mul", "div", "max", "min", "pow", "atan2", "rem"])
    kind = "positive" if name in ("pow", "div", "atan2") else chosen(rng, ["any", "ties"])
    dtype, own = chosen(rng, FLOATS), shape(rng)
    if name == "rem":
        x, y = array(rng, own, dtype), array(rng, own, dtype, "positive")
        return Case(f"{name} {dtype}", lax.rem, (x, np.where(rng.integers(0, 2, own), y, -y).astype(y.dtype)))
    return Case(f"{name} {dtype}", getattr(lax, name), tuple(array(rng, own, dtype, kind) for _ in range(2)))


def compared(rng: Rng) -> Case:
    name, dtype = chosen(rng, ["eq", "ne", "lt", "le", "gt", "ge"]), chosen(rng, [*FLOATS, *INTEGERS])
    own = shape(rng)
    return Case(
        f"{name} {dtype}", getattr(lax, name), tuple(array(rng, own, dtype, "ties") for _ in range(2))
    )


def of_integers(rng: Rng) -> Case:
    name = chosen(
        rng, ["add", "sub", "mul", "max", "min", "bitwise_and", "bitwise_or", "bitwise_xor", "rem", "div"]
    )
    dtype = chosen(rng, (*INTEGERS, "bool") if name.startswith("bitwise") else INTEGERS)
    own = shape(rng)
    right = array(rng, own, dtype)
    right = np.where(right == 0, 1, right).astype(dtype) if name in ("rem", "div") else right
    return Case(f"{name} {dtype}", getattr(lax, name), (array(rng, own, dtype), right))


def converted(rng: Rng) -> Case:
    old, new = chosen(rng, [*FLOATS, *INTEGERS, "bool"]), chosen(rng, [*FLOATS, *INTEGERS, "bool"])
    kind = "positive" if new == "uint8" else "any"
    return Case(
        f"convert {old} {new}",
        lambda x: lax.convert_element_type(x, new),
        (array(rng, shape(rng), old, kind),),
    )


def selected(rng: Rng) -> Case:
    own, dtype, count = shape(rng), chosen(rng, [*FLOATS, "int32"]), int(rng.integers(2, 5))
    which = (
        rng.integers(0, 2, own).astype(bool) if count == 2 else rng.integers(0, count, own).astype("int32")
    )
    args = tuple(array(rng, own, dtype) for _ in range(count))
    return Case(f"select_n {count} {dtype}", lambda *xs: lax.select_n(jnp.asarray(which), *xs), args)


def clamped(rng: Rng) -> Case:
    dtype = chosen(rng, [*FLOATS, "int32"])
    low, high = (np.asarray(n).astype(jnp.dtype(dtype)) for n in (-1, 1))
    return Case(
        f"clamp {dtype}",
        lambda x: lax.clamp(jnp.asarray(low), x, jnp.asarray(high)),
        (array(rng, shape(rng), dtype, "ties"),),
    )


def reshaped(rng: Rng) -> Case:
    x = array(rng, shape(rng, 1), chosen(rng, [*FLOATS, "int32", "bool"]))
    divisors = [d for d in range(1, x.size + 1) if x.size % d == 0]
    d = chosen(rng, divisors)
    new = chosen(rng, [(d, x.size // d), (x.size,), (1, d, x.size // d), (x.size // d, d, 1)])
    return Case(f"reshape {x.shape} {new} {x.dtype}", lambda x: lax.reshape(x, new), (x,))


def moved(rng: Rng) -> Case:
    x = array(rng, shape(rng, 1, 4, 4), chosen(rng, [*FLOATS, "int8"]))
    order = tuple(int(n) for n in rng.permutation(x.ndim))
    axes = tuple(sorted(int(n) for n in rng.permutation(x.ndim)[: int(rng.integers(1, x.ndim + 1))]))
    ones = tuple(d for d, n in enumerate(x.shape) if n == 1)
    options: list[tuple[str, Callable[..., Any]]] = [
        (f"transpose {order}", lambda x: lax.transpose(x, order)),
        (f"rev {axes}", lambda x: lax.rev(x, axes)),
        (f"squeeze {ones}", lambda x: lax.squeeze(x, ones)),
        (f"expand_dims {axes}", lambda x: lax.expand_dims(x, axes)),
    ]
    name, function = chosen(rng, options)
    return Case(f"{name} {x.shape} {x.dtype}", function, (x,))


def broadcast(rng: Rng) -> Case:
    own = shape(rng, 0, 2)
    dims = tuple(sorted(int(n) for n in rng.permutation(len(own) + 1)[: len(own)]))
    new = [int(n) for n in rng.integers(1, 4, len(own) + 1)]
    for d, n in zip(dims, own, strict=True):
        new[d] = n if n > 1 else new[d]
    x = array(rng, own, chosen(rng, [*FLOATS, "bool"]))
    return Case(
        f"broadcast {own} {new} {dims} {x.dtype}", lambda x: lax.broadcast_in_dim(x, tuple(new), dims), (x,)
    )


def sliced(rng: Rng) -> Case:
    x = array(rng, shape(rng, 1, 3, 7), chosen(rng, [*FLOATS, "int32"]))
    starts = [int(rng.integers(n)) for n in x.shape]
    stops = [int(rng.integers(a, n)) + 1 for a, n in zip(starts, x.shape, strict=True)]
    steps = [int(n) for n in rng.integers(1, 4, x.ndim)]
    return Case(
        f"slice {x.shape} {starts} {stops} {steps} {x.dtype}",
        lambda x: lax.slice(x, starts, stops, steps),
        (x,),
    )


def padded(rng: Rng) -> Case:
    x = array(rng, shape(rng, 1, 3, 6), chosen(rng, FLOATS))
    config = [(int(rng.integers(-1, 4)), int(rng.integers(-1, 4)), int(rng.integers(3))) for _ in x.shape]
    config = [
        (max(a, 0), max(b, 0), c) if n < 4 else (a, b, c)
        for n, (a, b, c) in zip(x.shape, config, strict=True)
    ]
    fill = array(rng, (), str(x.dtype))
    return Case(f"pad {x.shape} {config} {x.dtype}", lambda x, v: lax.pad(x, v, config), (x, fill))


def joined(rng: Rng) -> Case:
    own, dtype = shape(rng, 1), chosen(rng, [*FLOATS, "int32"])
    axis = int(rng.integers(len(own)))
    sizes = [int(n) for n in rng.integers(1, 4, int(rng.integers(1, 4)))]
    parts = tuple(array(rng, (*own[:axis], n, *own[axis + 1 :]), dtype) for n in sizes)
    if rng.integers(2):
        return Case(f"concatenate {axis} {sizes} {dtype}", lambda *xs: lax.concatenate(xs, axis), parts)
    whole = array(rng, (*own[:axis], sum(sizes), *own[axis + 1 :]), dtype)
    return Case(f"split {axis} {sizes} {dtype}", lambda x: list(lax.split(x, sizes, axis)), (whole,))


def stacked(rng: Rng) -> Case:
    own, dtype = shape(rng, 0, 2), chosen(rng, FLOATS)
    axis, count = int(rng.integers(len(own) + 1)), int(rng.integers(1, 5))
    parts = tuple(array(rng, own, dtype) for _ in range(count))
    reps = tuple(int(n) for n in rng.integers(1, 4, len(own)))
    options: list[tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]] = [
        (f"stack {axis} {own}", lambda *xs: jnp.stack(xs, axis), parts),
        (f"unstack {axis} {own}", lambda x: list(jnp.unstack(x, axis=axis)), (np.stack(parts, axis),)),
        (f"tile {reps} {own}", lambda x: jnp.tile(x, reps), parts[:1]),
    ]
    name, function, args = chosen(rng, options)
    return Case(f"{name} {dtype}", function, args)


def at_positions(rng: Rng) -> Case:
    x = array(rng, shape(rng, 1, 2, 7), chosen(rng, FLOATS))
    axis, n = 0, x.shape[0]
    sizes = [int(rng.integers(1, m + 1)) for m in x.shape]
    starts = [int(rng.integers(-2, m + 2)) for m in x.shape]
    part = array(rng, tuple(sizes), str(x.dtype))
    index = chosen(
        rng,
        [
            np.arange(n)[::-1].copy(),
            np.arange(n) // 2,
            (np.arange(2 * n) + 1) % n,
            np.arange(0, n, 2),
            rng.integers(0, n, 3),
        ],
    )
    options: list[tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]] = [
        (f"dynamic_slice {starts} {sizes}", lambda x: lax.dynamic_slice(x, starts, sizes), (x,)),
        (
            f"dynamic_update_slice {starts} {sizes}",
            lambda x, y: lax.dynamic_update_slice(x, y, starts),
            (x, part),
        ),
        (
            f"take {index}",
            lambda x: jnp.take(
                x, index, axis, mode=chosen(np.random.default_rng(n), ["clip", "wrap", "fill"])
            ),
            (x,),
        ),
        (f"at set {starts[0]}", lambda x: x.at[starts[0] % n].set(2.0), (x,)),
        (f"at add {index[:2]}", lambda x: x.at[: n // 2 + 1].add(0.5), (x,)),
        (f"at multiply {n}", lambda x: x.at[::2].multiply(3.0), (x,)),
        (f"at subtract {n}", lambda x: x.at[1::2].subtract(x[: n // 2]), (x,)),
        (f"at max {n}", lambda x: x.at[: n // 2 + 1].max(0.0), (x,)),
        (f"at min {n}", lambda x: x.at[::2].min(x[0]), (x,)),
        (
            f"at set rows {n}",
            lambda x, y: x.at[1:].set(y),
            (x, array(rng, (n - 1, *x.shape[1:]), str(x.dtype))),
        ),
    ]
    name, function, args = chosen(rng, options)
    return Case(f"{name} {x.shape} {x.dtype}", function, args)


def reduced(rng: Rng) -> Case:
    own = shape(rng, 1)
    axes = tuple(sorted(int(n) for n in rng.permutation(len(own))[: int(rng.integers(1, len(own) + 1))]))
    name = chosen(rng, ["sum", "max", "min", "prod", "all", "any", "argmax", "argmin"])
    dtype = "bool" if name in ("all", "any") else chosen(rng, [*FLOATS, "int32"])
    x = array(rng, own, dtype, chosen(rng, ["any", "ties"]))
    if name.startswith("arg"):
        return Case(f"{name} {axes[0]} {own} {dtype}", lambda x: getattr(jnp, name)(x, axes[0]), (x,))
    return Case(f"reduce {name} {axes} {own} {dtype}", lambda x: getattr(jnp, name)(x, axes), (x,))


def cumulated(rng: Rng) -> Case:
    x = array(rng, shape(rng, 1), chosen(rng, FLOATS))
    name, axis, reverse = (
        chosen(rng, ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]),
        int(rng.integers(x.ndim)),
        bool(rng.integers(2)),
    )
    return Case(
        f"{name} {axis} {reverse} {x.shape} {x.dtype}",
        lambda x: getattr(lax, name)(x, axis, reverse=reverse),
        (x,),
    )


def windowed(rng: Rng) -> Case:
    x = array(rng, shape(rng, 1, 3, 7), chosen(rng, FLOATS), chosen(rng, ["any", "ties"]))
    size, stride, base, holes = (
        tuple(int(n) for n in rng.integers(1, most, x.ndim)) for most in (4, 4, 2 + int(rng.integers(2)), 3)
    )
    padding = [(int(a), int(b)) for a, b in rng.integers(0, 3, (x.ndim, 2))]
    init, op = chosen(rng, [(0, lax.add), (-np.inf, lax.max), (np.inf, lax.min)])
    if op is not lax.add:
        base = holes = (1,) * x.ndim  # of other extrema JAX has no derivative
    start = np.asarray(init).astype(x.dtype)

    def function(x: Array) -> Array:
        return lax.reduce_window(x, start, op, size, stride, padding, base, holes)

    return Case(
        f"window {op.__name__} {x.shape} {size} {stride} {padding} {base} {holes} {x.dtype}", function, (x,)
    )


def product(rng: Rng) -> Case:
    batch, contracted, left, right = (
        [int(n) for n in rng.integers(1, 4, int(rng.integers(k)))] for k in (2, 3, 3, 3)
    )
    b, c = len(batch), len(contracted)
    dtype = chosen(rng, FLOATS)
    x, y = (array(rng, (*batch, *contracted, *own), dtype) for own in (left, right))
    numbers = ((tuple(range(b, b + c)),) * 2, (tuple(range(b)),) * 2)
    return Case(
        f"dot_general {x.shape} {y.shape} {numbers} {dtype}",
        lambda x, y: lax.dot_general(x, y, numbers),
        (x, y),
    )


def chosen_by_products(rng: Rng) -> Case:
    """Products with known arrays of zeros and ones: one-hot rows, permutations, kernels of windows, triangles."""
    x = array(rng, shape(rng, 2, 2, 7), chosen(rng, FLOATS))
    n = x.shape[0]
    shift, number = int(rng.integers(n)), int(rng.integers(1, 3))
    rolled = (number * np.eye(n)[(np.arange(n) + shift) % n]).astype(x.dtype)
    size = tuple(int(k) for k in rng.integers(1, 4, 2))
    strides, holes = (tuple(int(k) for k in rng.integers(1, 3, 2)) for _ in range(2))
    triangle = np.tril(np.ones((n, n)), shift - 1).astype(x.dtype)
    options: list[tuple[str, Callable[..., Any]]] = [
        (f"rows rolled {shift} {number}", lambda x: rolled @ x),
        (f"columns {shift}", lambda x: x.T @ rolled),
        (f"reversed {n}", lambda x: jnp.eye(n, dtype=x.dtype)[::-1] @ x),
        (
            f"one of {n}",
            lambda x: jnp.sum(jnp.where(jnp.arange(n) == shift, 1, 0).astype(x.dtype)[:, None] * x, 0),
        ),
        (f"triangle {shift}", lambda x: triangle @ x),
        (
            f"patches {size} {strides} {holes}",
            lambda x: lax.conv_general_dilated_patches(
                jnp.stack([x, 2 * x])[None], size, strides, "SAME", rhs_dilation=holes
            ),
        ),
    ]
    name, function = chosen(rng, options)
    return Case(f"{name} {x.shape} {x.dtype}", function, (x,))


def convolved(rng: Rng) -> Case:
    dims, groups = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    features, out = groups * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
    dtype = chosen(rng, FLOATS[:2])
    x = array(rng, (2, features, *(int(n) for n in rng.integers(3, 7, dims))), dtype)
    w = array(rng, (out, features // groups, *(int(n) for n in rng.integers(1, 4, dims))), dtype)
    strides, base, holes = ([int(n) for n in rng.integers(1, 3, dims)] for _ in range(3))
    padding = [(int(a), int(b)) for a, b in rng.integers(0, 3, (dims, 2))]

    def function(x: Array, w: Array) -> Array:
        return lax.conv_general_dilated(x, w, strides, padding, base, holes, feature_group_count=groups)

    return Case(
        f"conv {x.shape} {w.shape} {strides} {padding} {base} {holes} {groups} {dtype}", function, (x, w)
    )


def counted(rng: Rng) -> Case:
    own, dtype = shape(rng, 1), chosen(rng, ["float32", "float64", "int32"])
    axis = int(rng.integers(len(own)))
    return Case(
        f"iota {own} {axis} {dtype}",
        lambda x: x * lax.broadcasted_iota(x.dtype, own, axis),
        (array(rng, own, dtype),),
    )


FAMILIES: tuple[Callable[[Rng], Case], ...] = (
    *(
        unary,
        unary,
        unary,
        binary,
        binary,
        unary_at_integers,
        power,
        compared,
        of_integers,
        converted,
        selected,
        clamped,
    ),
    *(
        reshaped,
        moved,
        broadcast,
        sliced,
        padded,
        joined,
        stacked,
        at_positions,
        at_positions,
        reduced,
        reduced,
    ),
    *(cumulated, windowed, windowed, product, chosen_by_products, convolved, counted),
)
