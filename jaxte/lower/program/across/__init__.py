"""What is seen across the tensors of a program: what they share, and what is made once for several readers."""
