"""y[i,j,f] = min_e |P - A_e - t_e (A_{e+1} - A_e)|^2, the squared distance of pixel P = (i, j) from the outline of triangle f

with t_e = clip((P - A_e).(A_{e+1} - A_e) / |A_{e+1} - A_e|^2, 0, 1) and A_e the corners of f.
"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "soft rasteriser distances"
SIZES = {
    "full": dict(pixels=64, faces=1000),
    "quick": dict(pixels=24, faces=100),
    "tiny": dict(pixels=3, faces=4),
}


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


def by_hand(rows, columns, corners):
    """One edge after the other, coordinates apart."""
    best = None
    for e in range(3):
        a, b = corners[:, e], corners[:, (e + 1) % 3]
        dy, dx = b[:, 0] - a[:, 0], b[:, 1] - a[:, 1]
        y, x = rows[:, None, None] - a[:, 0], columns[:, None] - a[:, 1]
        t = jnp.clip((y * dy + x * dx) / (dy * dy + dx * dx), 0.0, 1.0)
        found = (y - t * dy) ** 2 + (x - t * dx) ** 2
        best = found if best is None else jnp.minimum(best, found)
    return best
