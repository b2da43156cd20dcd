"""From a program with loops to definitions: which writes each read sees, when elements are computed, and tensors of these."""
