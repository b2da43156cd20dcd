"""Sparse Jacobians and Hessians of JAX functions: from definitions where a function is one, else from patterns and colours."""
