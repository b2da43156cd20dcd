"""Forms of reductions, a package for each family."""
