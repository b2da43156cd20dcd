"""A tensor in pieces."""
