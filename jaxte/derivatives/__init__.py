"""Derivatives of whole graphs: reverse and forward mode, overrides, and what is asked for: adjoints, structured Jacobians, checks."""
