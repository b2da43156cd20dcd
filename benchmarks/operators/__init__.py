"""Every operator of ``te.ops`` beside the same in plain JAX: ``make operators`` writes docs/operators.md."""
