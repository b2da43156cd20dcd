"""What definitions mean and cost: the interpreter in plain NumPy, and the counts."""
