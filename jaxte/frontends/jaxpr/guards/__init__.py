"""Functions whose slopes are infinite or NaN are not differentiated at elements that a choice leaves out."""
