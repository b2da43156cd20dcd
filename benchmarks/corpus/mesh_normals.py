"""n[f] = (v[b] - v[a]) x (v[c] - v[a]) for the corners a, b, c of each face: normals by area"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "normals of the faces of a mesh"
SIZES = {
    "full": dict(v=20000, f=40000),
    "quick": dict(v=60, f=100),
    "tiny": dict(v=4, f=4),
}


def inputs(v, f):
    return normal(v, 3), integers(f, 3, below=v)


def expression(v, faces):
    def element(f, c):
        def edge(corner, c):
            return v[faces[f, corner], c] - v[faces[f, 0], c]

        first, second = (c + 1) % 3, (c + 2) % 3
        return edge(1, first) * edge(2, second) - edge(1, second) * edge(2, first)

    return te.compute((faces.shape[0], 3), element, "normal")


def idiomatic(v, faces):
    a, b, c = (v[faces[:, n]] for n in range(3))
    return jnp.cross(b - a, c - a)
