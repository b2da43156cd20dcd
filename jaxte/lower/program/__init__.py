"""Whole programs: plans, what is saved, the emitted module."""
