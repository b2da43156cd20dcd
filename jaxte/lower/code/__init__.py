"""Python text of arrays: vocabulary, identifiers, numbers."""
