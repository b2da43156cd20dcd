"""The array language: what a program computes, between definitions and text."""
