"""Reads at positions that are data, and their adjoints."""
