"""What a program of JAX takes, in seconds by the platform's row: its jaxpr, in the loops that XLA fuses it into."""
