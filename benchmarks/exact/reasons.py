"""Why functions are further off than the law allows."""

from __future__ import annotations

_LIBRARY = "a product of matrices, or a convolution, in the order of XLA's routine, where plain JAX has another of its routines or a sum"
_VECTOR = "a matrix times a vector along its rows, which XLA on the CPU adds up one row after the other; plain JAX has a sum"

CAUSES: dict[str, str] = {
    "conv2d_groups_4": _LIBRARY,
    "toeplitz": _LIBRARY,
    "k_means": _LIBRARY,
    "mlp_mixer": _LIBRARY,
    "rms_norm": _VECTOR,
    "layer_norm": _VECTOR,
    "running_sums_down": "eight levels of blocks of four, each of which adds three terms one after the other",
    "global_max_pool": "no rounding: of equal maxima, of which 16 bits have many, the first gets the gradient as in a pool, jnp.max divides it",
    "linear_attention": "most likely two sums whose terms plain JAX adds up in pairs that cancel, at the first positions of the causal sum",
    "wave_equation": "most likely ten steps amplify what the Laplacian's adjoint, in which neighbours cancel, is rounded by: another order of its terms",
    "bond_angles": "not found; plain JAX is off by 429 units too",
    "graph_attention": "not found; the gradient of the scores, whose terms cancel, is at the limit in both dtypes",
    "stencil_25_point": "two steps of 25 terms in the order of the stencil; at the limit",
    "maxwell_absorbing": "not found; at the limit",
    "bspline_3d": "not found; its products of three weights and sums of 64 terms are rounded to 16 bits on the way",
}
