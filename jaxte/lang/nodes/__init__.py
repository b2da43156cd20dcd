"""Nodes: one object for equal ones, what they depend on, and those of arithmetic and logic."""
