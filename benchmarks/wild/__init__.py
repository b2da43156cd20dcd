"""Losses of other people's libraries, and threads in which their users ask about gradients: te.grad beside jax.grad."""
