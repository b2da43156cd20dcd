"""What is decided once for each jaxpr: its regions, their Tensors, and what stays."""
