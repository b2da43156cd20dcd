"""Choices and conditions of a sum, as where it is read and what it is taken over."""
