"""y[i,j,f] = min_e |P - A_e - t_e (A_{e+1} - A_e)|^2, the squared distance of pixel P = (i, j) from the outline of triangle f

with t_e = clip((P - A_e).(A_{e+1} - A_e) / |A_{e+1} - A_e|^2, 0, 1) and A_e the corners of f.
"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import uniform

TITLE = "soft rasteriser distances"
SIZES = {
    "full": dict(pixels=64, faces=1000),
    "quick": dict(pixels=24, faces=100),
    "tiny": dict(pixels=3, faces=4),
}
HOLDS_BACK = "the derivative of the clip is multiplied out in each gradient, and ties are shared; by hand takes the nearest place for the optimum"
SPELLINGS = {"by hand": "one edge after the other; the gradient through the nearest point alone, row by row"}


def inputs(pixels, faces):
    # places of pixels along an axis, and the corners of the triangles
    return uniform(pixels), uniform(pixels), uniform(faces, 3, 2)


def expression(rows, columns, corners):
    e = te.reduce_axis((0, 3), "e")
    faces = corners.shape[0]
    side = te.compute((faces, 3, 2), lambda f, e, d: corners[f, (e + 1) % 3, d] - corners[f, e, d], "side")
    length = te.compute((faces, 3), lambda f, e: side[f, e, 0] ** 2 + side[f, e, 1] ** 2, "length")

    def distance(i, j, f):
        y, x = rows[i] - corners[f, e, 0], columns[j] - corners[f, e, 1]
        t = te.clip((y * side[f, e, 0] + x * side[f, e, 1]) / length[f, e], 0.0, 1.0)
        return te.min((y - t * side[f, e, 0]) ** 2 + (x - t * side[f, e, 1]) ** 2, axis=e)

    return te.compute((rows.shape[0], columns.shape[0], faces), distance, "y")


def idiomatic(rows, columns, corners):
    return distances(rows, columns, corners, jnp.roll(corners, -1, 1) - corners)


def indexed(rows, columns, corners):
    return distances(rows, columns, corners, corners[:, (jnp.arange(3) + 1) % 3] - corners)


def distances(rows, columns, corners, side):
    pixels = jnp.stack(jnp.meshgrid(rows, columns, indexing="ij"), -1)
    away = pixels[:, :, None, None] - corners
    t = jnp.clip(jnp.sum(away * side, -1) / jnp.sum(side * side, -1), 0.0, 1.0)
    return jnp.min(jnp.sum((away - t[..., None] * side) ** 2, -1), -1)


def nearest(y, x, corners):
    """The squared distance to the nearest edge, and of that edge the place t, the way to it, and its number."""
    best = None
    for e in range(3):
        a, side = corners[:, e], corners[:, (e + 1) % 3] - corners[:, e]
        dy, dx = y - a[:, 0], x - a[:, 1]
        t = jnp.clip((dy * side[:, 0] + dx * side[:, 1]) / jnp.sum(side * side, 1), 0.0, 1.0)
        dy, dx = dy - t * side[:, 0], dx - t * side[:, 1]
        found = (dy * dy + dx * dx, t, dy, dx, jnp.full(t.shape, e))
        if best is not None:
            closer = found[0] < best[0]
            found = tuple(jnp.where(closer, new, old) for new, old in zip(found, best, strict=True))
        best = found
    return best


@jax.custom_vjp
def by_hand(rows, columns, corners):
    """One edge after the other, coordinates apart."""
    return nearest(rows[:, None, None], columns[:, None], corners)[0]


def _backward(saved, h):
    """Row by row of the pixels. The place t is the best on its edge, or held at a corner: no gradient passes through it."""
    rows, columns, corners = saved

    def step(sums, row):
        y, h = row
        _, t, dy, dx, edge = nearest(y, columns[:, None], corners)
        dcolumns, dcorners = sums
        # computed once, not in each of the sums
        t, dy, dx, edge = lax.optimization_barrier((t, 2 * h * dy, 2 * h * dx, edge))
        mine = [[jnp.where(edge == e, way, 0.0) for way in (dy, dx)] for e in range(3)]
        at_start = jnp.array([[jnp.sum((t - 1) * way, 0) for way in ways] for ways in mine])
        at_end = jnp.array([[jnp.sum(-t * way, 0) for way in ways] for ways in mine])
        both = jnp.moveaxis(at_start + jnp.roll(at_end, 1, 0), 2, 0)
        return (dcolumns + jnp.sum(dx, 1), dcorners + both), jnp.sum(dy)

    start = jnp.zeros_like(columns), jnp.zeros_like(corners)
    (dcolumns, dcorners), drows = lax.scan(step, start, (rows, h))
    return drows, dcolumns, dcorners


by_hand.defvjp(lambda *args: (by_hand(*args), args), _backward)
