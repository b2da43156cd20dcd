"""How far jaxte and plain JAX are from the same function in float64."""
