"""What the terms of a sum are read at, as what is summed over or a tensor is made over."""
