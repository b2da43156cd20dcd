"""From the text of a Python function with loops to a program: Python's syntax tree, interpreted with counters as axes."""
