"""Forms chosen by measuring, and the file that keeps what was measured."""
