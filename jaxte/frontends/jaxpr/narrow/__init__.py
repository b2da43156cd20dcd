"""Slices moved before the layers that make what they take: only what is read is computed, of everything that maps over a dimension."""
