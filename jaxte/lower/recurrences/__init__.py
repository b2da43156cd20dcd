"""Recurrences as ``lax.scan``."""
