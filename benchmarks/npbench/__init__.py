"""Kernels of NPBench: as loops over NumPy arrays, and as JAX programs that one writes for them by hand."""
