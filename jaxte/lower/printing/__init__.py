"""Array programs as Python text: the only place that knows how JAX is spelled."""
