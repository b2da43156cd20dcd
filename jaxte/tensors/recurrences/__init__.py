"""Tensors that read themselves, or each other, at earlier positions along one axis."""
