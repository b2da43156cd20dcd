"""Sums with differences of what depends on other axes, as products of matrices."""
