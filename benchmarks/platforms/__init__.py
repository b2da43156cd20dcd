"""Programs for platforms that need not be there: compiled by XLA's own compilers for a described device, and counted."""
