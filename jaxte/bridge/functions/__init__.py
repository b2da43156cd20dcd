"""The functions that users hold: decorators, graphs, evaluation, transformations."""
