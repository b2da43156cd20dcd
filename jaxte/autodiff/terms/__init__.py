"""One summand of an adjoint: a body's slope, zero elimination, what is known of its indices."""
