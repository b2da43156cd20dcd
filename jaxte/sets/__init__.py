"""Integer sets: affine forms, solving, bounding, disjoint pieces."""
