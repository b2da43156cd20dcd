"""Operators that compute: element by element, along axes, products."""
