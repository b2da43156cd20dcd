"""The two passes that are measured."""

FORWARD, BOTH = "forward", "forward + backward"
PASSES = (FORWARD, BOTH)
