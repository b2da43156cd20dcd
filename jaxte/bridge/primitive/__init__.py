"""One primitive of JAX whose parameter is a program, and the programs that its rules make."""
