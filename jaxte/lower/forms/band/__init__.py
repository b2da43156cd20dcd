"""Banded products."""
