"""What is too large to exist in whole: block by block."""
