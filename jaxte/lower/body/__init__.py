"""The evaluator of bodies, and what forms are offered and written through."""
