"""Cumulative reductions."""
