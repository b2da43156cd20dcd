"""Forms written by hand that several cases share: the best ones known for the CPU, each with its own backward pass."""
