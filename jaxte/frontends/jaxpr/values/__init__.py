"""Arrays of a jaxpr as expressions of one element, and the index expressions these are read at."""
