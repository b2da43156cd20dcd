"""Expression to expression, the same value."""
