"""From graphs to JAX: emitted modules, functions with derived gradients, transforms, evaluation."""
