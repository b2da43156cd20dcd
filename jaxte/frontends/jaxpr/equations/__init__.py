"""Equations of a jaxpr: a flat list of them, what NumPy computes beforehand, and the table by which each is raised."""
