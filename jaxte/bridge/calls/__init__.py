"""What a call is given and gives back: arrays, trees, named axes, options."""
