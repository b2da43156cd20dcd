"""What the forward pass keeps for the backward pass, and what is computed again."""
