"""A definition compiled: its module, its two passes, sparse Jacobians, explanations."""
