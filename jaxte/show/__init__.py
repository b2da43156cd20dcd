"""Definitions as text, LaTeX and HTML."""
