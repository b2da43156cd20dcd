"""From outputs to inputs and back: accumulation, overrides, forward and reverse mode."""
