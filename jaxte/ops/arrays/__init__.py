"""Operators that make arrays, and put their elements elsewhere."""
