"""Summands of one adjoint side by side: merged, cancelled, in blocks."""
