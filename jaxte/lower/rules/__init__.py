"""One rule for each kind of node."""
