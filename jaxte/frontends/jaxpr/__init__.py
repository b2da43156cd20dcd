"""JAX functions raised to index expressions: ``te.grad``, ``te.adjoint`` and their kin of ordinary JAX code.

A function is traced to its jaxpr; equations that gain from it are raised by the table of :mod:`.rules` to Tensors, in regions that
:mod:`.plan.regions` cuts, and the rest stays as it is.
"""
