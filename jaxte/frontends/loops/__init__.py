"""Python functions with loops, statements and overwritten variables, as definitions and recurrences."""
