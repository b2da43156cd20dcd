"""Loops of a jaxpr that read and write arrays at their counter, as loops that take rows and stack rows, or as no loops at all."""
