"""Definitions as text: patterns of ``te.einsum`` and formulas of ``te.define``, read into one small tree and made into tensors."""
