"""Which equations gain from being raised, and by what."""
