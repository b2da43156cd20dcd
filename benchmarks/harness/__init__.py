"""Measuring index expressions beside other forms of the same function. A case file needs only :mod:`harness.inputs`."""
