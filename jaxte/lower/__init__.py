"""From definitions to the text of a JAX module, room by room."""
