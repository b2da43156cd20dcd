"""Why functions are further off than the law allows."""

from __future__ import annotations

CAUSES: dict[str, str] = {
    "global_max_pool": "no rounding: of equal maxima, of which 16 bits have many, the first gets the gradient as in a pool, jnp.max divides it",
    "envelope": "no rounding: equal maxima, of which 16 bits have many, share the gradient as those of jnp.max do, a window of lax.reduce_window gives it to the first",
    "linear_attention": "two sums of the same weights, of which one is a cumulative sum, are added apart, and cancel; as one sum, which plain JAX has, 1.4 times less far off",
    "wave_equation": "ten steps amplify what each adjoint of the Laplacian is rounded by: terms of the element itself, the largest, come first, and those of its neighbours are added to them; in the order of plain JAX, half as far off",
    "wide_kernel": "the gradient of the kernel is a matrix product of 45,000 terms, added in blocks one after the other; a convolution adds them by rows, and row by row the product takes twice as long",
}
