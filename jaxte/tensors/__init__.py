"""Tensors: definitions of elements over ranges, their reductions, shapes and facts."""
