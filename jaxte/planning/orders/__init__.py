"""The order in which the products of a sum are taken, and the tensors in between."""
