"""Ways into index notation from other notations; all of them end in Tensors."""
