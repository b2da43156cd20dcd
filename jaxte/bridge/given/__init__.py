"""Functions of arrays that stand for tensors or their gradients."""
