"""What is asked for: adjoints, structured Jacobians, checked overrides."""
