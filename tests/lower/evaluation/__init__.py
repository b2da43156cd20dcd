"""The meaning of array programs, every node computed with NumPy by itself, without any text; and the tests that hold it against the text."""
