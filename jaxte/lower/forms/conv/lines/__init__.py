"""Convolutions along one line, of long kernels: Toeplitz matrices, blocks of them, slices, transforms."""
