"""Indices as slices, pads and reshapes; scopes; boxes."""
