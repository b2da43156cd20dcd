"""The meaning of array programs: every node computed with NumPy, by itself. No step of lowering asks for it; tests do."""
